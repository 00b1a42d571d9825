"""Jobs on gs: Hadoop's manifest committer through Google's connector, ours through our store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from asynccommit import sync
from asynccommit.api import JobRef
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, OwnedError
from asynccommit.formats.manifest import TaskManifest, decode_manifest
from asynccommit.formats.success import decode_success
from asynccommit.results import JobReport
from asynccommit.stores.urls import Address, decode_uri
from tests.support.gcs_hadoop import Gcs, etag_of, storage_options
from tests.support.hadoop import HadoopError

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(180)]

JOB = "0c7c8a7e-6a5f-4d0b-8a55-3f3f6a1d2e10"
DEST = "/ta ble=100%é 😀/t"
VALIDATE = {"mapreduce.manifest.committer.validate.output": "true"}
OURS = {**VALIDATE, "asynccommit.cleanup": "wait"}
SIDES = ["hadoop", "ours"]
TASKS: Sequence[Mapping[str, bytes]] = (
    {
        "p=a b/q=50%25/part-0": b"one",
        "p=x+y/q=k%3Dv=w/part-0": b"two",
        "p=é/q=日本 😀/part-0": b"",
        "part-0": b"at the top",
    },
    {"p=a b/q=50%25/part-1": b"four", 'p=#?[x]{y}|^`"<>/part-1': b"five", "a/b/c/part-1": b"six"},
    {},
)
WHOLE = {name: data for task in TASKS for name, data in task.items()}


both = pytest.mark.parametrize("gcs", [False, True], indirect=True, ids=["flat", "hns"])


@pytest.fixture
def gcs(google: Gcs, request: pytest.FixtureRequest) -> Iterator[Gcs]:
    """Yield the JVM, in a bucket of this test's own, in fair weather."""
    yield google.use_bucket_of(request.node.nodeid, hns=getattr(request, "param", False))
    google.emulator.do(lambda running: running.weather.clear())


def manifests(gcs: Gcs) -> list[TaskManifest]:
    """Return the manifests of the job as this package reads them."""
    files = gcs.bucket.tree(DEST)
    return [
        decode_manifest(data, name)
        for name, data in sorted(files.items())
        if name.endswith("-manifest.json")
    ]


def assert_committed(gcs: Gcs, expected: Mapping[str, bytes] = WHOLE) -> None:
    """See that the table is as expected, the marker tells of this job, nothing else is left."""
    found = gcs.bucket.tree(DEST)
    marker = decode_success(found.pop("/_SUCCESS"), "_SUCCESS")
    assert found == {f"/{name}": data for name, data in expected.items()}
    assert (marker.success, marker.job_id) == (True, JOB)
    assert set(marker.filenames) == urls(gcs, expected)
    assert [name for name in gcs.bucket.objects() if "_temporary" in name] == []
    assert gcs.success(Path(f"{DEST}/_SUCCESS"))["jobId"] == JOB


def urls(gcs: Gcs, names: Mapping[str, bytes]) -> set[str]:
    """Return the names below the destination as manifests and markers write them."""
    return {Address("gs", gcs.bucket.name, f"{DEST}/{name}").encode() for name in names}


def commit_job(
    side: str, gcs: Gcs, commits: Sequence[TaskCommit] | None = None
) -> JobReport | None:
    """Commit the job, with validation, by Hadoop's committer or by ours."""
    if side == "hadoop":
        gcs.job_of(DEST, JOB, VALIDATE).commit()
        return None
    options = storage_options(gcs.emulator)
    return sync.job(gcs.url(DEST), JOB, options=OURS, storage_options=options).commit(commits)


def run_ours(gcs: Gcs, tasks: Mapping[int, Mapping[str, bytes]]) -> list[TaskCommit]:
    """Commit tasks of ours, whose files Hadoop's client writes; the job is not committed."""

    async def run() -> list[TaskCommit]:
        options = storage_options(gcs.emulator)
        async with JobRef(gcs.url(DEST), JOB, storage_options=options).open() as committer:
            await committer.setup_job()
            commits = []
            for number, files in tasks.items():
                task_id, attempt_id = committer.layout.ids(number, 0)
                work = await committer.setup_task(attempt_id)
                for name, data in files.items():
                    gcs.write(Path(work) / name, data)
                commits.append(await committer.commit_task(task_id, attempt_id))
            return commits

    return asyncio.run(run())


@pytest.mark.rotate("gcs")
@both
def test_job_of_hadoop(gcs: Gcs) -> None:
    """Hadoop's committer commits a whole job; we read its manifests and its marker."""
    gcs.job_of(DEST, JOB).run(TASKS)
    written = manifests(gcs)
    commit_job("hadoop", gcs)

    entries = [entry for manifest in written for entry in manifest.files]
    assert len(written) == len(TASKS)
    assert {entry.dest for entry in entries} == urls(gcs, WHOLE)
    assert {entry.etag for entry in entries} == {None}
    assert_committed(gcs)


@pytest.mark.rotate("gcs")
@both
def test_commit_job_of_hadoop_tasks(gcs: Gcs) -> None:
    """Our job commit makes visible what tasks of Hadoop's committer committed."""
    job = gcs.job_of(DEST, JOB).run(TASKS)
    job.task(7).setup().write({"never": b"committed"})
    report = commit_job("ours", gcs)

    assert report is not None
    assert (report.files, report.bytes) == (len(WHOLE), sum(map(len, WHOLE.values())))
    assert_committed(gcs)


@pytest.mark.rotate("gcs")
@both
def test_commit_job_by_hadoop_of_our_tasks(gcs: Gcs) -> None:
    """Hadoop's job commit, validation on, makes visible what our tasks committed."""
    run_ours(gcs, dict(enumerate(TASKS)))
    before = {etag_of(found) for name, found in gcs.bucket.objects().items() if name[-1] != "/"}
    written = manifests(gcs)
    commit_job("hadoop", gcs)

    assert {entry.etag for manifest in written for entry in manifest.files} <= before
    assert_committed(gcs)


@pytest.mark.rotate("gcs")
@both
@pytest.mark.parametrize("side", SIDES)
def test_commit_job_of_tasks_of_both(gcs: Gcs, side: str) -> None:
    """One job may have tasks of both, and either side commits it."""
    run_ours(gcs, {1: TASKS[1], 2: TASKS[2]})
    gcs.job_of(DEST, JOB).task(0).setup().write(TASKS[0]).commit()
    commit_job(side, gcs)

    assert_committed(gcs)


@pytest.mark.parametrize("side", SIDES)
def test_commit_job_into_directories_that_exist(gcs: Gcs, side: str) -> None:
    """In append mode files join those of an earlier job."""
    gcs.write(Path(f"{DEST}/p=a b/q=50%25/part-9"), b"earlier")
    gcs.job_of(DEST, JOB).run(TASKS)
    commit_job(side, gcs)

    found = gcs.bucket.tree(DEST)
    assert found["/p=a b/q=50%25/part-9"] == b"earlier"
    assert found.keys() >= {f"/{name}" for name in WHOLE}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["after", "cut", "before"])
def test_commit_job_when_every_third_move_fails(gcs: Gcs, kind: str) -> None:
    """Answers that are lost, or refusals, cost our commit requests only: every file is there."""
    gcs.job_of(DEST, JOB).run(TASKS)
    gcs.bucket.strike(kind=kind, op="move", every=3)
    commit_job("ours", gcs)

    assert_committed(gcs)
    assert gcs.bucket.struck(f"{kind} move") >= 2


def test_commit_job_by_hadoop_when_an_answer_is_lost(gcs: Gcs) -> None:
    """Hadoop's job commit fails where an answer to a move is lost, and ours finishes its work."""
    gcs.job_of(DEST, JOB).run(TASKS)
    gcs.bucket.strike(kind="cut", op="move", path="part-1", times=1)
    with pytest.raises(HadoopError, match="File not found"):
        commit_job("hadoop", gcs)
    assert "/_SUCCESS" not in gcs.bucket.tree(DEST)

    options = storage_options(gcs.emulator)
    report = sync.job(gcs.url(DEST), JOB, storage_options=options).resume(adopt=True)
    assert report.files == len(WHOLE)
    assert_committed(gcs)


def test_commit_job_refuses_a_file_that_changed(gcs: Gcs) -> None:
    """A file that was written again after our task committed is another object: not moved."""
    run_ours(gcs, {0: {"part": b"old"}})
    [entry] = manifests(gcs)[0].files
    gcs.write(Path(decode_uri(entry.source).path), b"new")
    with pytest.raises(CommitError, match="was requested"):
        commit_job("ours", gcs)

    assert [name for name in gcs.bucket.tree(DEST) if "_temporary" not in name] == []


def test_commit_job_by_hadoop_of_a_file_that_changed(gcs: Gcs) -> None:
    """Hadoop's job commit cannot tell, and moves what is there."""
    run_ours(gcs, {0: {"part": b"old"}})
    [entry] = manifests(gcs)[0].files
    gcs.write(Path(decode_uri(entry.source).path), b"new")
    commit_job("hadoop", gcs)

    assert gcs.bucket.tree(DEST)["/part"] == b"new"


@pytest.mark.rotate("gcs")
@both
def test_abort_job_of_hadoop_tasks(gcs: Gcs) -> None:
    """Told to, our abort deletes the directory of its job, and Hadoop can commit the other."""
    gcs.job_of(DEST, "another-job").run([{"part-other": b"1"}])
    gcs.job_of(DEST, JOB).run(TASKS)
    with pytest.raises(OwnedError, match="--force"):
        sync.job(gcs.url(DEST), JOB, storage_options=storage_options(gcs.emulator)).abort()
    sync.job(gcs.url(DEST), JOB, storage_options=storage_options(gcs.emulator)).abort(force=True)
    left = {name.split("/")[2] for name in gcs.bucket.tree(DEST) if "/_temporary/" in name}
    gcs.job_of(DEST, "another-job", VALIDATE).commit()

    assert left == {"another-job"}
    assert gcs.bucket.tree(DEST)["/part-other"] == b"1"


@pytest.mark.rotate("gcs")
@both
def test_commit_job_twice(gcs: Gcs) -> None:
    """Our commit of a job that Hadoop has committed says so, and changes nothing."""
    gcs.job_of(DEST, JOB).run(TASKS)
    commit_job("hadoop", gcs)
    report = commit_job("ours", gcs)

    assert report is not None
    assert report.already_committed
    assert_committed(gcs)

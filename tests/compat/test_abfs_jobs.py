"""Jobs on ABFS: Hadoop's manifest committer through Hadoop's client, ours through our store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.api import JobRef
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, OwnedError
from asynccommit.formats.manifest import TaskManifest, decode_manifest
from asynccommit.formats.success import decode_success
from asynccommit.results import JobReport
from asynccommit.stores.urls import Address
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.models.fault_rules import Fault
from tests.support.abfs import Abfs, storage_options
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
        "p=é/q=日本/part-0": b"",
        "part-0": b"at the top",
    },
    {"p=a b/q=50%25/part-1": b"four", 'p=#?[x]{y}|^`"<>/part-1': b"five", "a/b/c/part-1": b"six"},
    {},
)
WHOLE = {name: data for task in TASKS for name, data in task.items()}


@pytest.fixture
def abfs(jvm: Abfs, emulator: EmulatorThread, request: pytest.FixtureRequest) -> Iterator[Abfs]:
    """Yield the JVM, on a filesystem of this test's own, in fair weather."""
    name = jvm.use_filesystem_of(request.node.nodeid).filesystem_name
    emulator.do(lambda running: running.model.create_filesystem(name))
    yield jvm
    emulator.do(lambda running: running.weather.clear())


def tree(abfs: Abfs, emulator: EmulatorThread, path: str = DEST) -> dict[str, bytes]:
    """Return the files below ``path`` with their content, straight from the emulator."""
    found = {}
    for name, node in _entries(abfs, emulator, path):
        if not node.is_dir:
            found[name[len(path) :]] = node.read()
    return found


def etags(abfs: Abfs, emulator: EmulatorThread, path: str = DEST) -> dict[str, str]:
    """Return the etags of the files below ``path``, straight from the emulator."""
    entries = _entries(abfs, emulator, path)
    return {name[len(path) :]: node.etag for name, node in entries if not node.is_dir}


def _entries(abfs: Abfs, emulator: EmulatorThread, path: str) -> list[tuple[str, Any]]:
    where = abfs.filesystem_name, path.strip("/")
    listing = emulator.do(lambda running: running.model.list(*where, recursive=True))
    return [(f"/{name}", node) for name, node in listing.entries]


def manifests(abfs: Abfs, emulator: EmulatorThread) -> list[TaskManifest]:
    """Return the manifests of the job as this package reads them."""
    files = tree(abfs, emulator)
    return [
        decode_manifest(data, name)
        for name, data in sorted(files.items())
        if name.endswith("-manifest.json")
    ]


def assert_committed(
    abfs: Abfs, emulator: EmulatorThread, expected: Mapping[str, bytes] = WHOLE
) -> None:
    """See that the table is as expected, the marker tells of this job, nothing else is left."""
    found = tree(abfs, emulator)
    marker = decode_success(found.pop("/_SUCCESS"), "_SUCCESS")
    assert found == {f"/{name}": data for name, data in expected.items()}
    assert (marker.success, marker.job_id) == (True, JOB)
    assert set(marker.filenames) == urls(abfs, expected)
    assert "_temporary" not in {name.split("/")[-1] for name, _ in _entries(abfs, emulator, DEST)}
    assert abfs.success(Path(f"{DEST}/_SUCCESS"))["jobId"] == JOB


def urls(abfs: Abfs, names: Mapping[str, bytes]) -> set[str]:
    """Return the names below the destination as manifests and markers write them."""
    return {Address("abfs", abfs.authority, f"{DEST}/{name}").encode() for name in names}


def commit_job(
    side: str, abfs: Abfs, emulator: EmulatorThread, commits: Sequence[TaskCommit] | None = None
) -> JobReport | None:
    """Commit the job, with validation, by Hadoop's committer or by ours."""
    if side == "hadoop":
        abfs.job_of(DEST, JOB, VALIDATE).commit()
        return None
    where, keys = abfs.url(DEST), storage_options(emulator)
    return sync.job(where, JOB, options=OURS, storage_options=keys).commit(commits)


def run_ours(
    abfs: Abfs, emulator: EmulatorThread, tasks: Mapping[int, Mapping[str, bytes]]
) -> list[TaskCommit]:
    """Commit tasks of ours, whose files Hadoop's client writes; the job is not committed."""

    async def run() -> list[TaskCommit]:
        keys = storage_options(emulator)
        async with JobRef(abfs.url(DEST), JOB, storage_options=keys).open() as committer:
            await committer.setup_job()
            commits = []
            for number, files in tasks.items():
                task_id, attempt_id = committer.layout.ids(number, 0)
                work = await committer.setup_task(attempt_id)
                for name, data in files.items():
                    abfs.write(Path(work) / name, data)
                commits.append(await committer.commit_task(task_id, attempt_id))
            return commits

    return asyncio.run(run())


def strike(emulator: EmulatorThread, **fault: Any) -> None:
    """Have the emulator do this to requests to come."""
    emulator.do(lambda running: running.weather.add(Fault.from_json(fault)))


def test_job_of_hadoop(abfs: Abfs, emulator: EmulatorThread) -> None:
    """Hadoop's committer commits a whole job; we read its manifests and its marker."""
    abfs.job_of(DEST, JOB).run(TASKS)
    written = manifests(abfs, emulator)
    before = etags(abfs, emulator)
    commit_job("hadoop", abfs, emulator)

    entries = [entry for manifest in written for entry in manifest.files]
    assert len(written) == len(TASKS)
    assert {entry.dest for entry in entries} == urls(abfs, WHOLE)
    assert {entry.etag for entry in entries} <= set(before.values())
    assert_committed(abfs, emulator)
    after = etags(abfs, emulator)
    assert {after[f"/{name}"] for name in WHOLE} == {entry.etag for entry in entries}


def test_commit_job_of_hadoop_tasks(abfs: Abfs, emulator: EmulatorThread) -> None:
    """Our job commit makes visible what tasks of Hadoop's committer committed, etags checked."""
    job = abfs.job_of(DEST, JOB).run(TASKS)
    job.task(7).setup().write({"never": b"committed"})
    report = commit_job("ours", abfs, emulator)

    assert report is not None
    assert (report.files, report.bytes) == (len(WHOLE), sum(map(len, WHOLE.values())))
    assert_committed(abfs, emulator)


def test_commit_job_by_hadoop_of_our_tasks(abfs: Abfs, emulator: EmulatorThread) -> None:
    """Hadoop's job commit, validation on, makes visible what our tasks committed."""
    run_ours(abfs, emulator, dict(enumerate(TASKS)))
    written = manifests(abfs, emulator)
    commit_job("hadoop", abfs, emulator)

    entries = [entry for manifest in written for entry in manifest.files]
    after = etags(abfs, emulator)
    assert_committed(abfs, emulator)
    assert {after[f"/{name}"] for name in WHOLE} == {entry.etag for entry in entries}


@pytest.mark.parametrize("side", SIDES)
def test_commit_job_of_tasks_of_both(abfs: Abfs, emulator: EmulatorThread, side: str) -> None:
    """One job may have tasks of both, and either side commits it."""
    run_ours(abfs, emulator, {1: TASKS[1], 2: TASKS[2]})
    abfs.job_of(DEST, JOB).task(0).setup().write(TASKS[0]).commit()
    commit_job(side, abfs, emulator)

    assert_committed(abfs, emulator)


@pytest.mark.parametrize("side", SIDES)
def test_commit_job_into_directories_that_exist(
    abfs: Abfs, emulator: EmulatorThread, side: str
) -> None:
    """In append mode files join those of an earlier job."""
    abfs.write(Path(f"{DEST}/p=a b/q=50%25/part-9"), b"earlier")
    abfs.job_of(DEST, JOB).run(TASKS)
    commit_job(side, abfs, emulator)

    found = tree(abfs, emulator)
    assert found["/p=a b/q=50%25/part-9"] == b"earlier"
    assert found.keys() >= {f"/{name}" for name in WHOLE}


@pytest.mark.sample(2)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["after", "cut", "before"])
def test_commit_job_when_every_third_rename_fails(
    abfs: Abfs, emulator: EmulatorThread, side: str, kind: str
) -> None:
    """Answers that are lost, or refusals, cost requests only: every file is there once."""
    abfs.job_of(DEST, JOB).run(TASKS)
    code = "ServerBusy" if kind == "before" else "OperationTimedOut"
    strike(emulator, kind=kind, op="rename", every=3, code=code)
    commit_job(side, abfs, emulator)

    assert_committed(abfs, emulator)
    assert emulator.do(lambda running: running.weather.struck[f"{kind} rename"]) >= 2


@pytest.mark.parametrize("kind", ["after", "cut"])
def test_tasks_of_hadoop_when_answers_are_lost(
    abfs: Abfs, emulator: EmulatorThread, kind: str
) -> None:
    """Hadoop's tasks settle their lost responses too, and our commit finds what they wrote."""
    for op in ("create", "append", "flush", "rename", "mkdir"):
        strike(emulator, kind=kind, op=op, every=4, code="OperationTimedOut")
    abfs.job_of(DEST, JOB).run(TASKS)
    commit_job("ours", abfs, emulator)

    assert_committed(abfs, emulator)


@pytest.mark.parametrize(
    "side, error, why, after",
    [
        ("hadoop", HadoopError, "with etag", {"/part", "/_SUCCESS"}),
        ("ours", CommitError, "SourceConditionNotMet", set()),
    ],
)
def test_commit_job_refuses_a_file_that_changed(
    abfs: Abfs,
    emulator: EmulatorThread,
    side: str,
    error: type[Exception],
    why: str,
    after: set[str],
) -> None:
    """A file that was written again after its task committed has another etag: both refuse it.

    Hadoop does so when file and marker are there already, and we before the file has moved.
    """
    job = abfs.job_of(DEST, JOB).setup()
    task = job.task(0).setup().write({"part": b"old"}).commit()
    abfs.write(task.work_path / "part", b"new")
    with pytest.raises(error, match=why):
        commit_job(side, abfs, emulator)

    assert {name for name in tree(abfs, emulator) if "_temporary" not in name} == after


def test_abort_job_of_hadoop_tasks(abfs: Abfs, emulator: EmulatorThread) -> None:
    """Told to, our abort deletes the directory of its job, and Hadoop can commit the other."""
    abfs.job_of(DEST, "another-job").run([{"part-other": b"1"}])
    abfs.job_of(DEST, JOB).run(TASKS)
    with pytest.raises(OwnedError, match="--force"):
        sync.job(abfs.url(DEST), JOB, storage_options=storage_options(emulator)).abort()
    sync.job(abfs.url(DEST), JOB, storage_options=storage_options(emulator)).abort(force=True)
    left = {name.split("/")[2] for name in tree(abfs, emulator) if "/_temporary/" in name}
    abfs.job_of(DEST, "another-job", VALIDATE).commit()

    assert left == {"another-job"}
    assert tree(abfs, emulator)["/part-other"] == b"1"


def test_commit_job_twice(abfs: Abfs, emulator: EmulatorThread) -> None:
    """Our commit of a job that Hadoop has committed says so, and changes nothing."""
    abfs.job_of(DEST, JOB).run(TASKS)
    commit_job("hadoop", abfs, emulator)
    report = commit_job("ours", abfs, emulator)

    assert report is not None
    assert report.already_committed
    assert_committed(abfs, emulator)

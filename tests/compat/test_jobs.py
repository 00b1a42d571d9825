"""Whole jobs shared with Hadoop's ManifestCommitter: its tasks and our job commit, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from asynccommit import sync
from asynccommit.api import JobRef
from asynccommit.commit.layouts.layout import STAGED, TaskCommit
from asynccommit.errors import OwnedError
from asynccommit.stores.urls import Address
from tests.support.hadoop import Committer, Hadoop, read_tree, write_tree

pytestmark = pytest.mark.jvm

JOB = "0c7c8a7e-6a5f-4d0b-8a55-3f3f6a1d2e10"
VALIDATE = {"mapreduce.manifest.committer.validate.output": "true"}
SIDES = ["hadoop", "ours"]
TASKS: Sequence[Mapping[str, bytes]] = (
    {
        "p=a b/q=50%25/part-0": b"one",
        "p=x+y/q=k%3Dv=w/part-0": b"two",
        "p=é/q=日本/part-0": b"",
        "p=😀/part-0": b"three",
        "part-0": b"at the top",
        "empty dir/": b"",
    },
    {
        "p=a b/q=50%25/part-1": b"four",
        "p=e\u0301/part-1": b"decomposed",
        'p=#?[x]{y}|\\^`"<>/part-1': b"five",
        "_hidden/_metadata": b"six",
        ".dot/.file": b"seven",
        "a/b/c/d/e/f/part-1": b"eight",
        " lead/trail /~!$&'()*,;@": b"nine",
    },
    {},
)
WHOLE = {name: data for task in TASKS for name, data in task.items()}
FILES = {name for name in WHOLE if not name.endswith("/")}


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    """A destination whose own name needs encoding."""
    return tmp_path / "a table=100%é 😀"


def run_ours(
    dest: Path, tasks: Mapping[tuple[int, int], Mapping[str, bytes]], *, setup: bool = True
) -> list[TaskCommit]:
    """Commit tasks of ours, (task, attempt) -> files; the job is not committed."""

    async def run() -> list[TaskCommit]:
        async with JobRef(dest, JOB).open() as committer:
            if setup:
                await committer.setup_job()
            commits = []
            for (number, attempt), files in tasks.items():
                task_id, attempt_id = committer.layout.ids(number, attempt)
                write_tree(Path(await committer.setup_task(attempt_id)), files)
                commits.append(await committer.commit_task(task_id, attempt_id))
            return commits

    return asyncio.run(run())


def commit_job(side: str, hadoop: Hadoop, dest: Path) -> None:
    """Commit the job by Hadoop's committer or by ours."""
    if side == "hadoop":
        hadoop.job(dest, JOB, conf=VALIDATE).commit()
    else:
        sync.job(dest, JOB).commit()


def urls(dest: Path, names: set[str]) -> set[str]:
    """Return the names below ``dest`` as manifests and markers write them."""
    return {Address("file", "", f"{dest}/{name}").encode() for name in names}


def assert_committed(hadoop: Hadoop, dest: Path, expected: Mapping[str, bytes] = WHOLE) -> None:
    """See that the table is as expected, the marker tells of this job, nothing else is left."""
    assert read_tree(dest) == expected
    assert not (dest / "_temporary").exists()
    marker = hadoop.success(dest / "_SUCCESS")
    assert (marker["success"], marker["jobId"]) == (True, JOB)


def test_commit_job_of_hadoop_tasks(hadoop: Hadoop, dest: Path) -> None:
    """Our job commit makes visible what tasks of Hadoop's committer committed, and nothing else."""
    job = hadoop.job(dest, JOB).run(TASKS)
    job.task(7).setup().write({"never": b"committed"})
    report = sync.job(dest, JOB).commit()

    assert (report.files, report.bytes) == (len(FILES), sum(map(len, WHOLE.values())))
    assert len(report.tasks) == len(TASKS)
    assert_committed(hadoop, dest)
    assert set(hadoop.success(dest / "_SUCCESS")["filenames"]) == urls(dest, FILES)


def test_commit_job_by_hadoop_of_our_tasks(hadoop: Hadoop, dest: Path) -> None:
    """Hadoop's job commit, validation on, makes visible what our tasks committed.

    Some files have the suffix of files that no pattern of a reader may match.
    """
    staged = {f"{name}{'' if name.endswith('/') else STAGED}": TASKS[0][name] for name in TASKS[0]}
    run_ours(dest, {(number, 0): files for number, files in enumerate([staged, *TASKS[1:]])})
    hadoop.job(dest, JOB, conf=VALIDATE).commit()

    assert_committed(hadoop, dest)
    assert set(hadoop.success(dest / "_SUCCESS")["filenames"]) == urls(dest, FILES)


@pytest.mark.parametrize("side", SIDES)
def test_commit_job_of_tasks_of_both(hadoop: Hadoop, dest: Path, side: str) -> None:
    """One job may have tasks of both, and either side commits it."""
    job = hadoop.job(dest, JOB).setup()
    job.task(0).setup().write(TASKS[0]).commit()
    run_ours(dest, {(1, 0): TASKS[1], (2, 0): TASKS[2]}, setup=False)
    commit_job(side, hadoop, dest)

    assert_committed(hadoop, dest)


@pytest.mark.parametrize("side", SIDES)
def test_commit_job_into_directories_that_exist(hadoop: Hadoop, dest: Path, side: str) -> None:
    """In append mode files join those of an earlier job, whichever side wrote the manifests."""
    earlier = {"p=a b/q=50%25/part-9": b"earlier", "p=😀/part-9": b"", "other/part-9": b"x"}
    write_tree(dest, earlier)
    if side == "ours":
        hadoop.job(dest, JOB).run(TASKS)
    else:
        run_ours(dest, {(number, 0): files for number, files in enumerate(TASKS)})
    commit_job(side, hadoop, dest)

    assert_committed(hadoop, dest, {**WHOLE, **earlier})


@pytest.mark.sample(3)
@pytest.mark.parametrize("first", SIDES)
@pytest.mark.parametrize("second", SIDES)
@pytest.mark.parametrize("side", SIDES)
def test_commit_job_takes_the_second_attempt(
    hadoop: Hadoop, dest: Path, first: str, second: str, side: str
) -> None:
    """A second attempt's manifest replaces the first's, written by either side, read by either."""
    job = hadoop.job(dest, JOB).setup()
    for attempt, writer in enumerate((first, second)):
        context = job.task(0, attempt)
        files = {f"p=1/part-of-attempt-{attempt}": b"." * (attempt + 1)}
        if writer == "hadoop":
            context.setup().write(files).commit()
        else:
            commit_as_ours(dest, context.task_id, context.attempt_id, files)
    commit_job(side, hadoop, dest)

    assert_committed(hadoop, dest, {"p=1/part-of-attempt-1": b".."})


def commit_as_ours(dest: Path, task_id: str, attempt_id: str, files: Mapping[str, bytes]) -> None:
    """Commit one task attempt by our committer under the ids that Hadoop gave it."""

    async def run() -> None:
        async with JobRef(dest, JOB).open() as committer:
            write_tree(Path(await committer.setup_task(attempt_id)), files)
            await committer.commit_task(task_id, attempt_id)

    asyncio.run(run())


def test_abort_task_keeps_the_manifest_of_hadoops_attempt(hadoop: Hadoop, dest: Path) -> None:
    """Aborting our attempt leaves a manifest that another attempt, of Hadoop's, has committed."""
    job = hadoop.job(dest, JOB).setup()
    winner = job.task(0, 0).setup().write({"part": b"won"}).commit()
    loser = job.task(0, 1)

    async def lose() -> None:
        async with JobRef(dest, JOB).open() as committer:
            write_tree(Path(await committer.setup_task(loser.attempt_id)), {"part": b"lost"})
            await committer.abort_task(winner.task_id, loser.attempt_id)

    asyncio.run(lose())
    sync.job(dest, JOB).commit()

    assert_committed(hadoop, dest, {"part": b"won"})


def test_commit_job_ignores_hadoops_zombie(hadoop: Hadoop, dest: Path) -> None:
    """A Hadoop attempt that no message names, committing late over our manifest, is not used."""
    commits = run_ours(dest, {(0, 0): {"p=1/part": b"authorised"}})
    job = hadoop.job(dest, JOB)
    job.task(9).setup().write({"p=1/zombie": b"late"}).commit()
    report = sync.job(dest, JOB).commit(commits)

    assert len(report.ignored) == 1
    assert_committed(hadoop, dest, {"p=1/part": b"authorised"})


@pytest.mark.parametrize("side", SIDES)
def test_commit_job_twice_is_refused_or_done(hadoop: Hadoop, dest: Path, side: str) -> None:
    """Our commit of a job that either side has committed already says so and changes nothing."""
    hadoop.job(dest, JOB).run(TASKS)
    commit_job(side, hadoop, dest)
    report = sync.job(dest, JOB).commit()

    assert report.already_committed
    assert_committed(hadoop, dest)


def test_commit_job_of_a_layout_before_hadoop_3_4(hadoop: Hadoop, dest: Path) -> None:
    """The directory ``_temporary/manifest_<job id>`` of older releases is read and cleaned up."""
    hadoop.job(dest, JOB).run(TASKS)
    older = dest / "_temporary" / f"manifest_{JOB}"
    (dest / "_temporary" / JOB).rename(older)
    for path in (older / "00" / "manifests").glob("*-manifest.json"):
        text = path.read_text().replace(f"/_temporary/{JOB}/", f"/_temporary/manifest_{JOB}/")
        path.write_text(text)
    report = sync.job(dest, JOB).commit()

    assert report.files == len(FILES)
    assert_committed(hadoop, dest)


@pytest.mark.parametrize("attempt", [0, 7, 123])
def test_commit_job_of_a_job_attempt(hadoop: Hadoop, dest: Path, attempt: int) -> None:
    """The number of the job attempt names the same directory on both sides."""
    hadoop.job(dest, JOB, attempt=attempt).run([{"part": b"1"}])
    sync.job(dest, JOB, attempt=attempt).commit()

    assert_committed(hadoop, dest, {"part": b"1"})


def test_commit_job_summary_loads_in_hadoop(hadoop: Hadoop, dest: Path, tmp_path: Path) -> None:
    """Our summary of a job of Hadoop's tasks has Hadoop's name, and Hadoop's tools read it."""
    hadoop.job(dest, JOB).run(TASKS)
    reports = tmp_path / "reports"
    reports.mkdir()
    key = "mapreduce.manifest.committer.summary.report.directory"
    sync.job(dest, JOB, options={key: f"file:{reports}"}).commit()
    summary = hadoop.success(reports / f"summary-{JOB}.json")

    assert summary["success"]
    assert summary["iostatistics"]["counters"]["committer_files_committed"] == len(FILES)
    assert f"jobId: {JOB}" in hadoop.print_success(reports / f"summary-{JOB}.json")
    assert f"jobId: {JOB}" in hadoop.print_success(dest / "_SUCCESS")


def test_abort_job_of_hadoop_tasks_leaves_other_jobs(hadoop: Hadoop, dest: Path) -> None:
    """Told to, our abort deletes the directory of its job, and Hadoop can commit the other."""
    other = "another-job"
    hadoop.job(dest, other).run([{"part-other": b"1"}])
    hadoop.job(dest, JOB).run(TASKS)
    with pytest.raises(OwnedError, match="--force"):
        sync.job(dest, JOB).abort()
    sync.job(dest, JOB).abort(force=True)
    assert not (dest / "_temporary" / JOB).exists()
    hadoop.job(dest, other, conf=VALIDATE).commit()

    assert read_tree(dest) == {"part-other": b"1"}


def test_commit_job_leaves_other_jobs(hadoop: Hadoop, dest: Path) -> None:
    """Our commit cleans up its own job only, and Hadoop can still commit the other."""
    other = "another-job"
    hadoop.job(dest, other).run([{"part-other": b"1"}])
    hadoop.job(dest, JOB).run(TASKS)
    sync.job(dest, JOB).commit()
    hadoop.job(dest, other, conf=VALIDATE).commit()

    assert read_tree(dest) == {**WHOLE, "part-other": b"1"}
    assert hadoop.success(dest / "_SUCCESS")["jobId"] == other


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_commit_job_after_a_classic_committer(hadoop: Hadoop, dest: Path, kind: Committer) -> None:
    """A table that FileOutputCommitter wrote takes more files, its empty marker gives way."""
    classic = hadoop.job(dest, "earlier", committer=kind).run([{"p=1/part-9": b"earlier"}])
    classic.commit()
    assert (dest / "_SUCCESS").read_bytes() == b""
    run_ours(dest, {(0, 0): {"p=1/part-0": b"new"}})
    sync.job(dest, JOB).commit()

    assert_committed(hadoop, dest, {"p=1/part-9": b"earlier", "p=1/part-0": b"new"})

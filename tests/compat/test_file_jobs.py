"""Whole jobs shared with Hadoop's FileOutputCommitter: its tasks and our job commit, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from asynccommit import sync
from asynccommit.api import JobRef
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.by_rename.file_output_v2 import UNSAFE
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, UnavailableError
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from tests.compat.test_jobs import FILES, TASKS, WHOLE
from tests.support.faults import Fault, Faults
from tests.support.hadoop import (
    JOB_TRACKER,
    Committer,
    Hadoop,
    HadoopError,
    HadoopJob,
    read_tree,
    write_tree,
)
from tests.support.jobs import HOST

pytestmark = [pytest.mark.jvm, pytest.mark.filterwarnings(f"ignore:{UNSAFE[:40]}")]

JOB = f"job_{JOB_TRACKER}_0001"
VERSIONS = ["v1", "v2"]
SIDES = ["hadoop", "ours"]


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    """A destination whose own name needs encoding."""
    return tmp_path / "a table=100%é 😀"


def classic(
    hadoop: Hadoop,
    dest: Path,
    version: str = "v1",
    attempt: int = 0,
    conf: Mapping[str, str] | None = None,
) -> HadoopJob:
    """Return a job of Hadoop's committer."""
    kind: Committer = "v2" if version == "v2" else "v1"
    return hadoop.job(dest, "unused", committer=kind, attempt=attempt, conf=conf)


def run_ours(
    dest: Path, tasks: Mapping[int, Mapping[str, bytes]], version: str = "v1", attempt: int = 0
) -> list[TaskCommit]:
    """Commit tasks of ours, number -> files; the job is neither set up nor committed."""

    async def run() -> list[TaskCommit]:
        commits = []
        for number, files in tasks.items():
            opened = JobRef(dest, JOB, attempt=attempt, committer=f"file_{version}").open()
            async with opened as job:
                task_id, attempt_id = job.layout.ids(number)
                write_tree(Path(await job.setup_task(attempt_id)), files)
                commits.append(await job.commit_task(task_id, attempt_id))
        return commits

    return asyncio.run(run())


def commit_ours(
    dest: Path, version: str = "v1", attempt: int = 0, conf: Mapping[str, str] | None = None
) -> JobReport:
    """Commit the job by our committer, without any message."""
    return sync.job(dest, JOB, attempt=attempt, committer=f"file_{version}", options=conf).commit()


def commit_job(side: str, hadoop: Hadoop, dest: Path, version: str = "v1") -> None:
    """Commit the job by Hadoop's committer or by ours."""
    if side == "hadoop":
        classic(hadoop, dest, version).commit()
    else:
        commit_ours(dest, version)


def assert_committed(dest: Path, expected: Mapping[str, bytes] = WHOLE) -> None:
    """See that the table is as expected, and that nothing but the marker is left."""
    assert read_tree(dest) == expected
    assert (dest / "_SUCCESS").exists()
    assert not (dest / "_temporary").exists()


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_job_of_hadoop_tasks(hadoop: Hadoop, dest: Path, version: str) -> None:
    """Our job commit makes visible what tasks of Hadoop's class committed, and nothing else."""
    job = classic(hadoop, dest, version).run(TASKS)
    job.task(7).setup().write({"never": b"committed"})
    report = commit_ours(dest, version)

    assert report.files == (len(FILES) if version == "v1" else 0)  # published by then
    assert read_tree(dest).keys() - {"empty dir/"} == WHOLE.keys() - {"empty dir/"}
    assert_committed(dest)


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_job_by_hadoop_of_our_tasks(hadoop: Hadoop, dest: Path, version: str) -> None:
    """Hadoop's job commit makes visible what our tasks committed."""
    job = classic(hadoop, dest, version).setup()
    run_ours(dest, dict(enumerate(TASKS)), version)
    job.commit()

    assert_committed(dest)


@pytest.mark.sample(2)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("version", VERSIONS)
def test_commit_job_of_tasks_of_both(hadoop: Hadoop, dest: Path, version: str, side: str) -> None:
    """Scenario 46: one job may have tasks of both, in directories that are there and in new ones.
    Scenario 46: one job may have tasks of both, in directories that are there and in new ones."""
    earlier = {"p=a b/q=50%25/part-9": b"earlier", "other/part-9": b"x"}
    write_tree(dest, earlier)
    job = classic(hadoop, dest, version).setup()
    job.task(0).setup().write(TASKS[0]).commit()
    run_ours(dest, {1: TASKS[1], 2: TASKS[2]}, version)
    commit_job(side, hadoop, dest, version)

    assert_committed(dest, {**WHOLE, **earlier})


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", SIDES)
@pytest.mark.parametrize("second", SIDES)
def test_the_last_attempt_wins(hadoop: Hadoop, dest: Path, first: str, second: str) -> None:
    """A second attempt takes the first one's place, whichever side commits them and the job."""
    job = classic(hadoop, dest).setup()
    for attempt, writer in enumerate((first, second)):
        task = job.task(0, attempt)
        files = {f"p=1/part-of-attempt-{attempt}": b"." * (attempt + 1)}
        if writer == "hadoop":
            task.setup().write(files).commit()
        else:
            commit_as_ours(dest, task.task_id, task.attempt_id, files)
    commit_job(first, hadoop, dest)

    assert_committed(dest, {"p=1/part-of-attempt-1": b".."})


def commit_as_ours(dest: Path, task_id: str, attempt_id: str, files: Mapping[str, bytes]) -> None:
    """Commit one task attempt by our committer under the ids that Hadoop gave it."""

    async def run() -> None:
        async with JobRef(dest, JOB, committer="file_v1").open() as job:
            write_tree(Path(await job.setup_task(attempt_id)), files)
            await job.commit_task(task_id, attempt_id)

    asyncio.run(run())


@pytest.mark.parametrize("side", SIDES)
def test_a_file_of_the_same_name(hadoop: Hadoop, dest: Path, side: str) -> None:
    """A file of the job replaces one of its name, as Hadoop has it; the rest stays."""
    write_tree(dest, {"p=1/part-0": b"old", "p=1/part-1": b"kept"})
    classic(hadoop, dest).run([{"p=1/part-0": b"new"}])
    commit_job(side, hadoop, dest)

    assert_committed(dest, {"p=1/part-0": b"new", "p=1/part-1": b"kept"})


@pytest.mark.parametrize("there, new", [({"x/a": b"a"}, {"x": b"f"}), ({"x": b"f"}, {"x/a": b"a"})])
def test_a_directory_of_a_files_name(
    hadoop: Hadoop, dest: Path, there: dict[str, bytes], new: dict[str, bytes]
) -> None:
    """Hadoop deletes a directory that has a file's name, or the reverse; ours touches nothing."""
    write_tree(dest, there)
    classic(hadoop, dest).run([new])
    with pytest.raises(CommitError, match=r"x.*(exists already|in the place of a directory)"):
        commit_ours(dest)
    untouched = {name: data for name, data in read_tree(dest).items() if "_temp" not in name}
    classic(hadoop, dest).commit()

    assert untouched == there
    assert_committed(dest, new)


@pytest.mark.parametrize("side", SIDES)
def test_another_job_in_the_same_place(hadoop: Hadoop, dest: Path, side: str) -> None:
    """Hadoop commits and deletes the other job's work with its own; ours leaves it alone."""
    classic(hadoop, dest).run([{"mine": b"1"}])
    other = "task_202602020000_0009_m_000000"
    write_tree(dest / "_temporary/0" / other, {"theirs": b"2"})
    commit_job(side, hadoop, dest)

    if side == "hadoop":
        assert_committed(dest, {"mine": b"1", "theirs": b"2"})
    else:
        assert read_tree(dest) == {"mine": b"1", f"_temporary/0/{other}/theirs": b"2"}
        sync.job(dest, "job_202602020000_0009", committer="file_v1").commit()
        assert_committed(dest, {"mine": b"1", "theirs": b"2"})


def test_hadoop_finishes_what_a_commit_of_ours_began(hadoop: Hadoop, dest: Path) -> None:
    """A commit of ours that died half-way leaves nothing that Hadoop's class could not finish."""
    tasks = [{f"p=1/part-{number}": b"1", f"part-{number}": b"2"} for number in range(6)]
    classic(hadoop, dest).run(tasks)
    broken = Faults(Fault("rename", UnavailableError, match=f"{dest}/part-3", times=99))
    job = FileV1Committer(
        Wrapped(LocalStore(), broken),
        FileLayout(Address("file", "", str(dest)), JOB),
        Options(),
        HOST,
    )

    async def die() -> None:
        with pytest.raises(CommitError, match="files are at their destinations"):
            await job.commit_job()

    asyncio.run(die())
    assert (dest / "_temporary" / JOB / "00" / "commit-record.json").exists()
    classic(hadoop, dest).commit()

    assert_committed(dest, {name: data for task in tasks for name, data in task.items()})


@pytest.mark.sample(2)
@pytest.mark.parametrize("committed", SIDES)
@pytest.mark.parametrize("recovered", SIDES)
def test_tasks_of_an_earlier_attempt(
    hadoop: Hadoop, dest: Path, committed: str, recovered: str
) -> None:
    """Scenario 46: a second application attempt keeps what a task has committed in the first."""
    first, second = classic(hadoop, dest).setup(), classic(hadoop, dest, attempt=1).setup()
    task = second.task(0)
    if committed == "hadoop":
        first.task(0).setup().write({"p=1/part-0": b"done"}).commit()
    else:
        run_ours(dest, {0: {"p=1/part-0": b"done"}})
    second.task(1).setup().write({"p=1/part-1": b"new"}).commit()
    if recovered == "hadoop":
        with hadoop.errors():
            task.committer.recoverTask(task.context)
        second.commit()
    else:
        assert recover(dest, task.task_id, attempt=1) is not None
        commit_ours(dest, attempt=1)

    assert_committed(dest, {"p=1/part-0": b"done", "p=1/part-1": b"new"})


def recover(dest: Path, task_id: str, version: str = "v1", attempt: int = 1) -> TaskCommit | None:
    """Recover a task by our committer."""

    async def run() -> TaskCommit | None:
        opened = JobRef(dest, JOB, attempt=attempt, committer=f"file_{version}").open()
        async with opened as job:
            assert isinstance(job, FileV1Committer)
            return await job.recover_task(task_id)

    return asyncio.run(run())


@pytest.mark.parametrize("side", SIDES)
def test_tasks_of_version_1_recovered_by_version_2(hadoop: Hadoop, dest: Path, side: str) -> None:
    """Scenario 46: after an upgrade, what a task of version 1 has committed is published by
    version 2."""
    classic(hadoop, dest).run([{"p=1/part-0": b"done"}])
    task = classic(hadoop, dest, "v2", attempt=1).setup().task(0)
    if side == "hadoop":
        with hadoop.errors():
            task.committer.recoverTask(task.context)
    else:
        recover(dest, task.task_id, "v2")

    assert (dest / "p=1/part-0").read_bytes() == b"done"
    commit_ours(dest, "v2", attempt=1)
    assert_committed(dest, {"p=1/part-0": b"done"})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_job_commit(hadoop: Hadoop, dest: Path, version: str) -> None:
    """Scenario 46: Hadoop says that version 1 cannot be committed twice, and fails; ours can, both
    times."""
    job = classic(hadoop, dest, version).run([{"part-0": b"1"}])
    repeatable = job.committer.isCommitJobRepeatable(job.context())
    job.commit()
    (dest / "_temporary").mkdir(exist_ok=True)
    if version == "v1":
        with pytest.raises(HadoopError, match="FileNotFound"):
            job.commit()
    else:
        job.commit()

    assert repeatable is (version == "v2")
    assert FileV1Committer.is_commit_job_repeatable
    other = dest.with_name("other")
    classic(hadoop, other, version).run([{"part-0": b"1"}])
    assert not commit_ours(other, version).already_committed
    assert commit_ours(other, version).already_committed
    assert_committed(other, {"part-0": b"1"})


@pytest.mark.parametrize("key, left", [("marksuccessfuljobs", "_SUCCESS"), ("cleanup.skipped", "")])
@pytest.mark.parametrize("version", VERSIONS)
def test_options_have_hadoops_effect(
    hadoop: Hadoop, tmp_path: Path, version: str, key: str, left: str
) -> None:
    """The marker and the clean-up are switched off by the same options, and leave the same."""
    name = f"mapreduce.fileoutputcommitter.{key}"
    conf = {name: "false" if left else "true"}
    found = []
    for side in SIDES:
        dest = tmp_path / side
        classic(hadoop, dest, version).run([{"part-0": b"1"}])
        if side == "hadoop":
            classic(hadoop, dest, version, conf=conf).commit()
        else:
            commit_ours(dest, version, conf=conf)
        found.append({path.name for path in dest.iterdir() if not path.name.startswith(".")})

    assert found[0] == found[1] == {"part-0", *(set() if left else {"_SUCCESS", "_temporary"})}


def test_version_3_is_refused_by_both(hadoop: Hadoop, dest: Path) -> None:
    """Scenario 46: there are two algorithms, for Hadoop's class as well."""
    context = classic(hadoop, dest).task_context(0, 0)
    conf = context.getConfiguration()
    conf.set("mapreduce.fileoutputcommitter.algorithm.version", "3")
    name = "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"
    with pytest.raises(HadoopError, match="Only 1 or 2 algorithm version"):
        hadoop.new(name, hadoop.path(str(dest)), context)

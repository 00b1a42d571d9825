"""FileOutputCommitter 1: tasks commit by a rename, jobs by moving what they left. Spec row 46."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asynccommit import api, open_job
from asynccommit.api import JobRef, job_statuses
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.layouts.file_output import FileLayout, job_of_task, recorded
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.ownership.shared_directories import find_jobs
from asynccommit.errors import (
    CommitError,
    CommittedError,
    DeniedError,
    OptionError,
    PreflightError,
    RejectedError,
    UnavailableError,
)
from asynccommit.options.job import CLASSIC, Mode, OnFailure, Options
from asynccommit.results import JobState
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.urls import Address
from tests.support.faults import Before, Fault, Faults
from tests.support.jobs import HOST, JOB, ids, run_task, visible, write

OTHER = "task_202601010000_0002_m_000000"


def job_at(
    dest: Path,
    *policies: Policy,
    attempt: int = 0,
    job_id: str = JOB,
    conf: Mapping[str, str] | None = None,
    **options: Any,
) -> FileV1Committer:
    """Return a committer of one job under ``dest``; policies go innermost."""
    chosen = Options.from_conf(conf) if conf else Options(**options)
    layout = FileLayout(Address("file", "", str(dest)), job_id, attempt)
    return FileV1Committer(Wrapped(LocalStore(), *policies), layout, chosen, HOST)


async def run_tasks(job: FileV1Committer, *tasks: Mapping[str, str]) -> list[TaskCommit]:
    """Set up the job and commit its tasks."""
    await job.setup_job()
    return [await run_task(job, number, files) for number, files in enumerate(tasks)]


def left(dest: Path) -> list[str]:
    """Return the files and empty directories that are below ``_temporary``."""
    below = (dest / "_temporary").rglob("*")
    return sorted(
        str(path.relative_to(dest / "_temporary"))
        for path in below
        if path.is_file() or not list(path.iterdir())
    )


# --- a job ------------------------------------------------------------------------------------


async def test_a_job_from_end_to_end(tmp_path: Path) -> None:
    """Nothing is visible before the job commits, and nothing but the output is left after it."""
    dest = tmp_path / "table"
    async with open_job(dest, committer="file_v1") as job:
        async with job.task(0) as task:
            write(task.directory, {"day=1/part-0": "a"})
        async with api.job(dest, job.job_id, committer="file_v1").task(1) as other:
            write(other.directory, {"day=1/part-1": "b", "part-1": "c"})
        assert other.commit is not None
        job.accept(other.commit)
        assert visible(dest) == {}

    assert job.report is not None
    assert (job.report.files, job.report.bytes, len(job.report.tasks)) == (3, 3, 2)
    assert visible(dest) == {"day=1/part-0": "a", "day=1/part-1": "b", "part-1": "c"}
    assert not (dest / "_temporary").exists()


async def test_layout_is_hadoops(tmp_path: Path) -> None:
    """Attempts, committed tasks and application attempts lie where Hadoop's class has them."""
    job = job_at(tmp_path, attempt=3)
    await job.setup_job()
    task_id, attempt_id = job.layout.ids(4, 1)
    place = await job.setup_task(attempt_id)
    assert place == f"{tmp_path}/_temporary/3/_temporary/{attempt_id}"
    await job.commit_task(task_id, attempt_id)

    assert (tmp_path / "_temporary/3" / task_id).is_dir()
    assert (task_id, attempt_id) == ids(4, 1)


async def test_an_empty_job(tmp_path: Path) -> None:
    """A job whose tasks wrote nothing is committed, and so is one without tasks."""
    jobs: list[list[dict[str, str]]] = [[], [{}]]
    for tasks in jobs:
        job = job_at(tmp_path)
        report = await job.commit_job(await run_tasks(job, *tasks))
        assert (report.files, visible(tmp_path)) == (0, {})
        assert (tmp_path / "_SUCCESS").exists()


async def test_a_job_id_is_used_once(tmp_path: Path) -> None:
    """A second setup of a job that is there is refused."""
    await job_at(tmp_path).setup_job()
    with pytest.raises(CommitError, match="this job attempt exists already"):
        await job_at(tmp_path).setup_job()


async def test_a_commit_is_repeatable(tmp_path: Path) -> None:
    """Scenario 46: a job commit that failed half-way is finished by the next call; the one after
    says so."""
    broken = job_at(tmp_path, Faults(Fault("rename", UnavailableError, match="part-9", times=9)))
    tasks = [{f"part-{number}": "x"} for number in range(12)]
    commits = await run_tasks(broken, *tasks)
    with pytest.raises(CommitError, match="files are at their destinations"):
        await broken.commit_job(commits)
    assert not (tmp_path / "_SUCCESS").exists()
    report = await job_at(tmp_path).commit_job(commits)

    assert (report.resumed, report.files) == (True, 12)
    assert (await job_at(tmp_path).commit_job(commits)).already_committed
    assert len(visible(tmp_path)) == 12
    assert FileV1Committer.is_commit_job_repeatable


async def test_version_1_tries_once(tmp_path: Path) -> None:
    """Scenario 46: as with Hadoop, the number of attempts is for version 2: a failure is told at
    once."""
    faults = Faults(Fault("rename", UnavailableError, match=f"{tmp_path}/part-0", times=1))
    job = job_at(tmp_path, faults, conf={CLASSIC + "failures.attempts": "5"})
    commits = await run_tasks(job, {"part-0": "x"})
    with pytest.raises(CommitError):
        await job.commit_job(commits)
    assert faults.rules[0].struck == 1


async def test_resumed_and_rolled_back_without_a_committers_name(tmp_path: Path) -> None:
    """The record says what kind of job it is: nobody who finishes it or undoes it has to."""
    for forward in (True, False):
        dest = tmp_path / str(forward)
        write(dest, {"part-0": "old"})
        broken = job_at(dest, Faults(Fault("rename", UnavailableError, match="part-1", times=9)))
        commits = await run_tasks(broken, {"part-0": "new", "part-1": "x", "new/part-2": "y"})
        with pytest.raises(CommitError):
            await broken.commit_job(commits)
        (status,) = await job_statuses(dest)
        assert (status.state, status.files) == (JobState.STOPPED, 3)
        await (api.job(dest).resume() if forward else api.job(dest).rollback())

        done = {"part-0": "new", "part-1": "x", "new/part-2": "y"}
        assert visible(dest) == (done if forward else {"part-0": "old"})
        assert not (dest / "_temporary").exists()


async def test_a_failure_that_rolls_back(tmp_path: Path) -> None:
    """With that policy a commit that fails half-way leaves everything as it was."""
    write(tmp_path, {"day=1/part-0": "old"})
    faults = Faults(Fault("rename", UnavailableError, match="day=1/part-1", times=1))
    job = job_at(tmp_path, faults, on_failure=OnFailure.ROLLBACK)
    files = {
        "day=1/part-0": "new",
        "day=1/part-1": "x",
        "day=2/a": "",
        "day=2/b": "",
        "day=2/c": "",
    }
    commits = await run_tasks(job, files)
    with pytest.raises(CommitError, match="rolled back"):
        await job.commit_job(commits)

    assert visible(tmp_path) == {"day=1/part-0": "old"}


# --- modes ------------------------------------------------------------------------------------


async def test_append_replaces_files_of_the_same_name(tmp_path: Path) -> None:
    """A file takes the place of one of its name, as with Hadoop; all others stay."""
    write(tmp_path, {"part-0": "old", "day=1/part-0": "old", "day=1/kept": "kept"})
    job = job_at(tmp_path)
    report = await job.commit_job(await run_tasks(job, {"part-0": "a", "day=1/part-0": "b"}))

    assert visible(tmp_path) == {"part-0": "a", "day=1/part-0": "b", "day=1/kept": "kept"}
    assert report.replaced == 2


@pytest.mark.parametrize("there, new", [("x/a", "x"), ("x", "x/a")])
async def test_a_file_and_a_directory_of_one_name(tmp_path: Path, there: str, new: str) -> None:
    """Neither takes the other's place, unless the option says so: Hadoop deletes what is there."""
    write(tmp_path, {there: "old"})
    commits = await run_tasks(job_at(tmp_path), {new: "new"})
    with pytest.raises(PreflightError, match=r"delete\.target\.files"):
        await job_at(tmp_path).commit_job(commits)
    assert visible(tmp_path) == {there: "old"}
    await job_at(tmp_path, delete_target_files=True).commit_job(commits)

    assert visible(tmp_path) == {new: "new"}


async def test_mode_fail(tmp_path: Path) -> None:
    """A table that holds something is refused before any task runs."""
    write(tmp_path, {"part-0": "old"})
    with pytest.raises(PreflightError, match="not empty"):
        await job_at(tmp_path).setup_job(mode=Mode.FAIL)
    assert not (tmp_path / "_temporary").exists()


@pytest.mark.parametrize(
    "mode, kept",
    [(Mode.REPLACE_TABLE, {}), (Mode.REPLACE_PARTITIONS, {"day=2/old": "old", "old": "old"})],
)
async def test_modes_that_replace(tmp_path: Path, mode: Mode, kept: dict[str, str]) -> None:
    """The table, or the partitions that are written to, hold the new files and no old ones."""
    write(tmp_path, {"day=1/old": "old", "day=2/old": "old", "old": "old"})
    job = job_at(tmp_path)
    commits = await run_tasks(job, {"day=1/new": "a"}, {"day=3/new": "b"})
    await job.commit_job(commits, mode=mode)

    assert visible(tmp_path) == {"day=1/new": "a", "day=3/new": "b", **kept}
    assert not (tmp_path / "_temporary").exists()


# --- whole directories ------------------------------------------------------------------------

MANY = {f"day=1/part-{number}": "x" for number in range(20)}


@pytest.mark.usefixtures("reached_by_path")
async def test_a_directory_is_moved_as_a_whole(tmp_path: Path) -> None:
    """Where nothing is, one request moves a task's directory; what others have for it follows."""
    seen = Faults()
    commits = await run_tasks(job_at(tmp_path), MANY, {"day=1/other": "y", "day=1/hour=1/z": "z"})
    await job_at(tmp_path, seen).commit_job(commits)
    moved = [op.args[1] for op in seen.seen if op.name == "rename" and "_temp" not in op.args[1]]

    assert sorted(moved) == sorted(
        f"{tmp_path}/{name}" for name in ["_SUCCESS", "day=1", "day=1/hour=1/z", "day=1/other"]
    )
    assert visible(tmp_path) == {**MANY, "day=1/other": "y", "day=1/hour=1/z": "z"}


@pytest.mark.usefixtures("reached_by_path")
async def test_a_directory_that_the_filesystem_does_not_rename(tmp_path: Path) -> None:
    """Where a directory cannot be moved as a whole, as on an overlay, its files are, one by one."""
    faults = Faults(Fault("rename", RejectedError, f"day=1 {tmp_path}/day=1"))
    job = job_at(tmp_path, faults)
    commits = await run_tasks(job, {f"day=1/part-{n}": "x" for n in range(9)})
    await job.commit_job(commits)

    assert faults.rules[0].struck == 1
    assert len(visible(tmp_path)) == 9


@pytest.mark.usefixtures("reached_by_path")
async def test_files_of_moved_directories_are_counted_at_once(tmp_path: Path) -> None:
    """A failure after a directory was moved as a whole says how many files came with it."""
    job = job_at(tmp_path, Faults(Fault("mkdir", DeniedError, f"{tmp_path}/day=2")))
    commits = await run_tasks(job, {f"day=1/{n}": "x" for n in range(9)} | {"day=2/a": "y"})
    with pytest.raises(CommitError, match="; 9 files are at their destinations"):
        await job.commit_job(commits)
    assert len(visible(tmp_path)) == 9

    report = await job_at(tmp_path).commit_job(commits)
    assert (report.files, len(visible(tmp_path))) == (10, 10)


@pytest.mark.usefixtures("reached_by_path")
async def test_a_directory_that_is_there_is_merged(tmp_path: Path) -> None:
    """File by file where the destination is there, and whole again one level further down."""
    write(tmp_path, {"day=1/old": "old"})
    deep = {f"day=1/hour=1/part-{number}": "x" for number in range(9)}
    seen = Faults()
    commits = await run_tasks(job_at(tmp_path), {**deep, "day=1/new": "n"})
    await job_at(tmp_path, seen).commit_job(commits)
    moved = [op.args[1] for op in seen.seen if op.name == "rename" and "_temp" not in op.args[1]]

    assert sorted(moved) == sorted(
        f"{tmp_path}/{name}" for name in ["_SUCCESS", "day=1/hour=1", "day=1/new"]
    )
    assert visible(tmp_path) == {**deep, "day=1/new": "n", "day=1/old": "old"}


async def test_a_stranger_in_a_directory_is_not_published(tmp_path: Path) -> None:
    """What came to a task's directory after it was read is not moved with it."""
    commits = await run_tasks(job_at(tmp_path), MANY)

    async def stray() -> None:
        place = tmp_path / "_temporary/0" / ids(0)[0]
        await asyncio.to_thread(write, place, {"day=1/stray": "!"})

    before = Before("put", "commit-plan", stray)
    await job_at(tmp_path, before).commit_job(commits)

    assert visible(tmp_path) == MANY
    assert not (tmp_path / "_temporary").exists()


async def test_a_file_that_takes_anothers_place(tmp_path: Path) -> None:
    """A directory with as many files, but others, is not moved as a whole: one would be lost."""
    commits = await run_tasks(job_at(tmp_path), MANY)
    place = tmp_path / "_temporary/0" / ids(0)[0]
    lost = place / min(MANY)

    async def swap() -> None:
        await asyncio.to_thread(lost.rename, lost.with_name("stray"))

    before = Before("put", "commit-plan", swap)
    with pytest.raises(CommitError, match=lost.name):
        await job_at(tmp_path, before).commit_job(commits)

    assert "stray" not in [Path(name).name for name in visible(tmp_path)]
    await asyncio.to_thread(lost.with_name("stray").rename, lost)
    await api.job(tmp_path).resume()
    assert visible(tmp_path) == MANY


async def test_a_directory_that_came_meanwhile(tmp_path: Path) -> None:
    """Scenario 46: another job makes the directory just before it is moved: both jobs' files are
    in it."""
    commits = await run_tasks(job_at(tmp_path), {**MANY, "day=2/x": "2"})

    async def another() -> None:
        await asyncio.to_thread(write, tmp_path, {"day=1/of-another": "o"})

    before = Before("rename", f"{tmp_path}/day=1", another)
    report = await job_at(tmp_path, before).commit_job(commits)

    assert visible(tmp_path) == {**MANY, "day=1/of-another": "o", "day=2/x": "2"}
    assert report.files == len(MANY) + 1


# --- what is not trusted ----------------------------------------------------------------------


async def test_two_tasks_with_one_file(tmp_path: Path) -> None:
    """Hadoop lets the second one replace the first one's; here it is refused."""
    commits = await run_tasks(job_at(tmp_path), {"part-0": "a"}, {"part-0": "b"})
    with pytest.raises(PreflightError, match="part-0 is the destination of both"):
        await job_at(tmp_path).commit_job(commits)
    assert visible(tmp_path) == {}


@pytest.mark.parametrize("name", ["_SUCCESS", "_temporary/x"])
async def test_names_of_the_protocol(tmp_path: Path, name: str) -> None:
    """A task that writes the marker, or into ``_temporary``, is refused when it commits."""
    job = job_at(tmp_path)
    with pytest.raises(CommitError, match=f"{name}.*belongs to the commit protocol"):
        await run_tasks(job, {name: "x"})


async def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """It is refused before anything changes: the marker could not name it."""
    job = job_at(tmp_path)
    with pytest.raises(CommitError, match="not allowed in a path"):
        await run_tasks(job, {"part-\udcff": "a"})
    write(tmp_path / "_temporary/0" / ids(1)[0], {"day=\udcff/part-1": "b"})
    with pytest.raises(PreflightError, match="not allowed in a path"):
        await job.commit_job()

    assert visible(tmp_path) == {}


async def test_ids_of_others(tmp_path: Path) -> None:
    """A directory that is no task's of this job would be in every other job's way."""
    job = job_at(tmp_path)
    (commit,) = await run_tasks(job, {"part-0": "a"})
    for attempt_id in ("a0", OTHER.replace("task", "attempt") + "_0"):
        with pytest.raises(OptionError, match="as attempt_202601010000_0001_m_000000_0"):
            await job.setup_task(attempt_id)
    for task_id in ("t0", OTHER):
        with pytest.raises(OptionError, match="does not belong to this job"):
            await job.commit_task(task_id, ids(0)[1])
    with pytest.raises(PreflightError, match="is not a task of job"):
        await job.commit_job([commit, replace(commit, task_id=OTHER)])

    assert visible(tmp_path) == {}


async def test_a_link_in_a_tasks_directory(tmp_path: Path) -> None:
    """What a link leads to is no output of the job."""
    job = job_at(tmp_path)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    os.symlink("/etc", f"{await job.setup_task(attempt_id)}/etc")
    with pytest.raises(CommitError, match="link"):
        await job.commit_task(task_id, attempt_id)


async def test_a_file_beside_the_tasks(tmp_path: Path) -> None:
    """Hadoop publishes whatever is in the job attempt's directory; here it is refused."""
    await run_tasks(job_at(tmp_path), {"part-0": "a"})
    write(tmp_path, {"_temporary/0/stray": "!"})
    with pytest.raises(PreflightError, match="not the directory of a committed task"):
        await job_at(tmp_path).commit_job()


async def test_a_late_attempt_is_noticed(tmp_path: Path) -> None:
    """With the messages at hand, a task that another attempt has replaced fails the job."""
    job = job_at(tmp_path)
    commits = await run_tasks(job, {"part-0": "a"})
    await run_task(job, 0, {"part-0": "b"}, attempt=1)
    with pytest.raises(PreflightError, match="another attempt of the task replaced it"):
        await job_at(tmp_path).commit_job(commits)
    await job_at(tmp_path).commit_job()  # without them the last one counts, as with Hadoop

    assert visible(tmp_path) == {"part-0": "b"}


async def test_a_committed_task_that_is_gone(tmp_path: Path) -> None:
    """A task that has a message and no directory fails the job."""
    commits = await run_tasks(job_at(tmp_path), {"part-0": "a"})
    (tmp_path / "_temporary/0" / ids(0)[0]).rename(tmp_path / "gone")
    with pytest.raises(PreflightError, match="is missing although its task committed"):
        await job_at(tmp_path).commit_job(commits)


async def test_tasks_that_no_message_names(tmp_path: Path) -> None:
    """They are passed over and said; a strict job is refused."""
    commits = await run_tasks(job_at(tmp_path), {"part-0": "a"}, {"part-1": "b"})
    with pytest.raises(PreflightError, match="was not passed"):
        await job_at(tmp_path).commit_job(commits[:1], strict=True)
    report = await job_at(tmp_path).commit_job(commits[:1])

    assert len(report.ignored) == 1
    assert visible(tmp_path) == {"part-0": "a"}


async def test_a_job_that_has_nothing_where_others_have(tmp_path: Path) -> None:
    """A wrong job id would commit nothing and say that all is well."""
    write(tmp_path, {f"_temporary/0/{OTHER}/part-0": "x"})
    with pytest.raises(PreflightError, match="only of job_202601010000_0002"):
        await job_at(tmp_path).commit_job()


# --- tasks ------------------------------------------------------------------------------------


async def test_an_attempt_without_a_directory(tmp_path: Path) -> None:
    """Hadoop takes it for a task without output; here it was lost, and that is an error."""
    job = job_at(tmp_path)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    Path(await job.setup_task(attempt_id)).rmdir()
    with pytest.raises(CommitError, match=attempt_id):
        await job.commit_task(task_id, attempt_id)


@pytest.mark.parametrize("error", [UnavailableError, asyncio.CancelledError])
async def test_a_second_attempt_that_fails_keeps_the_first(
    tmp_path: Path, error: Callable[[str, str], BaseException]
) -> None:
    """Hadoop deletes the first one's files before it renames; here they are put back."""
    await run_tasks(job_at(tmp_path), {"part-0": "a"})
    task_id, attempt_id = ids(0, 1)
    last = Fault("rename", error, match=f"{attempt_id} {tmp_path}", skip=1)
    broken = job_at(tmp_path, Faults(last))
    write(await broken.setup_task(attempt_id), {"part-0": "b"})
    with pytest.raises((CommitError, asyncio.CancelledError)):
        await broken.commit_task(task_id, attempt_id)
    await broken.abort_task(task_id, attempt_id)
    await job_at(tmp_path).commit_job()

    assert visible(tmp_path) == {"part-0": "a"}


async def test_a_task_that_comes_too_late(tmp_path: Path) -> None:
    """Once the job commit has begun no task replaces what is being moved, nor deletes anything."""
    broken = job_at(tmp_path, Faults(Fault("rename", UnavailableError, match="/part-0", times=9)))
    commits = await run_tasks(job_at(tmp_path), {"part-0": "a"})
    late = job_at(tmp_path)
    task_id, attempt_id = ids(0, 1)
    place = Path(await late.setup_task(attempt_id))
    with pytest.raises(CommitError):
        await broken.commit_job(commits)
    with pytest.raises(CommitError, match="its job has already begun"):
        await late.commit_task(task_id, attempt_id)
    await late.abort_task(task_id, attempt_id)

    assert place.exists()
    await api.job(tmp_path).resume()
    assert visible(tmp_path) == {"part-0": "a"}


async def test_an_attempt_that_commits_while_the_job_begins_to(tmp_path: Path) -> None:
    """What the job has read is not there any more: it is refused, and nothing is lost."""
    commits = await run_tasks(job_at(tmp_path), {"part-0": "a", "part-1": "a"})
    other = job_at(tmp_path)
    task_id, attempt_id = ids(0, 1)
    write(await other.setup_task(attempt_id), {"part-0": "b", "part-1": "b"})

    async def late() -> None:
        await other.commit_task(task_id, attempt_id)

    before = Before("put", "commit-plan", late)
    with pytest.raises(PreflightError, match="another attempt of the task committed as"):
        await job_at(tmp_path, before).commit_job(commits)

    assert visible(tmp_path) == {}
    await job_at(tmp_path).commit_job()
    assert visible(tmp_path) == {"part-0": "b", "part-1": "b"}
    assert not (tmp_path / "_temporary").exists()


async def test_an_attempt_that_slept_while_the_job_began(tmp_path: Path) -> None:
    """It saw no record and goes on late: what it has moved away is put back, and committed."""
    commits = await run_tasks(job_at(tmp_path), {"part-0": "a"})
    task_id, attempt_id = ids(0, 1)
    awake, asleep = asyncio.Event(), asyncio.Event()

    async def sleep() -> None:
        asleep.set()
        await awake.wait()

    sleepy = job_at(tmp_path, Before("rename", attempt_id, sleep))
    write(await sleepy.setup_task(attempt_id), {"part-0": "b"})
    late = asyncio.create_task(sleepy.commit_task(task_id, attempt_id))
    await asleep.wait()

    async def wake() -> None:
        awake.set()
        with pytest.raises(CommitError, match="its job has already begun"):
            await late

    await job_at(tmp_path, Before("rename", f"{tmp_path}/part-0", wake)).commit_job(commits)

    assert visible(tmp_path) == {"part-0": "a"}
    assert not (tmp_path / "_temporary").exists()


async def test_an_aborted_attempt(tmp_path: Path) -> None:
    """Its directory goes, twice is once, and what another attempt has committed stays."""
    job = job_at(tmp_path)
    await run_tasks(job, {"part-0": "a"})
    task_id, attempt_id = ids(0, 1)
    write(await job.setup_task(attempt_id), {"part-0": "b"})
    await job.abort_task(task_id, attempt_id)
    await job.abort_task(task_id, attempt_id)
    await job.commit_job()

    assert visible(tmp_path) == {"part-0": "a"}


# --- earlier application attempts -------------------------------------------------------------


@pytest.mark.parametrize("last", [1, 3])
async def test_tasks_of_earlier_attempts_are_kept(tmp_path: Path, last: int) -> None:
    """Scenario 46: the last attempt before that has the task counts; Hadoop looks at the one
    before only."""
    await run_tasks(job_at(tmp_path), {"part-0": "a"}, {"part-1": "lost"})
    job = job_at(tmp_path, attempt=last)
    await job.setup_job()
    commits = [await job.recover_task(ids(0)[0]), await run_task(job, 1, {"part-1": "again"}, 9)]
    again = await job.recover_task(ids(0)[0])
    await job.commit_job([commit for commit in commits if commit is not None])

    assert again == commits[0]
    assert visible(tmp_path) == {"part-0": "a", "part-1": "again"}
    assert not (tmp_path / "_temporary").exists()


@pytest.mark.parametrize(
    "attempt, text", [(0, "the first application attempt"), (2, "run it again")]
)
async def test_nothing_to_recover(tmp_path: Path, attempt: int, text: str) -> None:
    """Scenario 46: where no attempt has committed the task it has to run: Hadoop warns, and loses
    it."""
    with pytest.raises(CommitError, match=text):
        await job_at(tmp_path, attempt=attempt).recover_task(ids(0)[0])


async def test_nothing_is_recovered_from_a_commit_that_has_begun(tmp_path: Path) -> None:
    """What an earlier application attempt had not moved yet stays where its commit looks for it."""
    broken = job_at(tmp_path, Faults(Fault("rename", UnavailableError, match="/part-0", times=9)))
    with pytest.raises(CommitError):
        await broken.commit_job(await run_tasks(broken, {"part-0": "a"}, {"part-1": "b"}))
    second = job_at(tmp_path, attempt=1)
    await second.setup_job()
    with pytest.raises(CommitError, match="another attempt of this job"):
        await second.recover_task(ids(0)[0])
    await api.job(tmp_path).resume()

    assert visible(tmp_path) == {"part-0": "a", "part-1": "b"}


# --- the ends of a job ------------------------------------------------------------------------


async def test_other_jobs_keep_what_they_have(tmp_path: Path) -> None:
    """Commit and abort take this job's directories, of all its attempts, and no others."""
    theirs = {
        f"_temporary/0/{OTHER}/part-0": "x",
        "_temporary/0/_temporary/attempt_202601010000_0002_m_000001_0/part-1": "y",
        "_temporary/8/_temporary/attempt_202601010000_0003_m_000001_0/part-1": "z",
    }
    for ending in ("commit", "abort"):
        dest = tmp_path / ending
        write(dest, theirs)
        job = job_at(dest, attempt=1)
        await run_tasks(job, {"part-0": "a"})
        await job.setup_task(ids(7)[1])
        write(dest, {f"_temporary/0/{ids(5)[0]}/never": "!"})
        await (job.commit_job() if ending == "commit" else job.abort_job())

        assert left(dest) == sorted(name.removeprefix("_temporary/") for name in theirs)
        assert visible(dest) == ({"part-0": "a"} if ending == "commit" else {})


@pytest.mark.parametrize("tasks", [0, 1])
@pytest.mark.parametrize("ending", ["commit", "abort"])
async def test_a_job_that_has_nothing_yet_goes_on(tmp_path: Path, ending: str, tasks: int) -> None:
    """Another that ends takes the directory that they share, while nothing is in it."""
    first, other = job_at(tmp_path), job_at(tmp_path, job_id="job_202601010000_0002")
    await first.setup_job()
    await other.setup_job()
    await (other.commit_job([]) if ending == "commit" else other.abort_job())
    assert not (tmp_path / "_temporary/0").exists()
    await first.commit_job([await run_task(first, n, {f"part-{n}": "a"}) for n in range(tasks)])

    assert visible(tmp_path) == dict([("part-0", "a")][:tasks])
    assert not (tmp_path / "_temporary").exists()


@pytest.mark.parametrize(
    "ignored, warned, failed", [(None, True, False), ("true", False, False), ("false", False, True)]
)
async def test_cleanup_failures_ignored(
    tmp_path: Path, ignored: str | None, warned: bool, failed: bool
) -> None:
    """A failed clean-up is a warning, nothing, or an error as with Hadoop; the marker is there."""
    conf = {} if ignored is None else {CLASSIC + "cleanup-failures.ignored": ignored}
    faults = Faults(Fault("delete_tree", UnavailableError, match=ids(0)[0]))
    job = job_at(tmp_path, faults, conf=conf)
    commits = await run_tasks(job, {"part-0": "a"})
    if failed:
        with pytest.raises(CommitError, match="the job is committed, but"):
            await job.commit_job(commits)
    else:
        assert bool((await job.commit_job(commits)).warnings) is warned

    assert visible(tmp_path) == {"part-0": "a"}
    assert (tmp_path / "_SUCCESS").exists()
    again = await job_at(tmp_path).commit_job(commits)
    assert again.already_committed or again.resumed
    assert not (tmp_path / "_temporary").exists()


async def test_abort_twice_and_after_a_success(tmp_path: Path) -> None:
    """Scenario 46: the first abort deletes, the next finds nothing; one after a success changes
    nothing."""
    job = job_at(tmp_path / "t")
    await run_tasks(job, {"part-0": "a"})
    assert "deleted" in (await job.abort_job()).outcome
    assert not (tmp_path / "t").exists()
    assert (await job.abort_job()).outcome == "nothing to clean up"
    again = job_at(tmp_path / "t")
    await again.commit_job(await run_tasks(again, {"part-0": "a"}))
    await again.abort_job()

    assert visible(tmp_path / "t") == {"part-0": "a"}


async def test_abort_after_the_commit_has_begun(tmp_path: Path) -> None:
    """Everything is kept that is needed to finish or undo it."""
    broken = job_at(tmp_path, Faults(Fault("rename", UnavailableError, match="/part-0", times=9)))
    commits = await run_tasks(broken, {"part-0": "a"})
    with pytest.raises(CommitError):
        await broken.commit_job(commits)
    assert (await job_at(tmp_path).abort_job()).outcome == "kept"
    await api.job(tmp_path).resume()

    assert visible(tmp_path) == {"part-0": "a"}
    with pytest.raises(CommittedError):
        await job_at(tmp_path).rollback_job()


@pytest.mark.parametrize("match", ["commit-plan", "commit-record"])
async def test_an_abort_while_the_commit_begins(tmp_path: Path, match: str) -> None:
    """Only one of the two goes on, and nothing is published of a job that was aborted."""
    commits = await run_tasks(job_at(tmp_path), {"day=1/part-0": "a"})
    before = Before("put", match, job_at(tmp_path).abort_job)
    with pytest.raises(CommitError):
        await job_at(tmp_path, before).commit_job(commits)

    assert visible(tmp_path) == {}
    assert left(tmp_path) == []


async def test_a_job_of_hadoops_that_was_never_set_up_here(tmp_path: Path) -> None:
    """Without any directory of ours an abort and a commit that begin at once exclude each other."""
    for match in ("commit-plan", "commit-record"):
        dest = tmp_path / match
        write(dest, {f"_temporary/0/{ids(0)[0]}/part-0": "a"})
        before = Before("put", match, job_at(dest).abort_job)
        with pytest.raises(CommitError):
            await job_at(dest, before).commit_job()

        assert visible(dest) == {}


async def test_a_commit_of_hadoops_that_died_half_way(tmp_path: Path) -> None:
    """What it has moved stays, what is left in the tasks' directories follows."""
    write(tmp_path, {"day=1/part-0": "moved", f"_temporary/0/{ids(0)[0]}/day=1/": ""})
    write(tmp_path, {f"_temporary/0/{ids(1)[0]}/day=1/part-1": "not yet"})
    report = await job_at(tmp_path).commit_job()

    assert report.files == 1
    assert visible(tmp_path) == {"day=1/part-0": "moved", "day=1/part-1": "not yet"}
    marker = json.loads((tmp_path / "_SUCCESS").read_text())
    assert marker["committer"].endswith("output.FileOutputCommitter")


# --- what is there ----------------------------------------------------------------------------


async def test_jobs_are_found_by_the_names_of_their_tasks(tmp_path: Path) -> None:
    """Every job that has tasks under a destination, with how many of them have committed."""
    dest = Address("file", "", str(tmp_path))
    write(tmp_path, {"_temporary/0/task_1_0001_m_000000/": "", "_temporary/0/other/": ""})
    write(
        tmp_path, {"_temporary/0/task_1_0001_r_000003/": "", "_temporary/00/task_1_0001_m_1/": ""}
    )
    write(tmp_path, {"_temporary/12/_temporary/attempt_1_0002_m_000000_0/": ""})
    found = await find_jobs(Wrapped(LocalStore()), dest)

    assert found == {FileLayout(dest, "job_1_0001", 0): 2, FileLayout(dest, "job_1_0002", 12): 0}


def test_ids_name_their_job() -> None:
    """Tasks of Spark, of MapReduce and of jobs with other ids; a record tells the layout."""
    spark = "20261121013123345644603033799683_0001"
    dest = Address("file", "", "/t")

    assert job_of_task(f"attempt_{spark}_m_000001_3") == f"job_{spark}"
    assert job_of_task("task_1_m_0") is None
    assert FileLayout(dest, "ab").ids(7)[0] == "task_ab_0000_m_000007"
    uuid = "7b0c4a1e-1111-4000-8000-000000000000"
    assert FileLayout(dest, uuid).run_id == f"{uuid.replace('-', '')}_0000"
    assert not FileLayout(dest, "job_1_0001").has_source("task_1_0002_m_000000", below=True)
    assert recorded(Layout(dest, "a"), {"layout": "file"}) == FileLayout(dest, "a")
    assert recorded(FileLayout(dest, "a"), {}) == Layout(dest, "a")


@given(st.text(min_size=1, max_size=9), st.text(min_size=1, max_size=9))
@example("load-2026-1-11", "load-2026-11-1")
@example("7b0c4a1e-1111-4000-8000-000000000000", "7b0c4a1e-1111-4000-80-00000000000000")
@example("\u00e9", "\u00e8")
def test_ids_of_two_jobs(one: str, other: str) -> None:
    """Two jobs whose ids have the same letters and digits do not take each other's tasks."""
    dest = Address("file", "", "/t")
    try:
        jobs = [FileLayout(dest, one), FileLayout(dest, other)]
    except OptionError:
        return  # no name of a file

    assert jobs[0].has_committed(jobs[0].ids(3)[0])
    assert jobs[0].has_attempt(jobs[0].ids(3)[1])
    if one != other:
        assert not jobs[0].has_committed(jobs[1].ids(3)[0])
        assert not jobs[0].has_attempt(jobs[1].ids(3)[1])


@pytest.mark.parametrize("committer", ["manifest", "file_v1", "file_v2"])
@pytest.mark.filterwarnings("ignore::asynccommit.commit.errors.CommitterWarning")
async def test_a_number_is_no_job_id(tmp_path: Path, committer: str) -> None:
    """``_temporary/0`` is of all jobs of stock Spark: a job ``0`` would delete what they have."""
    write(tmp_path, {f"_temporary/0/{OTHER}/part-0": "x"})
    with pytest.raises(OptionError, match="choose another, such as 'job-0'"):
        async with JobRef(tmp_path, "0", committer=committer).open() as job:
            await job.setup_job()

    assert left(tmp_path) == [f"0/{OTHER}/part-0"]


async def test_a_file_layout_is_wanted(tmp_path: Path) -> None:
    """The committer opens for an application attempt, and plans without changing anything."""
    async with JobRef(tmp_path, JOB, committer="file").open() as job:
        await job.setup_job()
        await job.setup_task(ids(0)[1])
        await job.commit_task(*ids(0))
        report = await job.plan_job()

    assert (report.files, len(report.tasks)) == (0, 1)
    assert (tmp_path / "_temporary/0" / ids(0)[0]).is_dir()

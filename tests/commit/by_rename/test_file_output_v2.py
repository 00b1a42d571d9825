"""FileOutputCommitter 2: tasks publish their files; what that costs, and what is kept of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from asynccommit import Job, open_job
from asynccommit.commit.by_rename.file_output_v2 import UNSAFE, FileV2Committer
from asynccommit.commit.errors import CommitterWarning
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, PreflightError, UnavailableError, UnsupportedError
from asynccommit.options.job import CLASSIC, Mode, Options
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.urls import Address
from tests.commit.by_rename.test_file_output_v1 import OTHER
from tests.commit.by_rename.test_file_output_v1 import job_at as job_of_v1
from tests.support.faults import Fault, Faults
from tests.support.jobs import HOST, JOB, ids, run_task, visible, write


def job_at(
    dest: Path, *policies: Policy, attempt: int = 0, conf: Mapping[str, str] | None = None
) -> FileV2Committer:
    """Return a committer of one job under ``dest``; policies go innermost."""
    layout = FileLayout(Address("file", "", str(dest)), JOB, attempt)
    options = Options.from_conf(conf or {})
    return FileV2Committer(Wrapped(LocalStore(), *policies), layout, options, HOST)


async def run_tasks(job: FileV2Committer, *tasks: Mapping[str, str]) -> list[TaskCommit]:
    """Set up the job and commit its tasks."""
    await job.setup_job()
    return [await run_task(job, number, files) for number, files in enumerate(tasks)]


async def test_a_job_from_end_to_end(tmp_path: Path) -> None:
    """Who asks for it is warned; files are visible from their task's commit on."""
    dest = tmp_path / "table"
    with pytest.warns(CommitterWarning, match="a job that fails leaves them there"):
        job = await run_job(dest)

    assert job.report is not None
    assert (job.report.files, job.report.bytes, len(job.report.tasks)) == (1, 1, 1)
    assert UNSAFE in job.report.warnings
    assert (dest / "x").is_dir()
    assert not (dest / "_temporary").exists()


async def run_job(dest: Path) -> Job:
    """Run a job of one task, and see what of it is visible when."""
    async with open_job(dest, committer="file_v2") as job:
        async with job.task(0) as task:
            await asyncio.to_thread(write, task.directory, {"day=1/part-0": "a", "x/": ""})
            assert visible(dest) == {}
        assert visible(dest) == {"day=1/part-0": "a"}
        assert not (dest / "_SUCCESS").exists()
    return job


async def test_a_job_that_fails(tmp_path: Path) -> None:
    """What its tasks have committed stays, and the abort says so."""
    job = job_at(tmp_path)
    await run_tasks(job, {"part-0": "a"})
    await job.setup_task(ids(1)[1])
    report = await job.abort_job()

    assert "published already and remain" in report.warnings[0]
    assert visible(tmp_path) == {"part-0": "a"}
    assert not (tmp_path / "_temporary").exists()


@pytest.mark.parametrize("mode", [Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
async def test_modes_that_replace(tmp_path: Path, mode: Mode) -> None:
    """There is no moment at which old and new could be exchanged: refused, with what to take."""
    job = job_at(tmp_path)
    with pytest.raises(UnsupportedError, match=f"'file_v1' or 'manifest' for the mode {mode}"):
        await job.setup_job(mode=mode)
    for act in (job.commit_job, job.plan_job):
        with pytest.raises(UnsupportedError):
            await act(mode=mode)
    with pytest.raises(UnsupportedError):
        await job.commit_job(overwrite=[f"{tmp_path}/day=1"])


async def test_mode_fail(tmp_path: Path) -> None:
    """It is looked at in setup; in the job commit the job's own files are there."""
    job = job_at(tmp_path)
    await job.setup_job(mode=Mode.FAIL)
    commits = [await run_task(job, 0, {"part-0": "a"})]
    await job.commit_job(commits, mode=Mode.FAIL)

    assert visible(tmp_path) == {"part-0": "a"}
    with pytest.raises(PreflightError, match="not empty"):
        await job_at(tmp_path).setup_job(mode=Mode.FAIL)


async def test_files_of_the_same_name(tmp_path: Path) -> None:
    """A second attempt replaces what the first has published, and what was there before."""
    write(tmp_path, {"part-0": "old", "part-1": "kept"})
    job = job_at(tmp_path)
    await run_tasks(job, {"part-0": "a", "of-attempt-0": "left"})
    await run_task(job, 0, {"part-0": "b"}, attempt=1)
    await job.commit_job()

    # The file of the other name is what makes version 2 unsafe.
    assert visible(tmp_path) == {"part-0": "b", "part-1": "kept", "of-attempt-0": "left"}


@pytest.mark.parametrize("there, new", [("x/a", "x"), ("x", "x/a")])
async def test_a_file_and_a_directory_of_one_name(tmp_path: Path, there: str, new: str) -> None:
    """Hadoop deletes what is there, with all it holds; here the task fails."""
    write(tmp_path, {there: "old"})
    with pytest.raises(CommitError, match="x"):
        await run_tasks(job_at(tmp_path), {new: "new"})

    assert visible(tmp_path) == {there: "old"}


async def test_a_task_commit_that_is_called_again(tmp_path: Path) -> None:
    """Scenario 46: what a commit that failed half-way has not published yet is published by the
    next."""
    faults = Faults(Fault("rename", UnavailableError, match=f"{tmp_path}/part-1", times=1))
    job = job_at(tmp_path, faults)
    await job.setup_job()
    task_id, attempt_id = ids(0)
    await asyncio.to_thread(
        write, await job.setup_task(attempt_id), {"part-0": "a", "part-1": "b", "part-2": "c"}
    )
    with pytest.raises(CommitError):
        await job.commit_task(task_id, attempt_id)
    await job.commit_task(task_id, attempt_id)

    assert visible(tmp_path) == {"part-0": "a", "part-1": "b", "part-2": "c"}


@pytest.mark.parametrize("attempts, done", [(1, False), (2, True)])
async def test_failures_attempts(tmp_path: Path, attempts: int, done: bool) -> None:
    """Scenario 46: a job commit that fails is tried as often as the option says, as with Hadoop."""
    faults = Faults(Fault("rename", UnavailableError, match=f"{tmp_path}/_SUCCESS", times=1))
    job = job_at(tmp_path, faults, conf={CLASSIC + "failures.attempts": str(attempts)})
    commits = await run_tasks(job, {"part-0": "a"})
    if done:
        await job.commit_job(commits)
    else:
        with pytest.raises(CommitError):
            await job.commit_job(commits)

    assert (tmp_path / "_SUCCESS").exists() is done


@pytest.mark.parametrize("wanted", ["true", "false"])
async def test_task_cleanup_enabled(tmp_path: Path, wanted: str) -> None:
    """The directory of a task attempt goes when it commits only if the option says so."""
    job = job_at(tmp_path, conf={CLASSIC + "task.cleanup.enabled": wanted})
    await run_tasks(job, {"day=1/part-0": "a"})

    attempts = await asyncio.to_thread(os.listdir, job.layout.tasks_dir)
    assert attempts == ([] if wanted == "true" else [ids(0)[1]])


async def test_a_task_that_comes_too_late(tmp_path: Path) -> None:
    """A task of a job whose commit has begun publishes nothing."""
    faults = Faults(Fault("rename", UnavailableError, match=f"{tmp_path}/_SUCCESS", times=1))
    job = job_at(tmp_path, faults)
    await run_tasks(job)
    await asyncio.to_thread(write, await job.setup_task(ids(0)[1]), {"part-0": "a"})
    with pytest.raises(CommitError):
        await job.commit_job()
    with pytest.raises(CommitError, match="has already begun"):
        await job.commit_task(*ids(0))

    assert visible(tmp_path) == {}


async def test_tasks_of_version_1(tmp_path: Path) -> None:
    """What tasks of version 1 have committed is published too, where Hadoop deletes it."""
    write(tmp_path, {f"_temporary/0/{OTHER}/of-another": "x"})
    first = job_of_v1(tmp_path)
    await first.setup_job()
    await run_task(first, 0, {"part-0": "a"})
    await run_task(job_at(tmp_path), 1, {"part-1": "b"})
    await job_at(tmp_path).commit_job()

    assert visible(tmp_path) == {"part-0": "a", "part-1": "b"}
    assert (tmp_path / "_temporary/0" / OTHER / "of-another").exists()


async def test_recovery_after_an_upgrade(tmp_path: Path) -> None:
    """Scenario 46: a task that version 1 committed in an earlier attempt is published; others need
    nothing."""
    first = job_of_v1(tmp_path)
    await first.setup_job()
    await run_task(first, 0, {"part-0": "a"})
    job = job_at(tmp_path, attempt=1)
    await job.setup_job()
    commit = await job.recover_task(ids(0)[0])

    assert commit is not None
    assert commit.files == 1
    assert visible(tmp_path) == {"part-0": "a"}
    assert await job.recover_task(ids(0)[0]) is None
    assert await job.recover_task(ids(1)[0]) is None

"""Jobs and tasks from asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asynccommit import CommitError, OptionError, PreflightError, Progress, open_job, open_task
from tests.support.jobs import visible, write


async def test_leaving_commits(tmp_path: Path) -> None:
    """The example of the documentation works, with tasks at once."""

    async def one(number: int) -> None:
        async with job.task(number) as task:
            await task.put(f"day={number}/part-0", b"x" * number)

    told: list[Progress] = []
    async with open_job(tmp_path / "out", on_progress=told.append) as job:
        await asyncio.gather(*(one(number) for number in range(4)))

    assert visible(tmp_path / "out") == {f"day={n}/part-0": "x" * n for n in range(4)}
    assert {progress.stage for progress in told} >= {"job_stage_rename_files"}
    assert all(progress.job_id == job.job_id for progress in told)


async def test_tasks_elsewhere(tmp_path: Path) -> None:
    """A task opened by the job's id hands its message to the job."""
    async with open_job(tmp_path / "out") as job:
        async with open_task(tmp_path / "out", job.job_id, 3) as task:
            await task.put("part-3", b"3")
        assert task.commit is not None
        job.accept(task.commit)

    assert visible(tmp_path / "out") == {"part-3": "3"}


async def test_cancelling_aborts(tmp_path: Path) -> None:
    """A cancelled job is aborted: nothing is left."""

    async def run() -> None:
        async with open_job(tmp_path / "out") as job, job.task(0) as task:
            await task.put("part", b"x")
            await asyncio.sleep(60)

    running = asyncio.create_task(run())
    while not (tmp_path / "out").exists():  # noqa: ASYNC110  a file has no event
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a//b", "a/./b", "a/.."])
async def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    """A task writes below its directory and nowhere else."""
    async with open_job(tmp_path / "out") as job, job.task(0) as task:
        with pytest.raises(OptionError, match="relative path"):
            task.path(name)
        with pytest.raises(OptionError):
            await task.put(name, b"")


async def test_overwriting(tmp_path: Path) -> None:
    """``overwrite=True`` replaces what is there; without it a taken name is refused."""
    write(tmp_path / "out", {"part": "old", "other": "old"})
    with pytest.raises(PreflightError):
        async with open_job(tmp_path / "out") as job, job.task(0) as task:
            await task.put("part", b"new")
    async with open_job(tmp_path / "out", overwrite=True) as job, job.task(0) as task:
        await task.put("part", b"new")

    assert visible(tmp_path / "out") == {"part": "new"}


@pytest.mark.parametrize("job_id", ["", "..", "a/b", "a\nb", "x" * 300])
async def test_job_ids_that_are_no_names(tmp_path: Path, job_id: str) -> None:
    """A job id becomes a directory's name, so it must be one."""
    with pytest.raises(OptionError, match="job id"):
        async with open_job(tmp_path / "out", job_id=job_id or " /"):
            pass


async def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    """A name longer than the filesystem takes is named, and the job is aborted."""
    with pytest.raises(Exception, match="too long") as failed:
        async with open_job(tmp_path / "out") as job, job.task(0) as task:
            await task.put("n" * 300, b"")

    assert "n" * 300 in str(failed.value)
    assert not (tmp_path / "out").exists()


async def test_a_job_id_is_used_once(tmp_path: Path) -> None:
    """A second job with the id of a living one is refused, and the first one goes on."""
    async with open_job(tmp_path / "out", job_id="j") as job:
        with pytest.raises(CommitError, match="there already"):
            async with open_job(tmp_path / "out", job_id="j"):
                pass
        async with job.task(0) as task:
            await task.put("part", b"x")

    assert visible(tmp_path / "out") == {"part": "x"}

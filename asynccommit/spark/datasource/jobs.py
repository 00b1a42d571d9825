"""Set up, commit and abort jobs of the Data Source.

Each step may run in a process of its own.

Spark ends a job while some of its tasks still run, kills tasks without notice, and starts tasks
after the job has ended. A task attempt detects that by ``alive``, a directory that only the setup
of a job makes; the JVM's task side does the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from asynccommit.api import JobRef
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.registry import Committer
from asynccommit.commit.task import abort_after
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.options.job import Mode, Options
from asynccommit.results import JobReport
from asynccommit.runtime.host import process_above
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.tree import is_there, remove_directory, remove_tree

log = logging.getLogger("asynccommit.spark")

ALIVE = "alive"
GRACE = 3.0
"""Seconds for which a killed task may run: Spark's ``spark.python.task.killTimeout`` plus one."""


@dataclass(frozen=True, slots=True)
class SourceJob:
    """The facts about one job that each of its processes needs.

    Attributes:
        url: the URL of the table.
        job_id: made when the job was planned.
        options: options of the commit.
        storage: options of the store; never shown.
        mode: the write mode.
        made_destination: whether the setup of the job made the destination.
    """

    url: str
    job_id: str
    options: Options
    storage: Mapping[str, Any] = field(repr=False)
    mode: Mode = Mode.APPEND
    made_destination: bool = False


@asynccontextmanager
async def opened(job: SourceJob) -> AsyncIterator[Committer]:
    """Open the committer of a job.

    Raises ``OptionError``, ``UnsupportedError``.
    """
    ref = JobRef(job.url, job.job_id, options=job.options, storage_options=job.storage)
    async with ref.open() as committer:
        yield committer


@contextmanager
def opened_blocking(job: SourceJob) -> Iterator[Committer]:
    """Open the committer of a job for the engine's loop. See ``opened``."""
    stack = AsyncExitStack()
    committer = submit(_enter(stack, job))
    try:
        yield committer
    finally:
        submit(stack.aclose())


async def _enter(stack: AsyncExitStack, job: SourceJob) -> Committer:
    return await stack.enter_async_context(opened(job))


# --- setup ------------------------------------------------------------------------------------


async def set_up(job: SourceJob) -> SourceJob:
    """Create what the tasks of a job need, and return the updated job.

    Raises ``CommitError`` if the job could not be committed, ``UnfinishedError`` if commits of
    other jobs were interrupted there.
    """
    async with opened(job) as committer:
        # This process ends before the job does: the JVM above it tells whether the driver lives.
        committer.sends_heartbeats = False
        process = await asyncio.to_thread(process_above, "java")
        committer.host = replace(committer.host, process=process)
        made = not await is_there(committer.store, committer.layout.dest.path)
        try:
            await committer.setup_job(mode=job.mode)
            if not await is_there(committer.pending, alive_path(committer)):  # the setup's own
                await committer.pending.mkdir(alive_path(committer))
        except Exception as error:
            if committer.set_up:
                await abort_after(error, committer.abort_job(f"{type(error).__name__}: {error}"))
            raise
    return replace(job, made_destination=made)


def alive_path(committer: Committer) -> str:
    """Return the directory whose existence shows that the job has not ended."""
    return f"{committer.layout.attempt_dir}/{ALIVE}"


async def see_alive(committer: Committer) -> None:
    """Raise ``NotFoundError`` if the job has ended."""
    path = alive_path(committer)
    if not await is_there(committer.pending, path):
        text = (
            f"job {committer.layout.job_id} has ended: the output of this task attempt is discarded"
        )
        raise NotFoundError("head", path, text)


# --- a task attempt that comes too late -----------------------------------------------------------


async def leave_nothing(committer: Committer, job: SourceJob, number: int) -> None:
    """Remove the files of a task attempt if its job has ended.

    On some stores, creating a file recreates its directories. Once a commit has begun, the commit
    cleans up.
    """
    layout = committer.layout
    with suppress(NotFoundError):  # any other error proves nothing, so nothing is removed
        await see_alive(committer)
        return
    if await is_there(committer.pending, layout.record):
        return
    await committer.abort_task(*layout.ids(number))
    await _remove_empty(committer, job)


async def _remove_empty(committer: Committer, job: SourceJob) -> None:
    layout = committer.layout
    places = [layout.tasks_dir, layout.manifests_dir, layout.attempt_dir, layout.job_dir]
    places.append(layout.temporary)
    if job.made_destination:
        places.append(layout.dest.path)
    for path in places:
        with suppress(ExistsError, NotFoundError, PreconditionError):
            await remove_directory(committer.store, path)


# --- the end ----------------------------------------------------------------------------------


async def commit(job: SourceJob, tasks: Sequence[TaskCommit]) -> JobReport:
    """Commit the tasks that the messages name, and no others.

    Raises ``CommitError``.
    """
    async with opened(job) as committer:
        report = await committer.commit_job(
            tasks, mode=job.mode, made_destination=job.made_destination
        )
    for warning in report.warnings:
        log.warning("job %s: %s", job.job_id, warning, extra=committer.layout.log_fields)
    return report


async def abort(job: SourceJob, *, running: bool) -> None:
    """Delete the files of a job, unless its commit has begun.

    Args:
        job: the job.
        running: tasks may still be running; a second pass finds what they make after the first.

    Raises ``CommitError`` if the files cannot be deleted.
    """
    async with opened(job) as committer:
        if await _abort(committer, job) and running and not _is_fenced(committer):
            await pause(GRACE)
            await _abort(committer, job)


async def pause(seconds: float) -> None:
    """Wait until tasks that are being killed have ended."""
    await anyio.sleep(seconds)


async def _abort(committer: Committer, job: SourceJob) -> bool:
    report = await committer.abort_job("aborted by Spark")
    if report.kept:
        log.warning("job %s: %s", job.job_id, report.kept, extra=committer.layout.log_fields)
        return False
    with suppress(NotFoundError):
        await remove_tree(committer.store, alive_path(committer))
    await _remove_empty(committer, job)
    return True


def _is_fenced(committer: Committer) -> bool:
    """Return whether no file can be made below a deleted attempt."""
    return committer.layout.dest.scheme == "file"

"""The committer of a job, for authors of engines, and jobs that are kept.

A program that runs a job uses ``asynccommit.open_job``, or ``asynccommit.sync``. An engine whose
own driver says when a job is set up, a task is committed and a job ends calls the committer::

    async with open_committer("/data/flights", job_id) as committer:
        await committer.setup_job()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from asynccommit.api import JobRef, OptionsLike, StorageOptions, open_kept_job
from asynccommit.commit.context import OnVisible
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.meter import OnProgress
from asynccommit.options.checked import Url, checked
from asynccommit.options.job import Mode, Options
from asynccommit.results import AbortReport, JobReport, JobStatus
from asynccommit.stores.base import Store

__all__ = ["EngineCommitter", "open_committer", "open_kept_job"]


class EngineCommitter(Protocol):
    """The committer of one job attempt and of its tasks.

    Made by ``open_committer``. Each method may be called in any process that has opened the same
    job, and again after a failure. All raise ``CommitError``.
    """

    @property
    def store(self) -> Store:
        """Return the store of the destination."""
        ...

    @property
    def options(self) -> Options:
        """Return the options of the job."""
        ...

    async def setup_job(self, *, mode: Mode = ...) -> None:
        """Create the directories that the tasks need, or refuse the job."""
        ...

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path."""
        ...

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Make the output of a task attempt part of the job."""
        ...

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete the output of a task attempt."""
        ...

    async def commit_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = ...,
        overwrite: Sequence[str] = ...,
        on_progress: OnProgress | None = ...,
        on_visible: OnVisible | None = ...,
    ) -> JobReport:
        """Make the files of the committed tasks visible; see ``JobHandle.commit``."""
        ...

    async def plan_job(
        self,
        tasks: Sequence[TaskCommit] | None = None,
        *,
        mode: Mode = ...,
        overwrite: Sequence[str] = ...,
    ) -> JobReport:
        """Return the report that ``commit_job`` would return."""
        ...

    async def resume_job(
        self, *, force: bool = ..., adopt: bool = ..., on_progress: OnProgress | None = ...
    ) -> JobReport:
        """Finish an interrupted commit; see ``JobHandle.resume``."""
        ...

    async def rollback_job(
        self, *, force: bool = ..., on_progress: OnProgress | None = ...
    ) -> AbortReport:
        """Undo a commit that has begun; see ``JobHandle.rollback``."""
        ...

    async def abort_job(self, reason: str = "", *, careful: bool = ...) -> AbortReport:
        """Delete the files of the job, unless its commit has begun.

        ``careful`` refuses a job that may be alive.
        """
        ...

    async def cleanup(self) -> str:
        """Delete the files of the job, whatever its state."""
        ...

    async def job_status(self) -> JobStatus | None:
        """Return how far the commit of this job attempt is; ``None`` before it."""
        ...

    async def job_statuses(self) -> list[JobStatus]:
        """Return how far each job under the destination is."""
        ...


@checked
@asynccontextmanager
async def open_committer(
    url: Url,
    job_id: str,
    *,
    attempt: int = 0,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    pending: Url | None = None,
) -> AsyncIterator[EngineCommitter]:
    """Open the committer of a job; close the store on leaving.

    Args:
        url: the destination.
        job_id: the job.
        attempt: the job attempt number.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``asynccommit.open_job``.
        pending: where pending sets are kept, see ``asynccommit.open_job``.

    Raises:
        OptionError: there is no committer with this name.
        UnsupportedError: the scheme has no store, or the store lacks a required capability.
        UrlError: ``url`` is invalid.
    """
    ref = JobRef(url, job_id, attempt, options, storage_options, committer, pending)
    async with ref.open() as made:
        yield made

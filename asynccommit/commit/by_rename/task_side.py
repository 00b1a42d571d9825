"""The tasks' side of the manifest committer: a place to write to, and a manifest of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar, Self

from asynccommit.commit.by_rename.claims import claim_task
from asynccommit.commit.by_rename.cleanup import remove_if_empty
from asynccommit.commit.by_rename.driver_liveness import DriverLiveness
from asynccommit.commit.by_rename.save_manifest import remove_own_manifest, save_manifest
from asynccommit.commit.by_rename.scan_task import scan_task_attempt
from asynccommit.commit.by_rename.uncommittable import refuse_uncommittable
from asynccommit.commit.context import CommitContext, OnProgress
from asynccommit.commit.errors import commit_failures
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layout import Layout, TaskCommit
from asynccommit.commit.layout_file_output import refuse_number
from asynccommit.commit.task_output import StoreWork, Work
from asynccommit.errors import NotFoundError, UnsupportedError
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.stats import Count
from asynccommit.stores.policies.traffic import Traffic
from asynccommit.stores.tree import is_there, remove_file, remove_tree
from asynccommit.stores.urls import Address


class TaskSide(DriverLiveness):
    """Commits the tasks of one job attempt.

    Args:
        store: where the destination is; must rename files atomically.
        layout: destination and job.
        options: how to commit.
        host: clock, ids and names.
        counted: the store's request counters, for statistics.
        traffic: what has become of the store's requests, for statistics.
        open_store: opens the store of a report directory that is elsewhere.

    Attributes:
        layout_type: of the job that ``opened`` makes.
        driver_lives: whether the process that runs the job's tasks is there, where that is
            another one; without it no commit begins.

    Raises:
        OptionError: the job id is a number, which is the name of a directory that jobs share.
        UnsupportedError: the store has no atomic rename, or no writes that never replace.
    """

    layout_type: ClassVar[type[Layout]] = Layout

    def __init__(
        self,
        store: Store,
        layout: Layout,
        options: Options,
        host: Host,
        counted: Mapping[str, Count] | None = None,
        traffic: Callable[[], Traffic] = Traffic,
        open_store: Callable[[Address], Store] | None = None,
    ) -> None:
        if not store.traits.atomic_rename:
            raise UnsupportedError(
                f"{store.traits.name} has no atomic rename, which the manifest committer needs; "
                "on S3 use a committer of multipart uploads, as Hadoop's magic committer"
            )
        if not store.traits.conditional_put:
            raise UnsupportedError(
                f"{store.traits.name} cannot write a file only if there is none, which the commit "
                "record needs: two commits of one job could run at once"
            )
        refuse_number(layout.job_id)
        self.store = store
        self.layout = layout
        self.options = options
        self.host = host
        self._counted = {} if counted is None else counted
        self._traffic = traffic
        self._open_store = open_store
        self.driver_lives: Callable[[], bool] | None = None
        self._made_destination = False

    @classmethod
    def opened(cls, opening: JobContext) -> Self:
        """Return the committer of a job attempt."""
        return cls(
            opening.store,
            cls.layout_type(opening.dest, opening.job_id, opening.attempt),
            opening.options,
            opening.host,
            counted=opening.counted,
            traffic=opening.traffic,
            open_store=opening.open_store,
        )

    @property
    def pending(self) -> Store:
        """Return the store of the job's own directories: that of the data."""
        return self.store

    async def see_setup(self) -> None:
        """Look for what another's setup of the job has made. Raises ``NotFoundError``."""
        await self.store.head(self.layout.committed_dir)

    async def take_job(self) -> None:
        """See ``Committer.take_job``. Raises ``ExistsError`` if it is another driver's."""
        await self._take(self._run(), self.store)

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path.

        Raises ``CommitError`` if it is there already, or the job is not.
        """
        run = self._run()
        path = self.layout.task_attempt_dir(attempt_id)
        async with commit_failures(run):
            with run.timed("task_stage_setup"):
                await self.see_setup()  # the job has not ended
                claim = self.layout.claim(attempt_id)
                await claim_task(self.store, path, claim, self.host.new_id(), base=path)
        return path

    def work(self, attempt_id: str) -> Work:
        """Return where a task attempt writes."""
        return StoreWork(self.store, self.layout.dest, self.layout.task_attempt_dir(attempt_id))

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Write the manifest of what a task attempt left in its directory.

        The last attempt of a task that commits counts, as with Hadoop, unless the job commit is
        given the commit messages. Raises ``CommitError``, also for files that no job commit could
        publish.
        """
        run = self._run()
        async with commit_failures(run):
            with run.timed("task_stage_commit"):
                with run.timed("task_stage_scan_directory"):
                    base = self.layout.task_attempt_dir(attempt_id)
                    found = await scan_task_attempt(run, base)
                    refuse_uncommittable(run, found, base)
                return await save_manifest(run, task_id, attempt_id, found)

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete the directory of a task attempt, and the manifest if it is this attempt's.

        Nothing there is fine; once the job's commit has begun nothing is deleted. If the job has
        ended, the empty directories above go too, which a late write has made again. Raises
        ``CommitError``.
        """
        run, layout = self._run(), self.layout
        async with commit_failures(run):
            with run.timed("task_stage_abort_task"):
                if await is_there(run.store, layout.record):
                    return
                await remove_own_manifest(run, task_id, attempt_id)
                for parent in (layout.tasks_dir, layout.absolute_dir):
                    await _delete_if_there(run, f"{parent}/{attempt_id}")
                if not run.store.traits.directories:
                    with suppress(NotFoundError):
                        await remove_file(run.store, layout.claim(attempt_id))
                if not await is_there(run.store, layout.committed_dir):
                    for path in (layout.tasks_dir, layout.attempt_dir, layout.job_dir):
                        await remove_if_empty(run, path)
                    await remove_if_empty(run, layout.temporary)

    def _run(self, on_progress: OnProgress | None = None) -> CommitContext:
        return CommitContext(
            store=self.store,
            layout=self.layout,
            options=self.options,
            host=self.host,
            on_progress=on_progress,
            open_store=self._open_store,
            driver_lives=self.driver_lives,
            counted=self._counted,
            traffic=self._traffic,
        )


async def _delete_if_there(run: CommitContext, path: str) -> None:
    with suppress(NotFoundError):
        await remove_tree(run.store, path)

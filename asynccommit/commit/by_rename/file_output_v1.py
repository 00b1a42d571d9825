"""FileOutputCommitter 1: a task renames a directory, a job its files.

Compatible on the store with Hadoop's class of this name, both ways: either may commit what tasks of
the other have left. The job commit is the manifest committer's, with a look into the directories of
the committed tasks in the place of the manifests. Differences from Hadoop's, and their reasons, are
in docs/file-committers.md.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

import anyio

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.publisher import RenamePublisher
from asynccommit.commit.by_rename.record import refuse_other_attempts
from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.errors import commit_failures
from asynccommit.commit.job.cleanup import remove_if_empty
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.ownership.directory_owner import refuse_alias
from asynccommit.commit.planning.load_tasks import listing_digest, load_tasks
from asynccommit.commit.planning.uncommittable import refuse_uncommittable
from asynccommit.commit.steps.cleanup import begun_attempts
from asynccommit.commit.tasks.scan_task import TaskFiles, scan_task_attempt
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OptionError,
    PreconditionError,
    UnsupportedError,
)
from asynccommit.options.job import Mode
from asynccommit.stores.tree import is_there, remove_tree


class FileV1Committer(ManifestCommitter):
    """A committer of one application attempt of a job.

    Create it like ``ManifestCommitter``.

    A file of the job takes the place of one of the same name, as with Hadoop; it comes back if
    the job is rolled back.

    Attributes:
        is_commit_job_repeatable: a job commit that failed may be called again. Hadoop's cannot.
        is_recovery_supported: tasks that an earlier application attempt has committed can be kept.

    Raises:
        UnsupportedError: the store renames no directories, or what ``ManifestCommitter`` needs is
            missing.
    """

    layout_type: ClassVar[type[Layout]] = FileLayout
    publisher: RenamePublisher = RenamePublisher(load_tasks, overwrites=True)
    is_commit_job_repeatable: ClassVar[bool] = True
    is_recovery_supported: ClassVar[bool] = True

    def _refuse_unfit(self) -> None:
        super()._refuse_unfit()
        if not self.store.traits.fences:
            raise UnsupportedError(
                f"{self.store.traits.name} cannot rename a directory atomically, which a task "
                "commit of FileOutputCommitter needs: use 'manifest'"
            )
        self.layout: FileLayout = _file_layout(self.layout)

    async def setup_job(self, *, mode: Mode = Mode.APPEND) -> None:
        """See ``ManifestCommitter.setup_job``.

        Also raises ``CommitError`` if another job has tasks with the ids of this job's tasks.
        """
        await super().setup_job(mode=mode)
        run = self._run()
        async with commit_failures(run):
            try:
                await refuse_alias(run)  # one that was set up at the same time
            except ExistsError:
                self.set_up = False  # an abort would delete the other's tasks
                await remove_if_empty(run, self.layout.attempt_dir)
                await remove_if_empty(run, self.layout.job_dir)
                raise

    async def see_setup(self) -> None:
        """Check that another process, Hadoop's or ours, has set up the job.

        Raises ``NotFoundError``.
        """
        if not await is_there(self.store, self.layout.attempt_dir):
            await super().see_setup()

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Rename the directory of a task attempt to that of the committed task.

        The last attempt of a task that commits counts, as with Hadoop, unless the job commit is
        given the commit messages. Raises ``CommitError``, also if the attempt has no directory. The
        setup of the attempt creates it; Hadoop treats such an attempt as one without output.
        """
        run = self._run()
        self.layout.committed(task_id)  # raises for what is no task of this job
        base = self.layout.task_attempt_dir(attempt_id)
        async with commit_failures(run):
            with run.meter.timed("task_stage_commit"):
                found = await self._scan(run, base)
                await self._publish(run, task_id, attempt_id, found)
        return self._message(task_id, attempt_id, found, base)

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete the directory of a task attempt; a missing one is not an error.

        Once the job's commit has begun nothing is deleted. Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            with run.meter.timed("task_stage_abort_task"):
                if not await is_there(run.store, self.layout.record):
                    with suppress(NotFoundError):
                        await remove_tree(run.store, self.layout.task_attempt_dir(attempt_id))

    async def recover_task(self, task_id: str) -> TaskCommit | None:
        """Keep the output that a task committed in an earlier application attempt.

        Args:
            task_id: the task, whose id is the same in every application attempt.

        Returns its commit message, to be handed to the job commit. It names no task attempt, since
        nothing on the store does.

        Raises ``CommitError`` if no earlier attempt has committed it: then it has to be run again;
        or if a commit of one has begun, which may need the files. Hadoop checks only the previous
        attempt, and continues without the data.
        """
        run = self._run()
        async with commit_failures(run):
            with run.meter.timed("task_stage_recover"):
                refuse_other_attempts(run, await begun_attempts(run))
                place = await self._earlier(run, task_id)
                found = await self._scan(run, place)
                if place != self.layout.committed(task_id):
                    await self.store.mkdir(self.layout.sources_dir)
                    await run.store.rename(place, self.layout.committed(task_id))
                    await make_durable(run, self.layout.sources_dir)
        return self._message(task_id, task_id, found, place)

    async def _publish(
        self, run: CommitContext, task_id: str, attempt_id: str, found: TaskFiles
    ) -> None:
        """Make an attempt's output the task's; delete another attempt's output."""
        source, dest = self.layout.task_attempt_dir(attempt_id), self.layout.committed(task_id)
        await self._refuse_late(run)
        try:
            await run.store.rename(source, dest)
        except ExistsError:
            await self._replace(run, source, dest)
        await make_durable(run, self.layout.sources_dir)

    async def _replace(self, run: CommitContext, source: str, dest: str) -> None:
        """Replace another attempt, unless a job commit has read that meanwhile."""
        aside = f"{source}.replaced"
        await run.store.rename(dest, aside)
        try:
            await self._refuse_late(run)
            await run.store.rename(source, dest)
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(ExistsError, NotFoundError):
                await run.store.rename(aside, dest)
            raise
        await remove_tree(run.store, aside)

    async def _refuse_late(self, run: CommitContext) -> None:
        """Refuse a task if the commit of its job has begun.

        The directory that the task would replace may be moving.
        """
        if await is_there(run.store, self.layout.record):
            text = "the commit of its job has already begun"
            raise PreconditionError("rename", self.layout.record, text)

    async def _earlier(self, run: CommitContext, task_id: str) -> str:
        """Return the directory of the last committed attempt of a task."""
        last = self.layout.attempt
        for number in range(last, -1, -1):
            place = f"{self.layout.temporary}/{number}/{task_id}"
            if await is_there(run.store, place):
                return place
        text = "no earlier application attempt committed this task: run it again"
        if last == 0:
            text = "this is the first application attempt: run the task"
        raise NotFoundError("rename", self.layout.committed(task_id), text)

    async def _scan(self, run: CommitContext, base: str) -> TaskFiles:
        found = await scan_task_attempt(run, base)
        refuse_uncommittable(run, found, base)
        return found

    def _message(self, task_id: str, attempt_id: str, found: TaskFiles, base: str) -> TaskCommit:
        return TaskCommit(
            task_id=task_id,
            attempt_id=attempt_id,
            manifest=self.layout.url(self.layout.committed(task_id)),
            digest=listing_digest(found, base),
            files=len(found.files),
            bytes=found.bytes,
        )


def _file_layout(layout: Layout) -> FileLayout:
    if not isinstance(layout, FileLayout):
        raise OptionError(f"{layout.attempt_dir} is not a directory of FileOutputCommitter")
    return layout

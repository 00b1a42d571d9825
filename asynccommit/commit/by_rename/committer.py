"""The manifest committer: tasks list files, the job renames them.

Compatible on the store with Hadoop's committer of this name (3.4.1 and later; the manifests of
earlier ones load too). Differences and their reasons are in docs/protocol-spec.md.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Self

from asynccommit.commit.by_rename.publisher import RenamePublisher
from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.claims import claim_task
from asynccommit.commit.errors import commit_failures
from asynccommit.commit.job.cleanup import remove_if_empty
from asynccommit.commit.job.committer import JobCommitter
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.file_output import refuse_number
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.meter import OnProgress
from asynccommit.commit.ownership.status import CommitState
from asynccommit.commit.planning.load_manifests import load_manifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.uncommittable import refuse_uncommittable
from asynccommit.commit.tasks.output import StoreWork, Work
from asynccommit.commit.tasks.save_manifest import remove_own_manifest, save_manifest
from asynccommit.commit.tasks.scan_task import scan_task_attempt
from asynccommit.errors import NotFoundError, UnsupportedError
from asynccommit.stores.tree import is_there, remove_file, remove_tree


class ManifestCommitter(JobCommitter[CommitContext, CommitState, Plan]):
    """A committer of one job attempt under one destination.

    Create it like ``JobCommitter``.

    Attributes:
        layout_type: of the job that ``opened`` makes.

    Raises:
        OptionError: the job id is a number, which is the name of a directory that jobs share.
        UnsupportedError: the store has no atomic rename, or no writes that never replace.
    """

    layout_type: ClassVar[type[Layout]] = Layout
    publisher: RenamePublisher = RenamePublisher(load_manifests)

    @property
    def _kind_of_others(self) -> type[ManifestCommitter]:
        return ManifestCommitter

    def _refuse_unfit(self) -> None:
        traits = self.store.traits
        if not traits.atomic_rename:
            raise UnsupportedError(
                f"{traits.name} has no atomic rename, which the manifest committer needs; "
                "on S3 use a committer with multipart uploads, such as 'magic'"
            )
        if not traits.conditional_put:
            raise UnsupportedError(
                f"{traits.name} cannot create a file only if it does not exist, which the "
                "commit record needs: two commits of one job could run at once"
            )
        refuse_number(self.layout.job_id)

    @classmethod
    def opened(cls, opening: JobContext) -> Self:
        """Return the committer of a job attempt."""
        layout = cls.layout_type(opening.dest, opening.job_id, opening.attempt)
        return cls._made(opening, layout)

    async def see_setup(self) -> None:
        """Check the files of a job's setup.

        Raises ``NotFoundError``.
        """
        await self.store.head(self.layout.committed_dir)

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path.

        Raises ``CommitError`` if the directory exists already, or the job does not exist.
        """
        run = self._run()
        path = self.layout.task_attempt_dir(attempt_id)
        async with commit_failures(run):
            with run.meter.timed("task_stage_setup"):
                await self.see_setup()  # the job has not ended
                claim = self.layout.claim(attempt_id)
                await claim_task(self.store, path, claim, self.host.new_id(), base=path)
        return path

    def work(self, attempt_id: str) -> Work:
        """Return where a task attempt writes."""
        layout = self.layout
        base = layout.task_attempt_dir(attempt_id)
        return StoreWork(self.store, layout.dest, base, staged=layout.staged)

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Write the manifest of what a task attempt left in its directory.

        The last attempt of a task that commits counts, as with Hadoop, unless the job commit is
        given the commit messages. Raises ``CommitError``, also for files that no job commit could
        publish.
        """
        run = self._run()
        async with commit_failures(run):
            with run.meter.timed("task_stage_commit"):
                with run.meter.timed("task_stage_scan_directory"):
                    base = self.layout.task_attempt_dir(attempt_id)
                    found = await scan_task_attempt(run, base)
                    refuse_uncommittable(run, found, base)
                return await save_manifest(run, task_id, attempt_id, found)

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Delete the directory and the manifest of a task attempt.

        Nothing there is fine; once the job's commit has begun nothing is deleted. If the job has
        ended, the empty directories above go too, which a late write has made again. Raises
        ``CommitError``.
        """
        run, layout = self._run(), self.layout
        async with commit_failures(run):
            with run.meter.timed("task_stage_abort_task"):
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
        return CommitContext.new(self._environment, self.layout, self.options, on_progress)


async def _delete_if_there(run: CommitContext, path: str) -> None:
    with suppress(NotFoundError):
        await remove_tree(run.store, path)

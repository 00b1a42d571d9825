"""The magic committer: tasks upload to the final places.

It is compatible on the store with Hadoop's committer of this name (3.4 and later): its tasks and
ours may be in one job. Differences and their reasons are in docs/protocol-spec.md.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Self

import anyio

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.give_up import give_up, uploads_of
from asynccommit.commit.by_upload.task.intents import Failure
from asynccommit.commit.by_upload.task.magic import MagicFiles, load_pending, refuse_name
from asynccommit.commit.by_upload.task.sets import save_set
from asynccommit.commit.by_upload.task.undo import CLEANUP_GRACE_SECONDS, abort_after
from asynccommit.commit.by_upload.writer import check_part_size
from asynccommit.commit.driver.claims import claim_task
from asynccommit.commit.errors import commit_failures
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.commit.name_lengths import Lengths
from asynccommit.commit.tasks.block_writer import Slots
from asynccommit.commit.tasks.output import check_relative
from asynccommit.commit.tasks.writers import Chunk, Writer
from asynccommit.errors import NotFoundError, OptionError, StoreError, UnsupportedError
from asynccommit.formats.pending import SUFFIX, PendingCommit
from asynccommit.options.uploads import S3A
from asynccommit.stores.tree import is_there, remove_tree


class MagicCommitter(UploadCommitter):
    """A committer for one job attempt with magic paths.

    Create it like ``JobCommitter``.

    Raises ``UnsupportedError`` if the options forbid magic, ``OptionError`` for a part size that
    the store does not accept.
    """

    layout: MagicLayout

    @classmethod
    def opened(cls, opening: JobContext) -> Self:
        """Return a job attempt's committer; pending sets are with the data."""
        if not opening.options.uploads.magic:
            raise UnsupportedError(
                f"{S3A}magic.enabled is false: set it to true, or use another committer"
            )
        layout = MagicLayout(opening.dest, opening.job_id, opening.attempt)
        return cls._made(opening, layout)

    @cached_property
    def _slots(self) -> Slots:
        check_part_size(self.store, self.options.uploads.part_size)
        return Slots(self.options.uploads.in_flight)

    @cached_property
    def _attempts(self) -> dict[str, MagicFiles]:
        return {}

    async def setup_task(self, attempt_id: str) -> str:
        """Make the directory of a task attempt and return its path.

        Raises ``CommitError`` if the directory exists already, or the job does not.
        """
        run, files = self._run(), self._files(attempt_id)
        path = self.layout.task_base(attempt_id)
        async with commit_failures(run):
            with run.meter.timed("task_stage_setup"):
                if not await files.see_job():
                    await self.store.head(self.layout.sets_dir)  # of a job that has not ended
                await claim_task(
                    self.store,
                    self.layout.task_attempt_dir(attempt_id),
                    self.layout.claim(attempt_id),
                    self.host.new_id(),
                    base=None if self.options.uploads.in_memory else path,
                )
        self._attempts[attempt_id] = files
        return path

    def work(self, attempt_id: str) -> MagicWork:
        """Return the output of a task attempt, in this process."""
        files = self._attempts.setdefault(attempt_id, self._files(attempt_id))
        marks = f"{self.layout.task_base(attempt_id)}/{SUFFIX}"
        around = f"{self.layout.root}/" if self.options.uploads.in_memory else marks
        rules = Lengths(len(around.encode()), self.store.traits.longest_path)
        return MagicWork(files, self.layout, attempt_id, rules)

    async def needs_task_commit(self, attempt_id: str) -> bool:
        """Return whether a task attempt must be committed: always, as in Hadoop."""
        return True

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Write the pending set of a task attempt's uploads.

        The last attempt of a task that commits counts, as in Hadoop, unless the job commit is given
        the commit messages. If some pending file cannot be read or the set cannot be saved, all
        uploads of the attempt are aborted. An attempt can be committed once: it is gone afterwards.
        Raises ``CommitError``, and ``OptionError`` while a file is open.
        """
        run = self._run()
        refuse_open(self._attempts.get(attempt_id))
        async with commit_failures(run):
            with run.meter.timed("task_stage_commit"):
                with run.meter.timed("task_stage_scan_directory"):
                    commits, unreadable = await self._written(run, attempt_id)
                try:
                    return await self._save(run, task_id, attempt_id, commits, unreadable)
                finally:
                    self._end(attempt_id)
                    await self._clear(attempt_id)

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Abort a task attempt's uploads; delete its directory and pending set.

        A missing attempt is not an error; once the job's commit has begun, only uploads that are
        still open are aborted. A file that cannot be read prevents the deletion of the rest, but
        not the abort of its uploads. Raises ``CommitError``.
        """
        run = self._run()
        files = self._attempts.pop(attempt_id, None)
        async with commit_failures(run):
            with run.meter.timed("task_stage_abort_task"):
                if files is not None:
                    await files.abort()
                if await is_there(run.pending, self.layout.record):
                    return
                base = self.layout.task_base(attempt_id)
                commits, unreadable, _ = await load_pending(run, base)
                known = [*commits, *(files.commits.values() if files else ())]
                await give_up(run, task_id, attempt_id, known, unreadable)
                with suppress(NotFoundError):
                    await remove_tree(run.store, self.layout.task_attempt_dir(attempt_id))

    async def _written(
        self, run: UploadContext, attempt_id: str
    ) -> tuple[list[PendingCommit], list[Failure]]:
        """Return the uploads of an attempt, and the failures to read them."""
        base, files = self.layout.task_base(attempt_id), self._attempts.get(attempt_id)
        if self.options.uploads.in_memory:
            if files is None:
                text = "the task attempt was not set up in this process, or it is committed"
                raise NotFoundError("list", base, text)
            return list(files.commits.values()), []
        written = None if files is None else files.written
        commits, unreadable, there = await load_pending(run, base, whole=True, written=written)
        if not there:
            text = "the task attempt does not exist, or it is committed"
            raise NotFoundError("list", base, text)
        return commits, unreadable

    async def _save(
        self,
        run: UploadContext,
        task_id: str,
        attempt_id: str,
        commits: list[PendingCommit],
        unreadable: list[Failure],
    ) -> TaskCommit:
        try:
            if unreadable:
                raise unreadable[0][1]
            uuid = self.layout.uuid
            marked = [replace(commit, job_id=uuid, task_id=attempt_id) for commit in commits]
            return await save_set(run, task_id, attempt_id, marked)
        except BaseException as error:
            await abort_after(run, error, uploads_of(commits))
            raise

    def _end(self, attempt_id: str) -> None:
        files = self._attempts.pop(attempt_id, None)
        if files is not None:
            files.end()

    async def _clear(self, attempt_id: str) -> None:
        """Delete markers and pending files, but not intents.

        Uploads that another attempt's set replaces are named by nothing else.
        """
        uploads = self.options.uploads
        if uploads.in_memory or uploads.keep_magic:
            return
        with anyio.move_on_after(CLEANUP_GRACE_SECONDS, shield=True), suppress(StoreError):
            await remove_tree(self.store, self.layout.task_base(attempt_id))

    def _files(self, attempt_id: str) -> MagicFiles:
        base = self.layout.task_base(attempt_id)
        return MagicFiles(self._run(), attempt_id, base, self._slots)


class MagicWork:
    """The output of a task that streams its files to their final paths."""

    def __init__(
        self, files: MagicFiles, layout: MagicLayout, attempt_id: str, lengths: Lengths
    ) -> None:
        self.directory = str(layout.dest.at(layout.task_base(attempt_id)))
        self.staged = ""
        self._files = files
        self._layout = layout
        self._lengths = lengths

    async def remove(self, name: str) -> None:
        """See ``Work.remove``."""
        raise UnsupportedError(
            f"{name}: a task of the magic committer cannot delete what it has uploaded"
        )

    def path(self, name: str) -> str:
        """Raise ``UnsupportedError``: the task has no files on this machine."""
        raise UnsupportedError(
            f"the magic committer writes to {self._layout.dest} itself: use Task.open or Task.put, "
            "or the committer 'directory'"
        )

    async def put(self, name: str, data: Chunk) -> None:
        """See ``Work.put``."""
        async with await self.open(name) as file:
            await file.write(data)

    async def open(self, name: str) -> Writer:
        """See ``Work.open``."""
        check_relative(name)
        refuse_name(name)
        if self._layout.reserves(f"{self._layout.root}/{name}"):
            raise OptionError(f"{name!r} is reserved for the commit protocol")
        self._lengths.refuse(name, "")
        return await self._files.open(name)


def refuse_open(files: MagicFiles | None) -> None:
    """Raise ``OptionError`` if a task has files that were not closed."""
    if files is not None and files.open_files:
        names = ", ".join(sorted(files.open_files)[:5])
        raise OptionError(f"files are still open; close or abort them before the commit: {names}")

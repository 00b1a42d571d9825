"""The staging committers: write locally, upload on task commit.

Compatible on the store with Hadoop's committers ``directory`` and ``partitioned`` (3.4 and later),
and with what Netflix' s3committer, from which they come, does otherwise by option. What differs,
and why, is in docs/protocol-spec.md.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import warnings
from contextlib import suppress
from typing import Self

import anyio

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task import local
from asynccommit.commit.by_upload.task.conflicts import refuse_conflicts
from asynccommit.commit.by_upload.task.give_up import give_up, uploads_of
from asynccommit.commit.by_upload.task.job_liveness import JobLiveness
from asynccommit.commit.by_upload.task.send import Sending, send, to_send
from asynccommit.commit.by_upload.task.sets import save_set
from asynccommit.commit.by_upload.task.undo import CLEANUP_GRACE_SECONDS, abort_after
from asynccommit.commit.by_upload.writer import check_part_size
from asynccommit.commit.errors import CommitterWarning, commit_failures
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import TEMPORARY, TaskCommit
from asynccommit.commit.layouts.uploads import StagingLayout
from asynccommit.commit.tasks.output import check_relative
from asynccommit.commit.tasks.writers import Chunk, LocalWriter, Writer, make_parents
from asynccommit.errors import NotFoundError, OptionError, PreconditionError
from asynccommit.formats.pending import PendingCommit
from asynccommit.options.job import Mode
from asynccommit.options.uploads import Conflict
from asynccommit.stores.tree import is_there, remove_file
from asynccommit.stores.urls import Address, parse_url


class DirectoryCommitter(UploadCommitter):
    """A committer for one job attempt with local task output.

    Create it like ``JobCommitter``.

    A conflict is one with the table as a whole.
    """

    layout: StagingLayout
    name = "directory"

    @classmethod
    def opened(cls, opening: JobContext) -> Self:
        """Return a job attempt's committer; options place its pending sets."""
        tmp = _tmp(opening)
        pending = opening.store if tmp.same_store(opening.dest) else opening.open_store(tmp)
        layout = StagingLayout(
            opening.dest, opening.job_id, opening.attempt, committer=cls.name, tmp=tmp
        )
        return cls._made(opening, layout, pending=pending)

    async def setup_task(self, attempt_id: str) -> str:
        """Make the local directory of a task attempt and return its path.

        Raises ``CommitError`` if the directory exists already, or the job does not exist.
        """
        run = self._run()
        check_part_size(self.store, self.options.uploads.part_size)
        await asyncio.to_thread(tempfile.gettempdir)  # looks for one the first time it is asked
        path, top = self._local(attempt_id), self._top(attempt_id)
        async with commit_failures(run):
            with run.meter.timed("task_stage_setup"):
                await run.pending.head(self.layout.sets_dir)  # of a job that has not ended
                await asyncio.to_thread(local.make_private, path, top)
        return path

    def work(self, attempt_id: str) -> LocalWork:
        """Return where a task attempt writes, on this machine."""
        return LocalWork(self.layout, self._local(attempt_id))

    async def needs_task_commit(self, attempt_id: str) -> bool:
        """Return whether a task attempt has written anything.

        Raises ``CommitError`` if the attempt is not on this machine.
        """
        async with commit_failures(self._run()):
            return await asyncio.to_thread(local.has_entries, self._local(attempt_id))

    async def commit_task(self, task_id: str, attempt_id: str) -> TaskCommit:
        """Upload what a task attempt has written, and write its pending set.

        Hidden names are left out, with a warning (``CommitterWarning``), and those of the commit
        protocol are refused. The last attempt of a task that commits counts, as with Hadoop, unless
        the job commit is given the commit messages. On failure the uploads are aborted; the local
        directory is always deleted. Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            with run.meter.timed("task_stage_commit"):
                try:
                    with run.meter.timed("task_stage_scan_directory"):
                        found = await self._find(attempt_id)
                    files = to_send(run, found)
                    living = JobLiveness(run, attempt_id)
                    if not await living.look():
                        await run.pending.head(self.layout.sets_dir)  # of a job that has not ended
                    await self._check(run, files)
                    commits = await send(run, attempt_id, files, living)
                    return await self._save(run, task_id, attempt_id, commits)
                finally:
                    await self._clear(attempt_id)

    async def abort_task(self, task_id: str, attempt_id: str) -> None:
        """Abort an attempt's uploads; delete its files and pending set.

        Nothing there is fine, as on another machine; once the job's commit has begun no upload is
        aborted. Raises ``CommitError``.
        """
        run = self._run()
        async with commit_failures(run):
            with run.meter.timed("task_stage_abort_task"):
                await self._clear(attempt_id)
                if await is_there(run.pending, self.layout.record):
                    return
                await give_up(run, task_id, attempt_id)
                with suppress(NotFoundError):
                    await remove_file(run.pending, self.layout.uncommitted_set(attempt_id))

    async def _find(self, attempt_id: str) -> list[local.LocalFile]:
        """Return the files of an attempt, and warn of uncommitted ones.

        Raises ``PreconditionError`` for names of the commit protocol.
        """
        base, hidden = self._local(attempt_id), list[str]()
        found = await asyncio.to_thread(local.find_files, base, hidden)
        for name in sorted([*hidden, *(file.name for file in found)]):
            if self.layout.reserves(f"{self.layout.root}/{name}"):
                text = "its name is reserved for the commit protocol: rename it or delete it"
                raise PreconditionError("list", f"{base}/{name}", text)
        if hidden:
            shown = ", ".join(sorted(hidden)[:5])
            text = (
                f"{attempt_id} left files that are not committed, because their names begin with _ "
                f"or .: {shown}"
            )
            warnings.warn(text, CommitterWarning, stacklevel=2)
        return found

    async def _check(self, run: UploadContext, files: list[Sending]) -> None:
        """Refuse files that the mode does not allow, before any is uploaded."""

    async def _save(
        self, run: UploadContext, task_id: str, attempt_id: str, commits: list[PendingCommit]
    ) -> TaskCommit:
        aside = self.layout.uncommitted_set(attempt_id)
        try:
            return await save_set(run, task_id, attempt_id, commits, aside)
        except BaseException as error:
            await abort_after(run, error, uploads_of(commits))
            raise

    async def _clear(self, attempt_id: str) -> None:
        with anyio.move_on_after(CLEANUP_GRACE_SECONDS, shield=True):
            await asyncio.to_thread(local.remove, self._top(attempt_id))

    def _top(self, attempt_id: str) -> str:
        """Return the local directory that is one attempt's own."""
        buffer = self.options.uploads.buffer_directory or tempfile.gettempdir()
        return f"{buffer.rstrip('/')}/{self.layout.uuid}-{attempt_id}"

    def _local(self, attempt_id: str) -> str:
        number = f"{TEMPORARY}/{self.layout.attempt}"
        return f"{self._top(attempt_id)}/{number}/{TEMPORARY}/{attempt_id}"


class PartitionedCommitter(DirectoryCommitter):
    """A committer for one job attempt that replaces partitions.

    Tasks write to local disk. Create it like ``JobCommitter``.

    Conflicts are checked separately for each directory that receives files.
    """

    name = "partitioned"
    _mode: Mode | None = None

    async def setup_job(self, *, mode: Mode = Mode.APPEND) -> None:
        """See ``UploadCommitter.setup_job``.

        Tasks in this process use the same mode.
        """
        self._mode = mode
        await super().setup_job(mode=mode)

    async def _check(self, run: UploadContext, files: list[Sending]) -> None:
        wanted = self.options.uploads.conflict is Conflict.FAIL
        if wanted if self._mode is None else self._mode is Mode.FAIL:
            with run.meter.timed("task_stage_check_conflicts"):
                await refuse_conflicts(run, files)


class LocalWork:
    """A task that writes to a directory of this machine."""

    def __init__(self, layout: StagingLayout, directory: str) -> None:
        self.directory = directory
        self.staged = ""
        self._layout = layout

    async def remove(self, name: str) -> None:
        """See ``Work.remove``."""
        path = self._place(name)
        try:
            await asyncio.to_thread(os.remove, path)
        except FileNotFoundError:
            raise NotFoundError("delete", path) from None

    def path(self, name: str) -> str:
        """See ``Work.path``."""
        path = self._place(name)
        make_parents(path, self.directory)
        return path

    async def put(self, name: str, data: Chunk) -> None:
        """See ``Work.put``."""
        async with await self.open(name) as file:
            await file.write(data)

    async def open(self, name: str) -> Writer:
        """See ``Work.open``."""
        return LocalWriter(self._place(name), self.directory)

    def _place(self, name: str) -> str:
        check_relative(name)
        if local.is_hidden(name):
            raise OptionError(
                f"{name!r} would not be committed: names that begin with _ or . are hidden"
            )
        if self._layout.reserves(f"{self._layout.root}/{name}"):
            raise OptionError(f"{name!r} is reserved for the commit protocol")
        return f"{self.directory}/{name}"


def _tmp(opening: JobContext) -> Address:
    """Return the directory of the user's pending sets.

    The default is beside the data.

    On S3 a pending set is visible as soon as it is written, so it may be stored with the data.
    """
    given, user = opening.options.uploads.staging_path, opening.host.user.replace("/", "_")
    if opening.pending is not None:
        return opening.pending.child(user)
    if given is not None:
        return parse_url(given).child(user)
    return opening.dest.child(TEMPORARY, "staging", user)

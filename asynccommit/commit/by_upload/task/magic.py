"""The files of a task attempt of the magic committer.

At the magic path of each file, Hadoop's tasks leave an empty marker with a header for the length of
the file, and a ``.pending`` file. Tasks here do the same, unless the task keeps this in memory.
"""

from __future__ import annotations

from contextlib import suppress

import anyio

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.intents import Failure, Intents
from asynccommit.commit.by_upload.task.job_liveness import JobLiveness
from asynccommit.commit.by_upload.task.pending import check_place, owner_name, pending_commit
from asynccommit.commit.by_upload.task.undo import CLEANUP_GRACE_SECONDS
from asynccommit.commit.by_upload.writer import UploadWriter, abort_upload
from asynccommit.commit.tasks.block_writer import Slots
from asynccommit.errors import ManifestError, OptionError, PreconditionError, StoreError
from asynccommit.formats import pending, pending_set
from asynccommit.formats.magic_paths import marker_metadata, pending_path
from asynccommit.formats.pending import (
    MAX_PENDING_BYTES,
    PendingCommit,
    decode_pending,
    encode_pending,
)
from asynccommit.options.uploads import EtagForm
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there, remove_file, tree_pages

Written = dict[str, tuple[str | None, PendingCommit]]


class MagicFiles:
    """The files that one task attempt writes in this process.

    Args:
        run: the task's.
        attempt_id: the attempt.
        base: its magic directory, whose tree is that of the destination.
        slots: bounds the parts in memory.

    Attributes:
        commits: closed files, if the task keeps them in memory.
        written: path of each ``.pending`` file -> its etag and content.
    """

    def __init__(self, run: UploadContext, attempt_id: str, base: str, slots: Slots) -> None:
        self.commits: dict[str, PendingCommit] = {}
        self.written: Written = {}
        self._run = run
        self._attempt_id = attempt_id
        self._base = base
        self._slots = slots
        self._intents = Intents(run, attempt_id)
        self._living = JobLiveness(run, attempt_id)
        self._open: dict[str, UploadWriter | None] = {}
        self._closed: dict[str, str] = {}
        self._ended = False

    @property
    def open_files(self) -> list[str]:
        """The names of files that are being written."""
        return [name for name, file in self._open.items() if file is None or file.is_open]

    async def see_job(self) -> bool:
        """Return whether the job is known to be active.

        Raises ``NotFoundError``.
        """
        return await self._living.look()

    async def open(self, name: str) -> UploadWriter:
        """Open a file for writing; it replaces a closed one of its name.

        Raises ``OptionError`` if it is open already or the task has ended, ``StoreError``.
        """
        if self._ended:
            raise OptionError(f"{name!r} is too late: the task has been committed or aborted")
        if name in self.open_files:
            raise OptionError(f"{name!r} is already being written: close it first")
        run, path = self._run, f"{self._run.layout.root}/{name}"
        self._open[name] = None
        token = run.host.new_id()
        try:
            upload_id = await self._begin(path, token)
        except BaseException:
            del self._open[name]
            raise
        file = UploadWriter(
            run.store,
            path,
            upload_id,
            part_size=run.options.uploads.part_size,
            slots=self._slots,
            closed=lambda file: self._close(name, file, token),
        )
        self._open[name] = file
        return file

    async def _begin(self, path: str, token: str) -> str:
        await self._living.look()
        owner = owner_name(self._run, self._attempt_id)
        upload_id = await self._run.store.create_upload(path, token=token, owner=owner)
        try:
            await self._intents.record((path, upload_id))
            await self._living.require()
        except BaseException as error:
            await self._living.give_up(error, [(path, upload_id)])
            raise
        return upload_id

    async def _close(self, name: str, file: UploadWriter, token: str) -> None:
        run, attempt_id = self._run, self._attempt_id
        commit = pending_commit(
            run, attempt_id, file.path, file.upload_id, file.parts, file.length, token
        )
        if run.options.uploads.in_memory:
            self.commits[name] = commit
        else:
            await self._mark(f"{self._base}/{name}", commit)
        before = self._closed.pop(name, None)
        self._closed[name] = file.upload_id
        self._open.pop(name, None)
        if before is not None:
            with suppress(StoreError):  # its intent is there: else the end of the job aborts it
                await abort_upload(run.store, file.path, before)

    async def _mark(self, path: str, commit: PendingCommit) -> None:
        run, data = self._run, encode_pending(commit, EtagForm(self._run.options.uploads.etags))
        try:
            await run.store.put_marker(path, marker_metadata(commit.length))
            there = await run.store.put(pending_path(path), data)
            self.written[pending_path(path)] = there.etag, commit
        except BaseException:  # it may be there all the same, and name an upload that is aborted
            with anyio.move_on_after(CLEANUP_GRACE_SECONDS, shield=True), suppress(StoreError):
                await remove_file(run.store, pending_path(path))
            raise

    def end(self) -> None:
        """Let nothing be written any more."""
        self._ended = True

    async def abort(self) -> None:
        """Abort open files, and refuse further writes.

        Raises ``StoreError``.
        """
        self.end()
        files = [file for file in self._open.values() if file is not None]
        await for_each(files, lambda file: file.abort(), workers=self._run.workers)
        self._open.clear()


def refuse_name(name: str) -> None:
    """Raise ``OptionError`` for reserved names in a magic directory."""
    if name.endswith((pending.SUFFIX, pending_set.SUFFIX)):
        raise OptionError(f"{name!r} is reserved for the commit protocol: use another suffix")


async def load_pending(
    run: UploadContext, base: str, *, whole: bool = False, written: Written | None = None
) -> tuple[list[PendingCommit], list[Failure], bool]:
    """Read all ``.pending`` files below a magic directory, whoever wrote them.

    With ``whole`` a file with data counts as unreadable: a client without magic support wrote it,
    so it would not be committed. ``written`` are files of this process; one that still has its etag
    is not read.

    Returns their content, the unreadable files with reasons, and whether the directory exists.
    Raises ``StoreError`` if it cannot be listed.
    """
    found, there = list[Info](), False
    failures: list[Failure] = []
    async for page in tree_pages(run.store, base):
        there = there or bool(page)
        found += [info for info in page if _is_pending(info.path)]
        failures += [_misplaced(info.path) for info in page if whole and _has_data(info)]
    if not there:
        return [], [], await is_there(run.store, base)
    commits: list[PendingCommit] = []

    async def read(info: Info) -> None:
        etag, known = (written or {}).get(info.path, (None, None))
        if known is not None and etag is not None and etag == info.etag:
            commits.append(known)
            return
        path = info.path
        try:
            commit = decode_pending(await run.store.get(path, MAX_PENDING_BYTES), path)
            check_place(run, commit, path)
            commits.append(commit)
        except (StoreError, ManifestError) as error:
            failures.append((path, error))

    await for_each(found, read, workers=run.workers)
    return sorted(commits, key=lambda commit: commit.key), failures, there


def _has_data(info: Info) -> bool:
    """Return whether this is neither an empty marker nor ``.pending``."""
    return info.kind is Kind.FILE and info.size > 0 and not _is_pending(info.path)


def _misplaced(path: str) -> Failure:
    text = "nothing uploads this file: write it with Task.open or Task.put, or through S3A"
    return path, PreconditionError("list", path, text)


def _is_pending(path: str) -> bool:
    return path.endswith(pending.SUFFIX)

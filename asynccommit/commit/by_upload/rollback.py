"""Undo a commit: delete its files, and restore overwritten ones.

What overwrites is completed after its copy was made: without a copy nothing was. An upload that is
open was not completed; it is looked at before it is aborted, since services differ in what they say
to the abort of one that was. One that has ended was completed if its file bears its token. Uploads
of Hadoop's tasks have none: their files are identified by their parts, and kept and reported if
another job may have made the same. Files are deleted only while the commit record exists.

Where uploads cannot be aborted, ``completion_window`` says from when on none is completed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from asynccommit.commit.by_upload.backups import put_back, restore
from asynccommit.commit.by_upload.completion_window import outlast_completions
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import Pending
from asynccommit.commit.by_upload.open_uploads import ended_as, is_open
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.remove import remove_listed
from asynccommit.commit.by_upload.rollback_check import files_left
from asynccommit.commit.by_upload.status import has_begun
from asynccommit.commit.job.success import read_success
from asynccommit.commit.spill import Entry, Spill
from asynccommit.errors import DeniedError, ManifestError, NotFoundError
from asynccommit.formats.upload_record import UploadRecord
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there

_SKEW = 900.0
"""Maximum clock error in seconds: S3 rejects requests with a larger one."""


class UploadRollbackResult(NamedTuple):
    """The result of a rollback.

    Attributes:
        files: number of files that were removed.
        restored: number of overwritten files that were put back.
        left: places that are not as they were before; a warning names each.
    """

    files: int = 0
    restored: int = 0
    left: tuple[str, ...] = ()


async def undo_uploads(
    run: UploadContext, record: UploadRecord, plan: UploadPlan
) -> UploadRollbackResult:
    """End every upload without its file, and restore overwritten files.

    Raises ``OutcomeUnknownError`` where the service does not tell whose file is at a destination.
    """
    await outlast_completions(run)
    with Spill(run.options.spill_directory) as made:
        began = await _began(run, record)
        later = await _has_later(run, record, plan, began)
        taking = _UploadRollback(run, plan, made, began, later)
        with run.meter.timed("op_abort_uploads", plan.loaded.files):
            await for_each(plan.loaded.spill.entries(), taking.undo, workers=run.workers)
            if not await remove_listed(run, made):
                return UploadRollbackResult(taking.files, taking.restored, tuple(taking.left))
        files = taking.files + made.count
    if plan.asides and not await has_begun(run):
        return UploadRollbackResult(files, taking.restored, tuple(taking.left))
    restored, left = await restore(run, plan, later=later)
    left = [*taking.left, *left]
    left += await files_left(run, plan, left)
    return UploadRollbackResult(files, taking.restored + restored, tuple(left))


async def _began(run: UploadContext, record: UploadRecord) -> float:
    """Return when the commit began, by the clock that dates files, or earlier."""
    if run.pending.traits.account == run.store.traits.account:
        with suppress(NotFoundError):
            return float(int((await run.pending.head(run.layout.record)).modified))
    return record.started_ms / 1000 - _SKEW


async def _has_later(
    run: UploadContext, record: UploadRecord, plan: UploadPlan, began: float
) -> bool:
    """Return whether another job has committed here since this commit began."""
    try:
        info = await run.store.head(run.layout.success)
    except NotFoundError:
        return False
    planned = plan.asides.get(run.layout.success)
    if planned is not None and planned.etag == info.etag:
        return False
    with suppress(ManifestError):
        marker = await read_success(run)
        if marker is not None and marker.job_id == record.job_id:
            return False
    return not info.modified or info.modified >= began


@dataclass(slots=True)
class _UploadRollback:
    """A rollback, upload by upload; files to delete are collected in ``made``."""

    run: UploadContext
    plan: UploadPlan
    made: Spill
    began: float
    later: bool
    files: int = 0
    restored: int = 0
    left: list[str] = field(default_factory=list)

    async def undo(self, pending: Pending) -> None:
        """Abort an upload, or handle the file that it has become."""
        run, dest = self.run, pending.dest
        overwrites = dest in self.plan.asides
        info = await self._end(pending)
        if info is not None and not overwrites:
            await self.made.append([Entry("", dest, info.size, info.etag)])
        elif info is not None and await has_begun(run) and await put_back(run, info):
            self.files += 1
            self.restored += 1
        run.meter.step()

    async def _end(self, pending: Pending) -> Info | None:
        """End an upload; return its file, if it has certainly become one."""
        run, was_open = self.run, await self._was_open(pending)
        if was_open and not run.store.traits.aborts:
            return None  # and nobody completes it any more
        if was_open is not False and await self._is_aborted(pending):
            return None
        # Only now: a copy that was made before the completion is there when the upload is not.
        overwrites = pending.dest in self.plan.asides
        if overwrites and not await is_there(run.store, run.layout.aside(pending.dest)):
            return None
        info = await ended_as(run, pending)
        if info is None or pending.token or self._is_ours(info, ended=was_open is False):
            return info
        self.left.append(pending.dest)
        run.warn(
            f"{pending.dest} remains: it has the same content as the file of this job, but may "
            "belong to another. Check its owner, and delete it by hand if it belongs to this job"
        )
        return None

    async def _is_aborted(self, pending: Pending) -> bool:
        """Abort an upload; return whether the abort has certainly ended it."""
        store = self.run.store
        try:
            await store.abort_upload(pending.dest, pending.upload_id)
        except NotFoundError:
            return False
        rules = store.traits.multipart
        return rules is not None and rules.aborts and rules.abort_tells

    async def _was_open(self, pending: Pending) -> bool | None:
        try:
            return await is_open(self.run, pending)
        except DeniedError:
            return None

    def _is_ours(self, info: Info, *, ended: bool) -> bool:
        """Return whether a file without a token is from the upload that ended.

        Uploads begun before the commit do not belong to later jobs. (AWS dates a file by the
        beginning of its upload.) For younger files, only the set of earlier ended uploads decides.
        """
        if info.modified and info.modified < self.began:
            return True
        return ended and not self.later

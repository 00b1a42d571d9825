"""Job commit, fifth step: complete uploads, one file each.

An upload that is gone was completed or aborted. The file at its destination tells which: the etag
of a completed upload follows from its parts.
"""

from __future__ import annotations

from asynccommit.commit.by_upload.completion_window import CompletionWindow, completing
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import Pending
from asynccommit.commit.by_upload.open_uploads import ended_as, is_open
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.spill import Entry
from asynccommit.errors import ExistsError, LeaseLostError, NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info

GONE = (
    "its upload is gone and its file does not exist: the upload was aborted, another writer has "
    "taken its name, or the file was replaced since. The task that wrote it must run again"
)


async def complete_uploads(run: UploadContext, plan: UploadPlan) -> None:
    """Complete every upload; already completed ones count as well.

    Raises ``ExistsError`` for a file that appeared at a destination since the preflight,
    ``NotFoundError`` for an upload that was aborted, and ``PreconditionError`` for a file to
    overwrite that has changed and for parts that differ from those that were sent.
    """

    async def complete(pending: Pending) -> None:
        info = await _in_time(run, plan, pending, window)
        await plan.made.append([Entry(pending.upload_id, pending.dest, pending.size, info.etag)])
        plan.completed_one(pending.dest)
        run.count_renamed()

    with run.meter.timed("job_stage_complete_uploads", plan.loaded.files):
        async with completing(run) as window:
            await for_each(plan.loaded.spill.entries(), complete, workers=run.workers)
        run.meter.statistics.count("committer_bytes_committed", plan.loaded.bytes)
        run.meter.statistics.count("committer_commits_completed", plan.loaded.files)


async def _in_time(
    run: UploadContext, plan: UploadPlan, pending: Pending, window: CompletionWindow | None
) -> Info:
    """Complete an upload, once more if this process stood still meanwhile."""
    try:
        return await _complete(run, plan, pending)
    except LeaseLostError:
        if window is None or not await window.renew():
            raise
    return await _complete(run, plan, pending)


async def _complete(run: UploadContext, plan: UploadPlan, pending: Pending) -> Info:
    old = plan.asides.get(pending.dest)
    try:
        if old is not None:
            return await _over(run, pending, old.etag or "")
        return await _beside(run, pending)
    except NotFoundError:
        info = await ended_as(run, pending)
        if info is None:
            raise NotFoundError("complete_upload", pending.dest, GONE) from None
        return info


async def _beside(run: UploadContext, pending: Pending) -> Info:
    """Complete an upload to an empty place.

    Raises ``ExistsError``, and ``NotFoundError`` if the upload has ended.
    """
    dest, upload_id, _, parts, token = pending
    try:
        return await run.store.complete_upload(
            dest, upload_id, parts, overwrite=False, token=token or None
        )
    except ExistsError:
        if not await is_open(run, pending):
            raise NotFoundError("complete_upload", dest, GONE) from None
        text = "another writer created it after the commit began: move it, and resume"
        raise ExistsError("complete_upload", dest, text) from None


async def _over(run: UploadContext, pending: Pending, etag: str) -> Info:
    """Complete an upload over the planned file, and over no other.

    Raises ``PreconditionError`` for another's file, ``NotFoundError`` if the upload has ended.
    """
    dest, upload_id, _, parts, token = pending
    try:
        return await run.store.complete_upload(
            dest, upload_id, parts, etag=etag, token=token or None
        )
    except PreconditionError:
        there = await _etag_of(run, dest)
        if not await is_open(run, pending):
            raise NotFoundError("complete_upload", dest, GONE) from None
        if there == etag:  # so the parts differ from those that were sent
            raise
        if there is not None:
            text = "is to be overwritten, but another writer has changed it since the commit began"
            raise PreconditionError("complete_upload", dest, text) from None
    return await _beside(run, pending)


async def _etag_of(run: UploadContext, path: str) -> str | None:
    try:
        return (await run.store.head(path)).etag or ""
    except NotFoundError:
        return None

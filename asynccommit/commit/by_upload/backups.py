"""Copies of overwritten files, for a rollback.

A copy is made only while the file is the planned one, so that a late process does not copy the new
file instead.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import cast

from asynccommit.commit.by_upload.context import UploadContext, write_over
from asynccommit.commit.by_upload.plan import Old, UploadPlan
from asynccommit.commit.by_upload.remove import remove_exactly
from asynccommit.errors import ExistsError, NotFoundError, OutcomeUnknownError, PreconditionError
from asynccommit.formats.success import MAX_SUCCESS_BYTES
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.multipart import CopyingStore
from asynccommit.stores.tree import is_there, remove_tree

_TRIES = 3


async def copy_aside(run: UploadContext, plan: UploadPlan) -> None:
    """Copy the files to overwrite; then delete the marker of an earlier job.

    Raises ``PreconditionError`` for a file that has changed since the plan was made.
    """
    if not plan.asides:
        return
    with run.meter.timed("op_copy_aside", len(plan.asides)):
        await for_each(plan.asides, lambda path: _copy(run, plan, path), workers=run.workers)
        path = run.layout.success
        marker = plan.asides.get(path)
        # A late deletion by name alone would delete the marker of this very job.
        if marker is not None and run.store.traits.conditional_delete:
            await remove_exactly(run, [Info(path, Kind.FILE, marker.size, marker.etag)])


async def _copy(run: UploadContext, plan: UploadPlan, path: str) -> None:
    place, etag = run.layout.aside(path), plan.asides[path].etag or ""
    try:
        await run.store.copy_if(path, place, etag)
    except (NotFoundError, PreconditionError):
        if not await is_there(run.store, place):
            text = "was changed by another writer since the commit began"
            raise PreconditionError("copy_if", path, text) from None
    run.meter.step()


async def keep_copies(run: UploadContext) -> UploadContext:
    """Record that the copies stay, so that a late driver does not delete them.

    Returns the context of a clean-up that leaves them.
    """
    await run.store.put(run.layout.kept, b"")
    return replace(run, keeps_copies=True)


async def drop_copies(run: UploadContext) -> None:
    """Delete the copies of an ended commit, unless some were not restored."""
    if run.keeps_copies or await is_there(run.store, run.layout.kept):
        return
    with suppress(NotFoundError):
        await remove_tree(run.store, run.layout.aside_dir)


async def put_back(run: UploadContext, info: Info) -> bool:
    """Copy back the file that this file of the job has overwritten.

    Returns false if the copy does not exist any more.
    """
    path, place = info.path, run.layout.aside(info.path)
    try:
        copy = await run.store.head(place)
        await run.store.copy_if(place, path, copy.etag or "", replaces=info.etag or "")
    except (NotFoundError, PreconditionError):
        return False
    except OutcomeUnknownError:
        there = await _find(run, path)
        if there is not None and there.etag == info.etag:
            raise
        return await _is_copy(run, there, copy)
    return True


async def restore(run: UploadContext, plan: UploadPlan, *, later: bool) -> tuple[int, list[str]]:
    """Put back overwritten files whose place is now empty.

    Returns their number and the failures. Files that others have written since stay. An empty place
    also stays empty if another job has committed ``later``, because this job left no place empty:
    the other job may have replaced its content.
    """
    count, left = 0, list[str]()

    async def look(path: str) -> None:
        nonlocal count
        try:
            info = await run.store.head(path)
        except NotFoundError:
            if not later and await _copy_back(run, path):
                count += 1
                return
            info = None
        if info is None or info.etag != plan.asides[path].etag:
            await _say_changed(run, path, info, left)
        run.meter.step()

    marker = run.layout.success
    with run.meter.timed("op_restore_aside", len(plan.asides)):
        await for_each(sorted(plan.asides.keys() - {marker}), look, workers=run.workers)
        if marker in plan.asides:
            await _restore_marker(run, plan.asides[marker], left)
    return count, left


async def _copy_back(run: UploadContext, path: str) -> bool:
    """Copy a file back to an empty place.

    Returns false if there is no copy, or a file is at the place.
    """
    try:
        await run.store.copy(run.layout.aside(path), path, overwrite=False)
    except (NotFoundError, ExistsError):
        return False
    return True


async def _restore_marker(run: UploadContext, marker: Old, left: list[str]) -> None:
    """Put back the marker of an earlier job, with a line break added.

    It is written again even if it exists: its etag then changes, so that a stalled driver of this
    commit, or a late deletion, finds that it is not the marker to delete.
    """
    path, text = run.layout.success, "other writers keep changing it"
    for _ in range(_TRIES):
        try:
            text = await _renew(run, marker)
            break
        except (ExistsError, NotFoundError, PreconditionError, OutcomeUnknownError):
            continue  # another process has written or deleted it since
    if text:
        left.append(path)
        run.warn(f"{path} was not put back: {text}")


async def _renew(run: UploadContext, marker: Old) -> str:
    """Rewrite the planned marker; return the reason if another's is there."""
    path = run.layout.success
    info = await _find(run, path)
    # Only now: a marker that is missing was copied before it was deleted.
    old = await _content(run, run.layout.aside(path))
    if info is None:
        if old is None:
            return "there is no copy of it"
        await run.store.put(path, old + b"\n", overwrite=False)
        return ""
    there = await run.store.get(path, MAX_SUCCESS_BYTES)
    if info.etag == marker.etag:
        await write_over(run, info, there + b"\n")
    elif old is not None and there != old + b"\n":
        return "another writer has changed it since"
    return ""


async def _content(run: UploadContext, path: str) -> bytes | None:
    try:
        return await run.store.get(path, MAX_SUCCESS_BYTES)
    except NotFoundError:
        return None


async def _say_changed(run: UploadContext, path: str, info: Info | None, left: list[str]) -> None:
    """Warn that a file is missing or not ours, unless it was put back before."""
    copy, there = await _find(run, run.layout.aside(path)), info or await _find(run, path)
    if copy is None:
        text = f"there is no copy of it in {run.layout.aside(path)}"
    elif await _is_copy(run, there, copy):
        return
    else:
        text = f"another writer has {'deleted' if there is None else 'changed'} it since"
    left.append(path)
    run.warn(f"{path} was not put back: {text}")


async def _find(run: UploadContext, path: str) -> Info | None:
    try:
        return await run.store.head(path)
    except NotFoundError:
        return None


async def _is_copy(run: UploadContext, info: Info | None, copy: Info) -> bool:
    """Return whether a file is the one that was kept aside, put back."""
    if info is None or info.size != copy.size:
        return False
    rules = run.store.traits.multipart
    if rules is None or rules.copy_etags:
        return info.etag == copy.etag
    with suppress(NotFoundError):
        return await cast(CopyingStore, run.store).copied_from(info.path) == copy.path
    return False

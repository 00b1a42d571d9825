"""Copies of what files of the job overwrite: made before, put back by a rollback.

A copy is made only while the file is the one that was planned, so that nobody who comes late takes
the new one for it.
"""

from __future__ import annotations

from contextlib import suppress

from asynccommit.commit.by_upload.context import UploadContext, write_over
from asynccommit.commit.by_upload.plan import Old, UploadPlan
from asynccommit.commit.by_upload.remove import remove_exactly
from asynccommit.errors import ExistsError, NotFoundError, OutcomeUnknownError, PreconditionError
from asynccommit.formats.success import MAX_SUCCESS_BYTES
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.tree import is_there, remove_tree

_TRIES = 3


async def copy_aside(run: UploadContext, plan: UploadPlan) -> None:
    """Copy what is overwritten; then the marker of an earlier job goes.

    Raises ``PreconditionError`` for a file that somebody has changed since the plan was made.
    """
    if not plan.asides:
        return
    with run.timed("op_copy_aside", len(plan.asides)):
        await for_each(plan.asides, lambda path: _copy(run, plan, path), workers=run.workers)
        path = run.layout.success
        marker = plan.asides.get(path)
        # By name alone a deletion that comes late would take the marker of this very job.
        if marker is not None and run.store.traits.conditional_delete:
            await remove_exactly(run, [Info(path, Kind.FILE, marker.size, marker.etag)])


async def _copy(run: UploadContext, plan: UploadPlan, path: str) -> None:
    place, etag = run.layout.aside(path), plan.asides[path].etag or ""
    try:
        await run.store.copy_if(path, place, etag)
    except (NotFoundError, PreconditionError):
        if not await is_there(run.store, place):
            text = "was changed by another since the commit began"
            raise PreconditionError("copy_if", path, text) from None
    run.step()


async def keep_copies(run: UploadContext) -> None:
    """Say that the copies stay, so that no driver that wakes later deletes them."""
    run.keeps_copies = True
    await run.store.put(run.layout.kept, b"")


async def drop_copies(run: UploadContext) -> None:
    """Delete the copies of a commit that has ended, unless a rollback could not do without."""
    if run.keeps_copies or await is_there(run.store, run.layout.kept):
        return
    with suppress(NotFoundError):
        await remove_tree(run.store, run.layout.aside_dir)


async def put_back(run: UploadContext, info: Info) -> bool:
    """Copy back what this file of the job has overwritten; false if it is not there any more."""
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
        return _is_copy(there, copy)
    return True


async def restore(run: UploadContext, plan: UploadPlan, *, later: bool) -> tuple[int, list[str]]:
    """Put back what was overwritten and is not there; return how many, and where that failed.

    What somebody else has written since stays. So does a place that is empty, since this job has
    left none so, if another job has committed ``later``: it may have replaced what was there.
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
        run.step()

    marker = run.layout.success
    with run.timed("op_restore_aside", len(plan.asides)):
        await for_each(sorted(plan.asides.keys() - {marker}), look, workers=run.workers)
        if marker in plan.asides:
            await _restore_marker(run, plan.asides[marker], left)
    return count, left


async def _copy_back(run: UploadContext, path: str) -> bool:
    """Copy a file back to where nothing is; whether it is there now, or at least something."""
    try:
        await run.store.copy(run.layout.aside(path), path, overwrite=False)
    except (NotFoundError, ExistsError):
        return False
    return True


async def _restore_marker(run: UploadContext, marker: Old, left: list[str]) -> None:
    """Put back the marker of an earlier job, with a line break more at its end.

    It is written anew even if it is there: then its etag is another, and a driver of this commit
    that stood still, or a deletion that comes late, finds that it is not the one to delete.
    """
    path, text = run.layout.success, "others write it again and again"
    for _ in range(_TRIES):
        try:
            text = await _renew(run, marker)
            break
        except (ExistsError, NotFoundError, PreconditionError, OutcomeUnknownError):
            continue  # another has written or deleted it since
    if text:
        left.append(path)
        run.warn(f"{path} is not put back: {text}")


async def _renew(run: UploadContext, marker: Old) -> str:
    """Write the marker that was planned anew; return why not, if another's is there."""
    path = run.layout.success
    old, info = await _content(run, run.layout.aside(path)), await _find(run, path)
    if info is None:
        if old is None:
            return "there is no copy of it"
        await run.store.put(path, old + b"\n", overwrite=False)
        return ""
    there = await run.store.get(path, MAX_SUCCESS_BYTES)
    if info.etag == marker.etag:
        await write_over(run, info, there + b"\n")
    elif old is not None and there != old + b"\n":
        return "another has written it since"
    return ""


async def _content(run: UploadContext, path: str) -> bytes | None:
    try:
        return await run.store.get(path, MAX_SUCCESS_BYTES)
    except NotFoundError:
        return None


async def _say_changed(run: UploadContext, path: str, info: Info | None, left: list[str]) -> None:
    """Warn of another's file, or none, unless it is what was put back before."""
    copy, there = await _find(run, run.layout.aside(path)), info or await _find(run, path)
    if copy is None:
        text = f"there is no copy of it in {run.layout.aside(path)}"
    elif _is_copy(there, copy):
        return
    else:
        text = f"another has {'deleted' if there is None else 'written'} it since"
    left.append(path)
    run.warn(f"{path} is not put back: {text}")


async def _find(run: UploadContext, path: str) -> Info | None:
    try:
        return await run.store.head(path)
    except NotFoundError:
        return None


def _is_copy(info: Info | None, copy: Info) -> bool:
    return info is not None and (info.size, info.etag) == (copy.size, copy.etag)

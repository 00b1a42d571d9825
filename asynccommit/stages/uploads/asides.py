"""Copies of what files of the job overwrite: made before, put back by a rollback.

A copy is made only while the file is the one that was planned, so that nobody who comes late takes
the new one for it.
"""

from __future__ import annotations

from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.formats.success import MAX_SUCCESS_BYTES
from asynccommit.parallel import for_each, is_there
from asynccommit.stages.uploads.plan import Old, UploadPlan
from asynccommit.stages.uploads.remove import remove_exactly
from asynccommit.stages.uploads.run import UploadRun
from asynccommit.store import Info, Kind


async def copy_aside(run: UploadRun, plan: UploadPlan) -> None:
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


async def _copy(run: UploadRun, plan: UploadPlan, path: str) -> None:
    place, etag = run.layout.aside(path), plan.asides[path].etag or ""
    try:
        await run.store.copy_if(path, place, etag)
    except (NotFoundError, PreconditionError):
        if not await is_there(run.store, place):
            text = "was changed by another since the commit began"
            raise PreconditionError("copy_if", path, text) from None
    run.step()


async def put_back(run: UploadRun, path: str) -> bool:
    """Copy back what was overwritten, over what is there now; whether there is a copy of it."""
    place = run.layout.aside(path)
    try:
        copy = await run.store.head(place)
        await run.store.copy_if(place, path, copy.etag or "")
    except NotFoundError:
        run.warn(f"{path} is not put back: there is no copy of it in {place}")
        return False
    return True


async def restore(run: UploadRun, plan: UploadPlan) -> int:
    """Put back what was overwritten and is not there; return how many.

    What somebody else has written since stays.
    """
    count = 0

    async def look(path: str) -> None:
        nonlocal count
        try:
            info = await run.store.head(path)
        except NotFoundError:
            count += await put_back(run, path)
        else:
            if info.etag != plan.asides[path].etag:
                await _say_changed(run, path, info)
        run.step()

    marker = run.layout.success
    with run.timed("op_restore_aside", len(plan.asides)):
        await for_each(sorted(plan.asides.keys() - {marker}), look, workers=run.workers)
        if marker in plan.asides:
            await _restore_marker(run, plan.asides[marker])
    return count


async def _restore_marker(run: UploadRun, marker: Old) -> None:
    """Put back the marker of an earlier job, with a line break more at its end.

    It is written anew even if it is there: then its etag is another, and a driver of this commit
    that stood still, or a deletion that comes late, finds that it is not the one to delete.
    """
    path = run.layout.success
    old = await _content(run, run.layout.aside(path))
    there = await _content(run, path)
    if there is None and old is None:
        run.warn(f"{path} is not put back: there is no copy of it")
    elif there is None:
        await run.store.put(path, (old or b"") + b"\n")
    elif (await run.store.head(path)).etag == marker.etag:
        await run.store.put(path, there + b"\n")
    elif old is not None and there != old + b"\n":
        run.warn(f"{path} is not put back: another has written it since")


async def _content(run: UploadRun, path: str) -> bytes | None:
    try:
        return await run.store.get(path, MAX_SUCCESS_BYTES)
    except NotFoundError:
        return None


async def _say_changed(run: UploadRun, path: str, info: Info) -> None:
    """Warn of another's file, unless it is what was put back before."""
    try:
        copy = await run.store.head(run.layout.aside(path))
    except NotFoundError:
        return
    if (copy.size, copy.etag) != (info.size, info.etag):
        run.warn(f"{path} is not put back: another has written it since")

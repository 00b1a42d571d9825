"""Undoing a commit: exactly the files that it completed, and what these have overwritten.

An upload that can still be aborted was never completed. One that has ended was, if its file is at
its destination; that file is deleted while it has the etag that was seen, or overwritten by what it
has overwritten, so that readers miss neither.
"""

from __future__ import annotations

from typing import NamedTuple

from asynccommit.errors import NotFoundError
from asynccommit.parallel import for_each
from asynccommit.stages.uploads.asides import put_back, restore
from asynccommit.stages.uploads.pending import Pending
from asynccommit.stages.uploads.plan import UploadPlan
from asynccommit.stages.uploads.remove import remove_exactly
from asynccommit.stages.uploads.run import UploadRun
from asynccommit.stages.uploads.settle import ended_as
from asynccommit.store import Info


class Undone(NamedTuple):
    """How many files were taken back, and how many put back in their place."""

    files: int
    restored: int


async def take_back(run: UploadRun, plan: UploadPlan) -> Undone:
    """End every upload without its file, and put back what was overwritten.

    Raises ``OutcomeUnknownError`` where the service does not tell whose file is at a destination.
    """
    files = restored = 0

    async def undo(pending: Pending) -> None:
        nonlocal files, restored
        info = await _end(run, pending)
        if info is not None:
            files += 1
            if pending.dest in plan.asides and await put_back(run, pending.dest):
                restored += 1
            else:
                await remove_exactly(run, [info])
        run.step()

    with run.timed("op_abort_uploads", plan.loaded.files):
        await for_each(plan.loaded.spill.entries(), undo, workers=run.workers)
    return Undone(files, restored + await restore(run, plan))


async def _end(run: UploadRun, pending: Pending) -> Info | None:
    """Abort an upload; return its file if it has been completed."""
    try:
        await run.store.abort_upload(pending.dest, pending.upload_id)
    except NotFoundError:
        return await ended_as(run, pending)
    return None

"""Abort, the end: uploads of tasks that are still running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.open_uploads import open_uploads
from asynccommit.commit.by_upload.sweep import Sweeper, abort_one
from asynccommit.commit.hints import quoted
from asynccommit.errors import DeniedError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.multipart import Upload

_WAITS = (0.5, 1.0, 2.0)
"""Seconds that an abort waits for tasks that may still be running."""
_CLOCK_SKEW_SECONDS = 2.0  # by which times of a store may be rounded
_MOST = 10_000
"""Maximum number of open uploads to read, enough to show that there are some."""


async def wait_for_late(
    run: UploadContext, sweeper: Sweeper, delete: Callable[[], Awaitable[bool]]
) -> bool:
    """Wait for tasks that still run, and abort their uploads.

    Returns whether any of them left a file. If no upload below the destination is open, there is no
    wait. An upload that is open although it was aborted had a part in transit, and is aborted
    again. An upload that is open after a few seconds becomes a warning: nothing tells whether it is
    this job's.

    Args:
        run: the abort, which still occupies the record's place.
        sweeper: the uploads that it has aborted so far.
        delete: deletes the job's files, after the uploads that they name are aborted.
    """
    found = False
    for seconds in _WAITS:
        if not await _still_open(run, sweeper):
            return found
        await asyncio.sleep(seconds)
        found |= await delete()
    if left := await _still_open(run, sweeper):
        run.warn(_left_open(run, left))
    return found


async def _still_open(run: UploadContext, sweeper: Sweeper) -> Sequence[Upload]:
    """Return open uploads below the destination, after this job's are aborted."""
    if not run.options.uploads.abort_pending:
        return ()
    found: list[Upload] = []
    try:
        async for uploads in open_uploads(run):
            found += uploads
            if len(found) > _MOST:
                break
    except DeniedError as error:
        run.warn(f"the open uploads of its tasks could not be listed: {error}")
        return ()
    if sweeper.since:  # what was begun before the job was set up is another's
        early = sweeper.since - _CLOCK_SKEW_SECONDS
        found = [one for one in found if not one.initiated or one.initiated >= early]
    again = [one for one in found if one[:2] in sweeper.swept.names]
    await for_each(again, lambda one: abort_one(run, one[:2]), workers=run.workers)
    return [one for one in found if one[:2] not in sweeper.swept.names]


def _left_open(run: UploadContext, left: Sequence[Upload]) -> str:
    if not run.store.traits.aborts:
        return (
            f"{len(left)} uploads below {run.layout.dest} are open and not named by any file of "
            f"this job, the first of {min(left).path[:300]}: tasks of this job that still run may "
            "have begun them, or other jobs. They are paid for until they expire"
        )
    path, upload_id, _ = min(left)
    dest, place = run.layout.dest, quoted(str(run.layout.dest))
    return (
        f"{len(left)} uploads below {dest} are open and not named by any file of this job, the "
        f"first of {path[:300]} ({upload_id[:40]}): tasks of this job that still run may have "
        "begun them, or other jobs. Parts are paid for until an upload ends. List them: "
        f"asynccommit uploads list {place} - and abort those that are not needed: asynccommit "
        f"uploads abort {place} --older-than 1h --yes"
    )

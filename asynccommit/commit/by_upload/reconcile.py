"""Determine whether an upload was completed or aborted."""

from __future__ import annotations

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import Pending
from asynccommit.errors import NotFoundError
from asynccommit.stores.base import Info


async def is_open(run: UploadContext, pending: Pending) -> bool:
    """Return whether an upload can still be completed or aborted."""
    try:
        await run.store.list_parts(pending.dest, pending.upload_id)
    except NotFoundError:
        return False
    return True


async def is_completed(run: UploadContext, pending: Pending) -> Info | None:
    """Return the file that the completion of this upload made, or ``None``.

    The result is ``None`` for an upload that is still open, whatever another file looks like.
    Raises ``OutcomeUnknownError`` if the service cannot tell.
    """
    info = await ended_as(run, pending)
    return None if info is None or await is_open(run, pending) else info


async def ended_as(run: UploadContext, pending: Pending) -> Info | None:
    """Return the file of an ended upload; ``None`` if aborted or replaced.

    Its length is not compared: a pending set with a wrong length must not hide the file. Without a
    token, another upload's file with the same bytes looks the same.
    """
    return await run.store.completed(pending.dest, pending.parts, pending.token or None)

"""Giving up uploads that a task has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import anyio

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.writer import abort_upload
from asynccommit.errors import StoreError
from asynccommit.runtime.concurrency import for_each

CLEANUP_GRACE_SECONDS = 60.0
"""Seconds that the undoing of a cancelled task commit may take."""


async def abort_all(run: UploadContext, uploads: Iterable[tuple[str, str]]) -> list[StoreError]:
    """Abort every upload, given as path and id, despite failures.

    Returns why some could not be aborted; those that are not there any more are fine.
    """
    failed: list[StoreError] = []

    async def abort(upload: tuple[str, str]) -> None:
        try:
            await abort_upload(run.store, *upload)
        except StoreError as error:
            failed.append(error)

    await for_each(dict.fromkeys(uploads), abort, workers=run.workers)
    return failed


async def abort_after(
    run: UploadContext, error: BaseException, uploads: Iterable[tuple[str, str]]
) -> bool:
    """Abort uploads because of ``error``, and add failures as notes.

    A cancellation does not stop it.

    Returns whether all have ended.
    """
    uploads = list(uploads)
    with anyio.move_on_after(CLEANUP_GRACE_SECONDS, shield=True):
        failed = await abort_all(run, uploads)
        if isinstance(error, asyncio.CancelledError):  # parts that were under way may come after it
            failed += await abort_all(run, uploads)
        if failed:
            text = f"and {len(failed)} uploads could not be aborted, the first: {failed[0]}"
            error.add_note(text)
        return not failed
    return False

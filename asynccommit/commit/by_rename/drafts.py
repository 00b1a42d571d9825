"""Files of the owner that are written ahead and put in place by one rename."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from asynccommit.commit.context import CommitContext
from asynccommit.errors import NotFoundError, StoreError
from asynccommit.stores.base import DraftingStore, Info


async def draft(run: CommitContext, data: bytes) -> Info | None:
    """Write the content of a file of the job ahead, and return where it is.

    It means nothing until ``put_new`` puts it in place. Returns ``None`` where a put takes no
    longer, or if that failed.
    """
    if not run.store.traits.drafts:
        return None
    with suppress(StoreError):  # ``put_new`` writes it then, and reports its own error
        return await cast(DraftingStore, run.store).draft(run.layout.job_dir, data)
    return None


async def put_new(run: CommitContext, path: str, data: bytes, ahead: Info | None = None) -> Info:
    """Write a file that must not exist, with its draft if there is one.

    Raises as ``Store.put``.
    """
    if ahead is None:
        return await run.store.put(path, data, overwrite=False)
    try:
        await run.store.rename(ahead.path, path, etag=ahead.etag)
    except StoreError as error:
        await discard(run, ahead)
        if isinstance(error, NotFoundError):
            await _remove_made(run)
        raise
    return ahead._replace(path=path)


async def _remove_made(run: CommitContext) -> None:
    """Delete the directories that the draft has made of a job that had ended."""
    with suppress(StoreError):
        await run.store.delete(run.layout.job_dir)
        await run.store.delete(run.layout.temporary)


async def discard(run: CommitContext, ahead: Info | None) -> None:
    """Delete a draft that is not needed; ignore errors."""
    if ahead is not None:
        with suppress(StoreError):
            await run.store.delete(ahead.path)

"""Files of a driver, written ahead and put in place by one rename.

A draft lies in the directory of the job, not in that of the attempt: one that is written late makes
no directory again that an abort has moved away, and its rename then fails.
"""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import NotFoundError, OutcomeUnknownError, PreconditionError, StoreError
from asynccommit.stores.base import DraftingStore, Info, Store

MOVES = 3  # how often a draft is put in place whose etag changes


async def draft(store: Store, layout: Layout, data: bytes) -> Info | None:
    """Write the content of a file of the job ahead, and return where it is.

    It means nothing until ``put_drafted`` puts it in place. Returns ``None`` where a put takes no
    longer, or if that failed.
    """
    if not store.traits.drafts:
        return None
    with suppress(StoreError):  # ``put_drafted`` writes it then, and reports its own error
        return await cast(DraftingStore, store).draft(layout.job_dir, data)
    return None


async def reserve(store: Store, folder: str) -> str | None:
    """Create a hidden file whose content comes later, and return its path.

    Returns ``None`` where that saves nothing, or if it failed.
    """
    if not store.traits.drafts:
        return None
    with suppress(StoreError):
        return await cast(DraftingStore, store).reserve(folder)
    return None


async def draft_in(store: Store, layout: Layout, reserved: str | None, data: bytes) -> Info | None:
    """Write content ahead as ``draft`` does, in the reserved file if any."""
    if reserved is None:
        return await draft(store, layout, data)
    with suppress(StoreError):
        return await cast(DraftingStore, store).fill(reserved, data)
    return None


async def put_drafted(
    store: Store, layout: Layout, path: str, data: bytes, ahead: Info | None
) -> Info:
    """Write a file that must not exist, with its draft if there is one.

    Raises as ``Store.put``.
    """
    for _ in range(MOVES):
        if ahead is None:
            break
        try:
            await store.rename(ahead.path, path, etag=ahead.etag)
            return ahead._replace(path=path)
        except PreconditionError:
            ahead = await found_again(store, ahead)
        except OutcomeUnknownError:
            # Under another etag it is still to be moved, and a late move is refused.
            found = await found_again(store, ahead)
            if found is None or found.etag == ahead.etag:
                await discard(store, found)
                raise
            ahead = found
        except StoreError as error:
            await discard(store, ahead)
            if isinstance(error, NotFoundError):
                await _remove_made(store, layout)
            raise
    await discard(store, ahead)
    return await store.put(path, data, overwrite=False)


async def found_again(store: Store, ahead: Info) -> Info | None:
    """Return a draft with its present etag, which a second append has changed.

    Returns ``None`` if it must be written anew.
    """
    with suppress(StoreError):
        found = await store.head(ahead.path)
        if found.size == ahead.size:
            return found
    await discard(store, ahead)
    return None


async def _remove_made(store: Store, layout: Layout) -> None:
    """Delete the directories that the draft has made of a job that had ended."""
    with suppress(StoreError):
        await store.delete(layout.job_dir)
        await store.delete(layout.temporary)


async def discard(store: Store, ahead: Info | None) -> None:
    """Delete a draft that is not needed; ignore errors."""
    if ahead is not None:
        with suppress(StoreError):
            await store.delete(ahead.path)

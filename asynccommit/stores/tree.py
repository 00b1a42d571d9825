"""Walk, list and remove trees of a store."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
)
from contextlib import suppress
from typing import cast

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import BulkStore, Info, Kind, Page, Store


def pages(store: Store, path: str) -> AsyncIterator[tuple[Info, ...]]:
    """Yield the direct children of the directory ``path``, a page at a time."""
    return _pages(store.list, path)


def whole_pages(store: Store, path: str) -> AsyncIterator[Page]:
    """Yield the pages of a listing of ``path``, with their ``stale`` paths."""
    return _whole(store.list, path)


def tree_pages(store: Store, path: str) -> AsyncIterator[tuple[Info, ...]]:
    """Yield everything below ``path`` in pages. Requires a ``BulkStore``."""
    return _pages(cast(BulkStore, store).list_tree, path)


async def _pages(
    ask: Callable[[str, str | None], Awaitable[Page]], path: str
) -> AsyncIterator[tuple[Info, ...]]:
    async for page in _whole(ask, path):
        yield page.entries


async def _whole(
    ask: Callable[[str, str | None], Awaitable[Page]], path: str
) -> AsyncIterator[Page]:
    token = None
    while True:
        page = await ask(path, token)
        yield page
        if page.token is None:
            return
        if page.token == token:
            raise RejectedError("list", path, "the store returns the same page repeatedly")
        token = page.token


async def list_all(store: Store, path: str) -> list[Info]:
    """Return all direct children of the directory ``path``.

    Raises ``NotFoundError``.
    """
    return [info async for page in pages(store, path) for info in page]


async def list_if_there(store: Store, path: str) -> list[Info]:
    """Return all direct children of ``path``; none if it is missing."""
    try:
        return await list_all(store, path)
    except NotFoundError:
        return []


async def is_there(store: Store, path: str) -> bool:
    """Return whether anything is at ``path``."""
    try:
        await store.head(path)
    except NotFoundError:
        return False
    return True


async def walk(store: Store, path: str) -> AsyncIterator[Info]:
    """Yield everything below ``path``, each directory before its content.

    Depth first in batches: up to ``store.traits.workers`` directories are listed at once, and those
    found last come first, so that few wait at any time. Links are not followed.
    """
    waiting = [path]
    while waiting:
        batch = waiting[-store.traits.workers :]
        del waiting[-len(batch) :]
        found: list[Info] = []

        async def look(directory: str, into: list[Info] = found) -> None:
            async for entries in pages(store, directory):
                into.extend(entries)

        await for_each(batch, look, workers=store.traits.workers)
        for info in found:
            yield info
            if info.is_dir:
                waiting.append(info.path)


# --- deleting --------------------------------------------------------------------------------

_PASSING = (ThrottledError, UnavailableError, OutcomeUnknownError)


async def remove_tree(store: Store, path: str) -> None:
    """Delete ``path`` and everything below it, in any number of requests.

    Raises ``NotFoundError`` if nothing was there.
    """
    if store.traits.recursive_delete:
        await store.delete_tree(path)
        return
    if await remove_below(store, path, itself=not store.traits.atomic_directory_rename):
        if store.traits.atomic_directory_rename:
            with suppress(NotFoundError, ExistsError):
                await remove_directory(store, path)
        return
    try:
        await remove_directory(store, path)
    except NotFoundError:
        await remove_file(store, path)


async def remove_below(
    store: Store, path: str, keep: Callable[[Info], bool] = lambda _: False, *, itself: bool = False
) -> int:
    """Delete everything below ``path``, where the store lists so.

    Args:
        store: a ``BulkStore``.
        path: the directory.
        keep: returns true for entries to keep.
        itself: delete the object that stands for the directory, too, if there was anything below.

    Returns the number of deleted entries. Entries that others delete or replace meanwhile are
    ignored.
    """
    found, directories = 0, list[Info]()

    async def batches() -> AsyncIterator[list[Info]]:
        nonlocal found
        most, batch = store.traits.bulk_delete, list[Info]()
        async for page in tree_pages(store, path):
            wanted = [info for info in page if not keep(info)]
            found += len(wanted)
            directories.extend(info for info in wanted if info.is_dir and info.etag is None)
            batch += [info for info in wanted if not info.is_dir or info.etag is not None]
            while len(batch) >= most:
                yield batch[:most]
                del batch[:most]
        if itself and found:
            batch.append(Info(path, Kind.DIRECTORY))
        if batch:
            yield batch

    workers = store.traits.workers
    await for_each(batches(), lambda batch: remove_files(store, batch), workers=workers)
    await remove_directories(store, directories)
    return found


async def remove_files(store: Store, entries: list[Info]) -> None:
    """Delete files of a ``BulkStore`` if their etags match.

    Missing files are fine.
    """
    bulk = cast(BulkStore, store)
    said = await bulk.delete_many(entries)
    for info, error in zip(entries, said, strict=True):
        if isinstance(error, _PASSING):  # alone it is waited for and sent again
            error = (await bulk.delete_many([info]))[0]
        if error is not None and not isinstance(error, NotFoundError | PreconditionError):
            raise error


async def remove_file(store: Store, path: str) -> None:
    """Delete a file, identified by etag if the store supports that.

    Raises the errors of the store.

    A repeated or late deletion by name alone would delete whatever has the name then.
    """
    if not store.traits.bulk_delete:
        await store.delete(path)
        return
    info = await store.head(path)
    if not info.is_dir:
        await remove_files(store, [info])


async def remove_directory(store: Store, path: str) -> None:
    """Delete an empty directory, never a link.

    In a bucket, a file of its name is kept as well.

    Raises ``NotFoundError``, ``ExistsError`` for one that is not empty, ``PreconditionError`` for a
    link.
    """
    if not store.traits.bulk_delete:
        await store.delete(path)
        return
    async for page in tree_pages(store, path):
        if any(not info.is_dir or info.etag is not None for info in page):
            raise ExistsError("delete", path, "the directory is not empty")
    bulk = cast(BulkStore, store)
    if store.traits.atomic_directory_rename:
        # Beside the folder there may be an object that stands for it, of a client without folders.
        await bulk.delete_many([Info(f"{path}/", Kind.FILE)])
    error = (await bulk.delete_many([Info(path, Kind.DIRECTORY)]))[0]
    if error is not None:
        raise error


async def remove_directories(store: Store, directories: list[Info]) -> None:
    """Delete directories that are empty, the innermost first."""
    depths: dict[int, dict[str, Info]] = {}
    for info in directories:
        depths.setdefault(info.path.count("/"), {})[info.path] = info

    async def remove(info: Info) -> None:
        try:
            await remove_files(store, [info])
        except ExistsError:
            return  # something has come to it

    for depth in sorted(depths, reverse=True):
        await for_each(depths[depth].values(), remove, workers=store.traits.workers)


async def read_if_there(store: Store, path: str, limit: int) -> bytes | None:
    """Return the content of a file, ``None`` if it is not there."""
    try:
        return await store.get(path, limit)
    except NotFoundError:
        return None

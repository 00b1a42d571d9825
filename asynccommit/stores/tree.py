"""Walk, list and remove trees of a store."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Sequence,
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
from asynccommit.runtime.concurrency import batches, for_each
from asynccommit.stores.base import BatchListStore, BulkStore, Info, Kind, Page, Store

Ask = Callable[[str, str | None], Awaitable[Page]]
"""A request for one page of a listing: ``Store.list``, or one that knows the first pages."""


def pages(store: Store, path: str) -> AsyncIterator[tuple[Info, ...]]:
    """Yield the direct children of the directory ``path``, a page at a time."""
    return _entries(store.list, path)


def tree_pages(store: Store, path: str) -> AsyncIterator[tuple[Info, ...]]:
    """Yield everything below ``path`` in pages. Requires a ``BulkStore``."""
    return _entries(cast(BulkStore, store).list_tree, path)


async def _entries(ask: Ask, path: str) -> AsyncIterator[tuple[Info, ...]]:
    async for page in each_page(ask, path):
        yield page.entries


async def each_page(ask: Ask, path: str) -> AsyncIterator[Page]:
    """Yield the pages of ``path`` by ``ask``, with their ``stale`` paths."""
    page = await ask(path, None)
    yield page
    while (token := page.token) is not None:
        page = await next_page(ask, path, token)
        yield page


async def next_page(ask: Ask, path: str, token: str) -> Page:
    """Return the page of a listing that ``token`` of the page before it names."""
    page = await ask(path, token)
    if page.token == token:
        raise RejectedError("list", path, "the store returns the same page repeatedly")
    return page


async def list_all(store: Store, path: str, ask: Ask | None = None) -> list[Info]:
    """Return all direct children of the directory ``path``.

    ``ask`` is what lists it, ``store.list`` by default. Raises ``NotFoundError``.
    """
    ask = ask or store.list
    page = await ask(path, None)
    found = [*page.entries]
    while page.token is not None:
        page = await next_page(ask, path, page.token)
        found += page.entries
    return found


async def ahead(store: Store, paths: Sequence[str]) -> Ask:
    """Request the first pages of directories in one call if the store can.

    Args:
        store: the store.
        paths: up to ``Traits.bulk_list`` directories.

    Returns what to list the directories by. Only the first request for one has the page that was
    read ahead.
    """
    if len(paths) < 2 or not store.traits.bulk_list:
        return store.list
    listed = await cast(BatchListStore, store).list_many(paths)
    found = {path: page for path, page in zip(paths, listed, strict=True) if page is not None}

    async def ask(path: str, token: str | None) -> Page:
        page = None if token else found.pop(path, None)
        return page if page is not None else await store.list(path, token)

    return ask


async def for_each_directory(
    store: Store,
    paths: Sequence[str],
    work: Callable[[str, Ask], Awaitable[object]],
    *,
    workers: int,
) -> None:
    """Await ``work`` for each directory, with what it lists the directory by.

    Several are listed in one call if the store takes many, and worked on in turn then. Raises what
    ``for_each`` does.
    """
    most = max(1, store.traits.bulk_list)

    async def some(batch: Sequence[str]) -> None:
        ask = await ahead(store, batch)
        for path in batch:
            await work(path, ask)

    await for_each(batches(paths, most), some, workers=workers)


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


async def walk(store: Store, *paths: str) -> AsyncIterator[Info]:
    """Yield everything below ``paths``, each directory before its content.

    Depth first in batches: as many directories are listed at once as the store has workers for, and
    those found last come first, so that few wait at any time. Links are not followed.
    """
    workers = store.traits.workers
    most = workers * max(1, store.traits.bulk_list)
    waiting = [*paths]
    while waiting:
        batch = waiting[-most:]
        del waiting[-len(batch) :]
        found: list[Info] = []

        async def look(directory: str, ask: Ask, into: list[Info] = found) -> None:
            into.extend(await list_all(store, directory, ask))

        await for_each_directory(store, batch, look, workers=workers)
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


async def remove_files(store: Store, entries: Sequence[Info]) -> None:
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

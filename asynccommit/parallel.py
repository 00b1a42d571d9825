"""Doing many things at once: one concurrency helper with three undo roles, and tree walks.

``for_each`` is N workers over one shared iterator: a fraction of a microsecond an item, where a
task an item costs some 70. Its callbacks descend from ``Tasks`` of Netflix's s3committer and
Hadoop's ``TaskPool``: the item that failed, the items never tried, the items already done.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sized,
)
from contextlib import suppress
from typing import Generic, TypeVar, cast

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.store import BulkStore, Info, Kind, Page, Store

T = TypeVar("T")
U = TypeVar("U")
Work = Callable[[T], Awaitable[object]]
OnFailure = Callable[[T, BaseException], Awaitable[object]]

_BREATH = 256  # items after which a worker lets the loop turn, even if no work ever waited
_NOTES = 5  # further errors that are named on the one that is raised


async def for_each(
    items: Iterable[T] | AsyncIterable[T],
    work: Work[T],
    *,
    workers: int,
    on_failure: OnFailure[T] | None = None,
    on_abort: Work[T] | None = None,
    on_revert: Work[T] | None = None,
) -> None:
    """Await ``work(item)`` for every item, at most ``workers`` at a time.

    The first failure stops new items; those under way are let finish. Then each item that failed
    goes to ``on_failure`` with its error, each never tried to ``on_abort``, each done to
    ``on_revert``; an error in one of these does not keep the others from running.

    Args:
        items: read lazily; an error that it raises counts as a failure.
        work: what to do with one item.
        workers: how many items may be under way, at least 1.
        on_failure: undo what a failed item left behind.
        on_abort: told of the items that were never tried.
        on_revert: undo a done item; done items are remembered only if this is given.

    Raises:
        Exception: the first error, the others as notes on it; never an ``ExceptionGroup``.
        asyncio.CancelledError: once all workers have ended; then nothing is undone.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    run = _Run(items, work, remember=on_revert is not None)
    await run.spread(workers)
    if not run.errors:
        return
    if on_failure is not None:
        await run.undo(run.failed, lambda pair: on_failure(*pair), workers)
    if on_abort is not None:
        await run.undo(run.untried, on_abort, workers)
        await run.undo(run.rest, on_abort, workers)
    if on_revert is not None:
        await run.undo(run.done, on_revert, workers)
    raise _first_of(run.errors)


class _Run(Generic[T]):
    """What the workers of one ``for_each`` share."""

    def __init__(
        self, items: Iterable[T] | AsyncIterable[T], work: Work[T], *, remember: bool = False
    ) -> None:
        self.errors: list[BaseException] = []
        self.failed: list[tuple[T, BaseException]] = []
        self.untried: list[T] = []
        self.done: list[T] = []
        self.rest: Iterator[T] | _InTurn[T]
        self.rest = _InTurn(items) if isinstance(items, AsyncIterable) else iter(items)
        self._at_most = len(items) if isinstance(items, Sized) else None
        self._work = work
        self._remember = remember

    async def spread(self, workers: int) -> None:
        if self._at_most is not None:
            workers = min(workers, self._at_most)
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        try:
            if isinstance(self.rest, _InTurn):
                await self._drain_async(self.rest)
            else:
                await self._drain(self.rest)
        except Exception as error:  # of the iterator: those of the work are kept in _do
            self.errors.append(error)

    async def _drain(self, items: Iterator[T]) -> None:
        if self.errors:
            return
        for count, item in enumerate(items, 1):
            await self._do(item)
            if count % _BREATH == 0:
                await asyncio.sleep(0)
            if self.errors:
                return

    async def _drain_async(self, items: _InTurn[T]) -> None:
        async for item in items:
            if self.errors:
                self.untried.append(item)
                return
            await self._do(item)
            if self.errors:
                return

    async def _do(self, item: T) -> None:
        try:
            await self._work(item)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            # A cancellation that nobody asked of this worker came out of the work itself. A task
            # group would take it for a quiet end, and the item would be lost.
            self.errors.append(error)
            self.failed.append((item, error))
        else:
            if self._remember:
                self.done.append(item)

    async def undo(
        self, items: Iterable[U] | AsyncIterable[U], work: Work[U], workers: int
    ) -> None:
        """Await ``work`` for every item, whatever fails on the way; keep the errors."""

        async def attempt(item: U) -> None:
            try:
                await work(item)
            except Exception as error:
                self.errors.append(error)

        run = _Run(items, attempt)
        await run.spread(workers)
        self.errors.extend(run.errors)


class _InTurn(Generic[T]):
    """An async iterator that several tasks may ask at once; a generator forbids that."""

    def __init__(self, items: AsyncIterable[T]) -> None:
        self._items = aiter(items)
        self._lock = asyncio.Lock()

    def __aiter__(self) -> _InTurn[T]:
        return self

    async def __anext__(self) -> T:
        async with self._lock:
            return await anext(self._items)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _first_of(errors: list[BaseException]) -> BaseException:
    first, *others = errors
    for other in others[:_NOTES]:
        first.add_note(f"also: {type(other).__name__}: {other}")
    if len(others) > _NOTES:
        first.add_note(f"and {len(others) - _NOTES} more errors")
    return first


def pages(store: Store, path: str) -> AsyncIterator[tuple[Info, ...]]:
    """Yield the direct children of the directory ``path``, a page at a time."""
    return _pages(store.list, path)


def whole_pages(store: Store, path: str) -> AsyncIterator[Page]:
    """Yield the pages of a listing of the directory ``path``, with what they say besides."""
    return _whole(store.list, path)


def tree_pages(store: Store, path: str) -> AsyncIterator[tuple[Info, ...]]:
    """Yield everything below ``path`` a page at a time, where the store lists so."""
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
            raise RejectedError("list", path, "the store answers the same page again and again")
        token = page.token


async def list_all(store: Store, path: str) -> list[Info]:
    """Return all direct children of the directory ``path``. Raises ``NotFoundError``."""
    return [info async for page in pages(store, path) for info in page]


async def list_if_there(store: Store, path: str) -> list[Info]:
    """Return all direct children of the directory ``path``; none if it is missing."""
    try:
        return await list_all(store, path)
    except NotFoundError:
        return []


async def is_there(store: Store, path: str) -> bool:
    """Whether anything is at ``path``."""
    try:
        await store.head(path)
    except NotFoundError:
        return False
    return True


async def walk(store: Store, path: str) -> AsyncIterator[Info]:
    """Yield everything below the directory ``path``, a directory before what it holds.

    Depth first in batches: up to ``store.traits.workers`` directories are listed at once, and
    those found last come first, so that few wait at any time. Links are not followed.
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
    """Delete ``path`` and everything below it, however many requests that takes.

    Raises ``NotFoundError`` if nothing was there.
    """
    if store.traits.recursive_delete:
        await store.delete_tree(path)
        return
    if await remove_below(store, path):
        with suppress(NotFoundError, ExistsError):
            await remove_directory(store, path)
        return
    try:
        await remove_directory(store, path)
    except NotFoundError:
        await remove_file(store, path)


async def remove_below(
    store: Store, path: str, keep: Callable[[Info], bool] = lambda _: False
) -> int:
    """Delete everything below ``path``, where the store lists so.

    Args:
        store: a ``BulkStore``.
        path: the directory.
        keep: says what stays.

    Returns how many there were. What another deletes or replaces meanwhile is no concern.
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
        if batch:
            yield batch

    workers = store.traits.workers
    await for_each(batches(), lambda batch: remove_files(store, batch), workers=workers)
    await remove_directories(store, directories)
    return found


async def remove_files(store: Store, entries: list[Info]) -> None:
    """Delete files of a ``BulkStore``, each only while it has its etag; those gone are fine.

    Raises the first error that does not pass.
    """
    bulk = cast(BulkStore, store)
    said = await bulk.delete_many(entries)
    for info, error in zip(entries, said, strict=True):
        if isinstance(error, _PASSING):  # alone it is waited for and sent again
            error = (await bulk.delete_many([info]))[0]
        if error is not None and not isinstance(error, NotFoundError | PreconditionError):
            raise error


async def remove_file(store: Store, path: str) -> None:
    """Delete a file: the very one that is there now, where the store can tell. Raises what it says.

    A deletion by name alone that is sent again, or comes late, takes whatever is there then.
    """
    if not store.traits.bulk_delete:
        await store.delete(path)
        return
    info = await store.head(path)
    if not info.is_dir:
        await remove_files(store, [info])


async def remove_directory(store: Store, path: str) -> None:
    """Delete a directory if nothing is in it, and never a link, or in a bucket a file, of its name.

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

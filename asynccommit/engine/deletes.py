"""Delete many files, or a whole directory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import cast

from asynccommit.commit.spill import in_batches
from asynccommit.engine.listing import list_tree
from asynccommit.engine.operation import BulkOperation, OnError
from asynccommit.engine.paths import checked_path
from asynccommit.engine.report import BulkReport, OnProgress
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import BulkStore, Info, Kind, Store
from asynccommit.stores.tree import remove_directories, remove_directory

_PASSING = (ThrottledError, UnavailableError, OutcomeUnknownError)

Paths = Iterable[str | os.PathLike[str]] | AsyncIterable[str | os.PathLike[str]]


async def delete_files(
    store: Store,
    paths: Paths,
    *,
    on_error: OnError = "stop",
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
) -> BulkReport:
    """Delete files by path, many at a time; skip those that are missing.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        paths: absolute paths, from any iterable, which is read as the work goes on.
        on_error: ``stop`` begins nothing more after the first failure; ``continue`` deletes all
            others, and the report names the failures.
        dry_run: delete nothing; look at every path.
        on_progress: called a few times a second, in a thread.

    Raises:
        OptionError: a path of a list is invalid; nothing was done.
        BulkError: a file could not be deleted and ``on_error`` is ``stop``, or a later path is
            invalid.
    """
    operation = BulkOperation(
        "delete_files", store, on_error=on_error, dry_run=dry_run, on_progress=on_progress
    )
    if isinstance(paths, Sequence):
        paths = [checked_path(path) for path in paths]
        operation.total = len(paths)
    await Deleter(operation).delete(_as_infos(paths))
    return await operation.result()


async def _as_infos(paths: Paths) -> AsyncIterator[Info]:
    if isinstance(paths, AsyncIterable):
        async for path in paths:
            yield Info(checked_path(path), Kind.FILE)
    else:
        for path in paths:
            yield Info(checked_path(path), Kind.FILE)


async def delete_tree(
    store: Store,
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "stop",
    dry_run: bool = False,
    on_progress: OnProgress | None = None,
) -> BulkReport:
    """Delete a directory and everything below it.

    Where the store deletes a directory in one request, that is sent after a look, and its files are
    not counted: the report has one directory. Elsewhere the files are listed and deleted in
    batches, each only if it has not changed since it was listed. A dry run lists and counts them.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        path: absolute path of a directory.
        on_error: ``stop`` or ``continue`` after the first failure, see ``delete_files``.
        dry_run: delete nothing; count the files and their bytes.
        on_progress: called a few times a second, in a thread.

    Raises:
        OptionError: the path is invalid, or is the root of the store.
        NotFoundError: nothing is at the path.
        BulkError: the directory could not be deleted.
    """
    top = checked_path(path)
    if top == "/":
        raise OptionError("expected a directory to delete, not the root of the store")
    operation = BulkOperation(
        "delete_tree", store, on_error=on_error, dry_run=dry_run, on_progress=on_progress
    )
    if dry_run:
        await _count(operation, top)
    elif store.traits.recursive_delete:
        await _delete_whole(operation, top)
    else:
        await _delete_listed(operation, top)
    return await operation.result()


async def _delete_whole(operation: BulkOperation, path: str) -> None:
    # After it a deletion that finds nothing was executed twice.
    await operation.store.head(path)
    try:
        with suppress(NotFoundError):
            await operation.store.delete_tree(path)
    except StoreError as error:
        operation.record(path, "", error)
    else:
        operation.finish_directory()


async def _count(operation: BulkOperation, top: str) -> None:
    found = False
    async for info in list_tree(operation.store, top):
        found = True
        if not info.is_dir:
            operation.finish(size=info.size)
    if not found:
        await operation.store.head(top)


async def _delete_listed(operation: BulkOperation, top: str) -> None:
    directories: list[Info] = []
    seen = 0

    async def files() -> AsyncIterator[Info]:
        nonlocal seen
        async for info in list_tree(operation.store, top):
            seen += 1
            if info.is_dir and info.etag is None:
                directories.append(info)
            else:
                yield info

    await Deleter(operation).delete(files())
    if not seen:
        info = await operation.store.head(top)
        await Deleter(operation).delete([info])
    elif not operation.has_failed:
        with operation.recording(top), suppress(NotFoundError, ExistsError):
            await remove_directories(operation.store, directories)
            await remove_directory(operation.store, top)  # it may exist only by its files


class Deleter:
    """Deletes files for one operation, in batches if the store has them."""

    def __init__(self, operation: BulkOperation) -> None:
        self._operation = operation
        self._store = operation.store
        self._most = self._store.traits.bulk_delete

    async def delete(self, entries: Iterable[Info] | AsyncIterable[Info]) -> None:
        """Delete every entry, or look at each in a dry run."""
        if self._operation.dry_run:
            await self._operation.each(entries, self._look)
        elif self._most:
            await self._operation.each(in_batches(entries, self._most), self._batch)
        else:
            await self._operation.each(entries, self._one)

    async def _one(self, info: Info) -> None:
        try:
            await self._store.delete(info.path)
        except StoreError as error:
            self._settle(info, error)
        else:
            self._operation.finish(size=info.size)

    async def _batch(self, entries: Sequence[Info]) -> None:
        failed = list[tuple[Info, StoreError]]()
        for info, result in zip(entries, await self._send(entries), strict=True):
            # Alone it is waited for and sent again.
            if len(entries) > 1 and isinstance(result, _PASSING):
                result = (await self._send([info]))[0]
            if result is None:
                self._operation.finish(size=info.size)
            else:
                failed.append((info, result))
        for info, result in failed:
            self._settle(info, result)

    async def _send(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        try:
            return await cast(BulkStore, self._store).delete_many(entries)
        except StoreError as error:
            return [error] * len(entries)

    def _settle(self, info: Info, error: StoreError) -> None:
        if not isinstance(error, NotFoundError):
            self._operation.fail(info.path, "", error)
        elif info.etag is not None:  # gone since it was listed, or deleted twice
            self._operation.finish(size=info.size)
        else:
            self._operation.skip()

    async def _look(self, info: Info) -> None:
        try:
            found = await self._store.head(info.path)
        except StoreError as error:
            self._settle(info, error)
        else:
            self._operation.finish(size=found.size)

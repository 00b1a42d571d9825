"""Make many directories, each once."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import zip_longest

from asynccommit.engine.operation import BulkOperation, OnError
from asynccommit.engine.paths import checked_path, parent_of
from asynccommit.engine.report import BulkReport, OnProgress
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import remove_directories, remove_directory

_KNOWN = 65_536
"""Directories that are remembered as made: some 10 MB."""


async def make_directories(
    store: Store,
    paths: Iterable[str | os.PathLike[str]],
    *,
    on_error: OnError = "stop",
    on_progress: OnProgress | None = None,
) -> BulkReport:
    """Make directories and their missing parents; those that exist are fine.

    Only the innermost ones take a request. ``done`` of the report counts these.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        paths: absolute paths; they are held in memory.
        on_error: ``stop`` at the first failure, or ``continue`` with the others.
        on_progress: called a few times a second, in a thread.

    Raises:
        OptionError: a path is invalid; nothing was done.
        BulkError: a directory could not be made, and ``on_error`` is ``stop``.
    """
    wanted = leaves(checked_path(path) for path in paths)
    operation = BulkOperation("make_directories", store, on_error=on_error, on_progress=on_progress)
    operation.total = len(wanted)

    async def make(path: str) -> None:
        try:
            await store.mkdir(path)
        except StoreError as error:
            operation.fail(path, "", error)
        else:
            operation.finish()

    await operation.each(wanted, make)
    return await operation.result()


def leaves(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not parents of another one, sorted."""
    found = sorted({*paths}, key=lambda path: path.split("/"))
    return [
        path
        for path, after in zip_longest(found, found[1:], fillvalue="")
        if not after.startswith(path if path == "/" else f"{path}/")
    ]


async def remove_emptied(store: Store, directories: Sequence[Info]) -> None:
    """Remove the directories that are empty, the innermost first; keep links."""
    if store.traits.bulk_delete:
        await remove_directories(store, [info for info in directories if info.etag is not None])
        directories = [info for info in directories if info.etag is None]
    depths: dict[int, list[str]] = {}
    for info in directories:
        depths.setdefault(info.path.count("/"), []).append(info.path)

    async def remove(path: str) -> None:
        with suppress(NotFoundError, ExistsError, PreconditionError):
            await remove_directory(store, path)

    for depth in sorted(depths, reverse=True):
        await for_each(depths[depth], remove, workers=store.traits.workers)


class Parents:
    """Makes the directories of destinations, each once.

    Nothing is made on a store where directories exist with their files.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, None] = OrderedDict()
        self._making: dict[str, asyncio.Lock] = {}

    async def make(self, dest: str) -> None:
        """Ensure that the directory of ``dest`` was made by this object."""
        parent = parent_of(dest)
        if parent == "/" or parent in self._known or not self._store.traits.directories:
            return
        lock = self._making.setdefault(parent, asyncio.Lock())
        async with lock:
            if parent not in self._known:
                await self._store.mkdir(parent)
                self._remember(parent)
        self._making.pop(parent, None)

    def forget(self, dest: str) -> None:
        """Make the directory of ``dest`` again when it is needed."""
        self._known.pop(parent_of(dest), None)

    def _remember(self, parent: str) -> None:
        self._known[parent] = None
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)

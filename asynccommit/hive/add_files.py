"""Add Hive's files to a directory, as copies where a name is taken."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
)
from asynccommit.hive.names import next_copy, split_copy
from asynccommit.hive.places import PublishDirectories, Published, cleaning_up, drop, move, restore
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import list_if_there, walk

_MOST_COPIES = 999_999  # limited by the digits of a name


async def add(store: Store, places: PublishDirectories) -> Published:
    """Move all files to the existing ones, or the whole directory if there are none."""
    await restore(store, places)
    try:
        await move(store, places.taken, places.final)
        return Published()
    except ExistsError:
        await move(store, places.taken, places.adding)
    return await add_from(store, places)


async def add_from(store: Store, places: PublishDirectories, *, resumed: bool = False) -> Published:
    """Move the files one by one; ``resumed`` if an earlier run may have moved some."""
    adding = _DirectoryMove(store, places, known=not resumed)
    try:
        added = await adding.run()
    except StoreError as error:
        try:
            await adding.take_back()
        except StoreError as second:
            error.add_note(f"the added files could not be removed: {second}")
        raise
    async with cleaning_up(places):
        await drop(store, places.adding)
    return Published(added=added)


class _DirectoryMove:
    """A move of files into a directory; undone if one cannot be moved.

    Args:
        store: any store.
        places: source and destination directories.
        known: no earlier run has moved any files.
    """

    def __init__(self, store: Store, places: PublishDirectories, *, known: bool) -> None:
        self._store = store
        self._places = places
        self._moved: list[tuple[str, str]] = []
        self._known = known

    async def run(self) -> int:
        """Move all files; return their number."""
        folders: dict[str, list[str]] = {}
        async for info in walk(self._store, self._places.adding):
            if info.kind is not Kind.DIRECTORY:
                folder, _, name = info.path.rpartition("/")
                folders.setdefault(folder, []).append(name)

        async def each(folder: str) -> None:
            await self._fill(folder, sorted(folders[folder]))

        await for_each(folders, each, workers=self._store.traits.workers)
        return len(self._moved)

    async def take_back(self) -> None:
        """Move all files back, unless more may have been moved than is known."""
        if not self._known:
            return

        async def back(pair: tuple[str, str]) -> None:
            await self._store.rename(pair[1], pair[0])

        await for_each(self._moved, back, workers=self._store.traits.workers)
        await move(self._store, self._places.adding, self._places.taken)

    async def _fill(self, folder: str, names: list[str]) -> None:
        dest = self._places.final + folder[len(self._places.adding) :]
        await self._store.mkdir(dest)
        there = _Names([_name(info) for info in await list_if_there(self._store, dest)])
        chosen = [(f"{folder}/{name}", f"{dest}/{there.free(name)}") for name in names]
        await for_each(chosen, self._move, workers=self._store.traits.workers)

    async def _move(self, pair: tuple[str, str]) -> None:
        try:
            await self._store.rename(*pair)
        except (OutcomeUnknownError, NotFoundError):  # it did exist: an earlier run's late request
            self._known = False
            raise
        self._moved.append(pair)


class _Names:
    """The names of a directory, taken and free."""

    def __init__(self, names: Iterable[str]) -> None:
        self._taken: set[str] = set()
        self._copies: dict[str, int] = {}
        for name in names:
            self._take(name)

    def free(self, name: str) -> str:
        """Return the name or that of its next free copy, and reserve it."""
        chosen = self._copy(name) if name in self._taken else name
        self._take(chosen)
        return chosen

    def _copy(self, name: str) -> str:
        after = self._copies[split_copy(name)[0]] + 1
        for number in chain(range(after, _MOST_COPIES + 1), range(1, after)):
            if (copy := next_copy(name, number)) not in self._taken:
                return copy
        raise RejectedError("rename", name, "every copy number is in use")

    def _take(self, name: str) -> None:
        self._taken.add(name)
        first, number = split_copy(name)
        self._copies[first] = max(number, self._copies.get(first, 0))


def _name(info: Info) -> str:
    return info.path.rpartition("/")[2]

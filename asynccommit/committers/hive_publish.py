"""What Hive does when a job ends: its files are cut off from stragglers, cleaned and published.

Tasks give their files final names in ``_tmp.X``, beside ``X``. Then::

    _tmp.X  ->  _tmp.X.intermediate    whoever still writes, writes elsewhere from now on
                duplicates deleted, empty buckets made
                _tmp.X.intermediate  ->  X
                _task_tmp.X deleted

Where ``X`` is to be replaced it is ``_backup.X`` meanwhile. Where files are added to it one by one
they are in ``_tmp.X.adding`` meanwhile, so that nobody looks for duplicates among half of them.
Empty buckets are written to ``_tmp.X.buckets`` and moved, so that a write of a dead process that
comes late cannot make ``.intermediate`` again, and the next run take that for what a job wrote.
Each step is one rename, or can be done twice; so a run that was cut short is finished by another.
The order is that of Hive 0.9; later releases rename nothing first, and a straggler may add a file
that nobody compares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain

from asynccommit.checked import checked
from asynccommit.committers.hive_merge import Dedup, change
from asynccommit.committers.hive_table import Reading, look
from asynccommit.committers.hive_unmovable import refuse_unmovable
from asynccommit.concurrency import for_each
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    RejectedError,
    StoreError,
    UnsupportedError,
)
from asynccommit.formats.hive_names import (
    next_copy,
    split_copy,
    task_temporary_path,
    temporary_path,
)
from asynccommit.parallel import is_there, list_if_there, remove_tree, walk
from asynccommit.store import Info, Kind, Store

_MOST_COPIES = 999_999  # that a name has digits for


@dataclass(frozen=True, slots=True)
class Published:
    """What publishing did.

    Attributes:
        dedup: what was cleared away before; ``None`` if there was nothing to publish.
        added: how many files were put beside others; 0 where the whole directory was moved.
        replaced: the directory that was there before is gone.
    """

    dedup: Dedup | None = None
    added: int = 0
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class _Places:
    """The directories of one publication."""

    final: str

    @property
    def written(self) -> str:
        return temporary_path(self.final)

    @property
    def taken(self) -> str:
        return f"{self.written}.intermediate"

    @property
    def adding(self) -> str:
        return f"{self.written}.adding"

    @property
    def buckets(self) -> str:
        return f"{self.written}.buckets"

    @property
    def discarded(self) -> str:
        return f"{self.written}.discarded"

    @property
    def task(self) -> str:
        return task_temporary_path(self.final)

    @property
    def backup(self) -> str:
        folder, _, name = self.final.rpartition("/")
        return f"{folder}/_backup.{name}"


@checked
async def publish(
    store: Store, path: str, reading: Reading | None = None, *, replaces: bool = False
) -> Published:
    """Publish what the tasks of a Hive job left in ``_tmp.X`` beside ``path``.

    All tasks have ended, and this is the only process that publishes there. After a failure, which
    names what went wrong, or a crash run it again, or ``discard``. A failure whose outcome is known
    leaves at ``path`` what was there.

    Args:
        store: one that renames a directory in one step.
        path: ``X``: where the files are to be; absolute and decoded.
        reading: how they are to be read; ``None`` is one level, by the rules up to Hive 2.3.
        replaces: what is at ``path`` goes; else the files are added, as copies where a name is
            taken.

    Raises:
        UnsupportedError: the store has no such rename.
        ManifestError: the duplicates cannot be told, or something is in the way that may be
            another job's; it is named.
        StoreError: the first request that failed.
    """
    places = await _open(store, path)
    if await is_there(store, places.adding):
        await _refuse_late(store, places, places.adding)
        done = await _add_from(store, places, resumed=True)
    else:
        done = await _publish(store, places, reading, replaces)
    for directory in (places.buckets, places.task, places.discarded):
        await _drop(store, directory)
    return done


@checked
async def discard(store: Store, path: str) -> None:
    """Remove both temporary directories of a Hive job that failed, and put back what it replaces.

    Args:
        store: one that renames a directory in one step.
        path: ``X``: where the files would have been; absolute and decoded.

    Raises:
        UnsupportedError: the store has no such rename.
        ManifestError: the job is half published, or what it replaces cannot be put back.
        StoreError: the first request that failed.
    """
    places = await _open(store, path)
    if await is_there(store, places.adding):
        raise ManifestError(
            places.adding, f"is half added to {places.final}: publish again, which finishes that"
        )
    if await is_there(store, places.taken) and await is_there(store, places.backup):
        await _refuse_foreign(store, places)
    await _restore(store, places)
    await _drop(store, places.discarded)
    for directory in (places.written, places.taken):
        with suppress(NotFoundError):  # in one step: of a half no later run shall publish the rest
            await _move(store, directory, places.discarded)
            await _drop(store, places.discarded)
    for directory in (places.buckets, places.task):
        await _drop(store, directory)


async def _open(store: Store, path: str) -> _Places:
    places = _Places(path.rstrip("/"))
    await is_there(store, places.final)  # a store may learn by a first request what it can do
    if not store.traits.atomic_directory_rename:
        raise UnsupportedError(
            f"{store.traits.name} cannot rename a directory in one step, so nothing keeps "
            "stragglers out of what is published: publish elsewhere, or let dedup clean the table"
        )
    return places


async def _publish(
    store: Store, places: _Places, reading: Reading | None, replaces: bool
) -> Published:
    if await is_there(store, places.taken):
        await _refuse_late(store, places, places.taken)
    else:
        await _settle(store, places)
        if not await is_there(store, places.written):
            return Published()
        if replaces:
            await refuse_unmovable(store, places.final, places.written)
        await _move(store, places.written, places.taken)
    cleaned = await _clean(store, places, reading or Reading())
    return replace(await (_replace if replaces else _add)(store, places), dedup=cleaned)


async def _clean(store: Store, places: _Places, reading: Reading) -> Dedup:
    done = Dedup(dry_run=False, found=await look(store, places.taken, reading))
    await _drop(store, places.buckets)
    numbers = {path: number for number, path in enumerate(done.found.missing)}
    if numbers:
        await store.mkdir(places.buckets)

    async def put(path: str, data: bytes, *, overwrite: bool) -> None:
        written = f"{places.buckets}/{numbers[path]}"
        # A late sending that made another version would keep it from being moved.
        made = await store.put(written, data, overwrite=False)
        await store.rename(written, path, replace=overwrite, etag=made.etag)

    await change(store, done, put)
    return done


async def _settle(store: Store, places: _Places) -> None:
    """Finish, or take back, what an earlier run left of replacing."""
    if not await is_there(store, places.backup):
        return
    if not await is_there(store, places.final):
        await _restore(store, places)
        return
    await _drop(store, places.backup)  # that run had only this left to do
    await _refuse_late(store, places, places.final)


async def _refuse_late(store: Store, places: _Places, taken: str) -> None:
    if await is_there(store, places.written):
        raise ManifestError(
            places.written,
            f"came after {taken} was made of it: it is a straggler's, and to be deleted, or "
            "another job's; look at it, move it away and publish again",
        )


async def _replace(store: Store, places: _Places) -> Published:
    replaced = await is_there(store, places.backup)
    if replaced:
        await _refuse_foreign(store, places)
    elif await is_there(store, places.final):
        await _move(store, places.final, places.backup)
        replaced = True
    async with _putting_back(store, places):
        await _move(store, places.taken, places.final)
    await _drop(store, places.backup)
    return Published(replaced=replaced)


async def _refuse_foreign(store: Store, places: _Places) -> None:
    if await is_there(store, places.final):
        raise ManifestError(
            places.final,
            f"is there, and so is {places.backup}, which it was moved to: somebody else has made "
            "it. Move one of them away and publish again",
        )


@asynccontextmanager
async def _putting_back(store: Store, places: _Places) -> AsyncIterator[None]:
    """Put back what is replaced if the block fails, unless it may have done its work."""
    try:
        yield
    except OutcomeUnknownError:
        raise
    except StoreError as error:
        try:
            await _restore(store, places)
        except StoreError as second:
            error.add_note(f"{places.backup} could not be put back: {second}")
        raise


async def _restore(store: Store, places: _Places) -> None:
    with suppress(NotFoundError, ExistsError):
        await _move(store, places.backup, places.final)


async def _move(store: Store, source: str, dest: str) -> None:
    """Rename a directory: this very one, where the store can tell, should the request come late."""
    await store.rename(source, dest, etag=(await store.head(source)).etag)


async def _drop(store: Store, directory: str) -> None:
    with suppress(NotFoundError):
        await remove_tree(store, directory)


# --- adding files to a directory -----------------------------------------------------------------


async def _add(store: Store, places: _Places) -> Published:
    """Move all files to where others are; whole, if nothing is there."""
    await _restore(store, places)
    try:
        await _move(store, places.taken, places.final)
        return Published()
    except ExistsError:
        await _move(store, places.taken, places.adding)
    return await _add_from(store, places)


async def _add_from(store: Store, places: _Places, *, resumed: bool = False) -> Published:
    adding = _Adding(store, places, known=not resumed)
    try:
        added = await adding.run()
    except StoreError as error:
        try:
            await adding.take_back()
        except StoreError as second:
            error.add_note(f"what was added could not be taken back: {second}")
        raise
    await _drop(store, places.adding)
    return Published(added=added)


class _Adding:
    """Moving files beside others, and back if one cannot be moved.

    Args:
        store: any.
        places: where from and where to.
        known: no earlier run has moved some.
    """

    def __init__(self, store: Store, places: _Places, *, known: bool) -> None:
        self._store = store
        self._places = places
        self._moved: list[tuple[str, str]] = []
        self._known = known

    async def run(self) -> int:
        """Move all files; return how many."""
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
        """Move all back that was moved, unless more may have been moved than is known."""
        if not self._known:
            return

        async def back(pair: tuple[str, str]) -> None:
            await self._store.rename(pair[1], pair[0])

        await for_each(self._moved, back, workers=self._store.traits.workers)
        await _move(self._store, self._places.adding, self._places.taken)

    async def _fill(self, folder: str, names: list[str]) -> None:
        dest = self._places.final + folder[len(self._places.adding) :]
        await self._store.mkdir(dest)
        there = _Names([_name(info) for info in await list_if_there(self._store, dest)])
        chosen = [(f"{folder}/{name}", f"{dest}/{there.free(name)}") for name in names]
        await for_each(chosen, self._move, workers=self._store.traits.workers)

    async def _move(self, pair: tuple[str, str]) -> None:
        try:
            await self._store.rename(*pair)
        except (OutcomeUnknownError, NotFoundError):  # it was there: an earlier run's last word
            self._known = False
            raise
        self._moved.append(pair)


class _Names:
    """The names of a directory, and which ones are free."""

    def __init__(self, names: Iterable[str]) -> None:
        self._taken: set[str] = set()
        self._copies: dict[str, int] = {}
        for name in names:
            self._take(name)

    def free(self, name: str) -> str:
        """Return the name itself, or that of its next copy; it is taken from now on."""
        chosen = self._copy(name) if name in self._taken else name
        self._take(chosen)
        return chosen

    def _copy(self, name: str) -> str:
        after = self._copies[split_copy(name)[0]] + 1
        for number in chain(range(after, _MOST_COPIES + 1), range(1, after)):
            if (copy := next_copy(name, number)) not in self._taken:
                return copy
        raise RejectedError("rename", name, "there is a copy of every number already")

    def _take(self, name: str) -> None:
        self._taken.add(name)
        first, number = split_copy(name)
        self._copies[first] = max(number, self._copies.get(first, 0))


def _name(info: Info) -> str:
    return info.path.rpartition("/")[2]

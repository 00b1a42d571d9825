"""Tables that Hive wrote: one file a task where several attempts wrote one, and a file a bucket.

A Hive task gives its file its final name itself when it closes it, outside of any commit of tasks.
So where a task ran twice, both attempts are there, and every row of it is read twice. Hive's own
cure, which runs when a job ends, is done here after the fact, and on any store.

Where Hive's rule itself loses data it is not followed: see ``docs/hive.md``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from asynccommit.errors import ExistsError, NotFoundError, PreconditionError
from asynccommit.hive.scan import Duplicates, Reading, TableScan, scan_table
from asynccommit.options.checked import checked
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import remove_directory
from asynccommit.stores.unchanged import delete_unchanged, is_changed

__all__ = ["Dedup", "Reading", "TableScan", "change", "dedup"]

T = TypeVar("T")


class Put(Protocol):
    """Writes a file, as ``Store.put`` does."""

    def __call__(self, path: str, data: bytes, *, overwrite: bool) -> Awaitable[object]:
        """Write a file."""
        ...


@dataclass(slots=True)
class Dedup:
    """What removing duplicates does, or did; each list by path.

    Attributes:
        dry_run: nothing was changed.
        found: what was there before.
        deleted: files that were deleted.
        removed: partition directories that were removed.
        created: empty buckets that were made.
        kept: path -> why it was left as it is.
    """

    dry_run: bool
    found: TableScan
    deleted: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


@checked
async def dedup(
    store: Store, path: str, reading: Reading | None = None, *, dry_run: bool = True
) -> Dedup:
    """Delete all but one file of each task, and what else Hive clears away when a job ends.

    A file is deleted only while it and the one that stays are as they were listed. Nothing is
    changed if the rules cannot be applied somewhere. A run that was cut short is finished by
    another. No job may write to the table meanwhile.

    Args:
        store: any.
        path: of the table; absolute and decoded.
        reading: how it is to be read; ``None`` is one level, by the rules up to Hive 2.3.
        dry_run: only say what would be done.

    Raises:
        ManifestError: the rules cannot be applied: they know no winner, or the names are not
            Hive's, or an empty bucket cannot be made. A dry run has the first and the last of
            these in ``found.conflicts``.
        NotFoundError: there is no such directory, and the store can tell.
    """
    done = Dedup(dry_run, await scan_table(store, path, reading or Reading()))
    if not dry_run:
        await change(store, done, store.put)
    return done


async def change(store: Store, done: Dedup, put: Put) -> None:
    """Do what was found.

    Args:
        store: any.
        done: what was found; what is done is noted in it.
        put: makes an empty bucket, and raises ``ExistsError`` if something is there.

    Raises ``ManifestError`` before anything is changed.
    """
    done.found.check()

    async def clean(one: Duplicates) -> None:
        for loser in one.losers:
            await _noted(done, loser.path, done.deleted, _delete(store, one.winner, loser))

    async def drop(info: Info) -> None:
        await _noted(done, info.path, done.deleted, delete_unchanged(store, info))

    async def make(path: str) -> None:
        made = put(path, done.found.missing[path], overwrite=False)
        await _noted(done, path, done.created, made)

    async def remove(path: str) -> None:
        await _noted(done, path, done.removed, _remove(store, path))

    await _all(store, done.found.duplicates, clean)
    await _all(store, done.found.temporary, drop)
    await _all(store, done.found.missing, make)
    await _all(store, done.found.empty, remove)
    for paths in (done.deleted, done.created, done.removed):
        paths.sort()


async def _all(store: Store, items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    await for_each(items, work, workers=store.traits.workers)


async def _noted(done: Dedup, path: str, into: list[str], change: Awaitable[object]) -> None:
    """Await a change, and note whether it was made or why not."""
    try:
        await change
    except NotFoundError as error:
        done.kept[path] = "it is gone" if error.path == path else f"{error.path} is gone"
    except ExistsError:
        done.kept[path] = "something has come there since it was listed"
    except PreconditionError as error:
        changed = "it" if error.path == path else error.path
        done.kept[path] = f"{changed} has changed since it was listed"
    else:
        into.append(path)


async def _remove(store: Store, path: str) -> None:
    # Where there are no directories it has gone with its last file.
    with suppress(NotFoundError):
        await remove_directory(store, path)


async def _delete(store: Store, winner: Info, loser: Info) -> None:
    if is_changed(store, await store.head(winner.path), winner):
        raise PreconditionError("head", winner.path, "it has changed since it was listed")
    await delete_unchanged(store, loser)

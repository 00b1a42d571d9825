"""Remove duplicate task output from Hive tables; fill empty buckets.

A Hive task renames its file to the final name itself when it closes it, outside any task commit. So
if a task ran twice, both attempts are there, and every row of it is read twice. Hive's own remedy
runs when a job ends; this module does the same afterwards, and on any store.

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
    """A function that writes a file, like ``Store.put``."""

    def __call__(self, path: str, data: bytes, *, overwrite: bool) -> Awaitable[object]:
        """Write a file."""
        ...


@dataclass(slots=True)
class Dedup:
    """The result of removing duplicates, or of a dry run; each list by path.

    Attributes:
        dry_run: nothing was changed.
        found: state of the table before.
        deleted: deleted files.
        removed: removed partition directories.
        created: created empty buckets.
        kept: path -> why it was left unchanged.
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
    """Delete all but one file of each task, as Hive does at the end of a job.

    Everything else that Hive cleans up then is deleted too. A file is deleted only while it and the
    one that stays are unchanged since they were listed. Nothing is changed if the rules cannot be
    applied somewhere. An interrupted run can be repeated. No job may write to the table meanwhile.

    Args:
        store: any store.
        path: path of the table; absolute and decoded.
        reading: how to read the table; ``None`` means one level, by the rules up to Hive 2.3.
        dry_run: only report what would be done.

    Raises:
        ManifestError: the rules cannot be applied: they do not decide a winner, or the names are
            not Hive's, or an empty bucket cannot be created. A dry run reports the first and the
            last case in ``found.conflicts``.
        NotFoundError: the directory does not exist, and the store can report that.
    """
    done = Dedup(dry_run, await scan_table(store, path, reading or Reading()))
    if not dry_run:
        await change(store, done, store.put)
    return done


async def change(store: Store, done: Dedup, put: Put) -> None:
    """Apply the changes that were found.

    Args:
        store: any store.
        done: findings; each change is recorded in it.
        put: creates an empty bucket, and raises ``ExistsError`` if the path exists.

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
    """Await a change, and record that it was made or why not."""
    try:
        await change
    except NotFoundError as error:
        done.kept[path] = "it is gone" if error.path == path else f"{error.path} is gone"
    except ExistsError:
        done.kept[path] = "something was written there since the listing"
    except PreconditionError as error:
        changed = "it" if error.path == path else error.path
        done.kept[path] = f"{changed} has changed since the listing"
    else:
        into.append(path)


async def _remove(store: Store, path: str) -> None:
    # Without real directories it vanished with its last file.
    with suppress(NotFoundError):
        await remove_directory(store, path)


async def _delete(store: Store, winner: Info, loser: Info) -> None:
    if is_changed(store, await store.head(winner.path), winner):
        raise PreconditionError("head", winner.path, "it has changed since the listing")
    await delete_unchanged(store, loser)

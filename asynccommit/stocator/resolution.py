"""Resolve tables that Stocator wrote: choose files, delete the others.

Stocator writes the output of every task attempt to the final place, so there may be several objects
for one file. The largest counts, and of two equally large ones the one with the smaller name; none
counts unless there is a ``_SUCCESS`` in a directory above it. Empty objects are not files. Readers
other than Stocator see all of them. New data is not written this way: see
``unsupported_committers.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stocator.names import SUCCESS, TEMPORARY, attempt_of, is_attempt, united
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import is_there, tree_pages, walk
from asynccommit.stores.unchanged import delete_unchanged


@dataclass(slots=True)
class Resolved:
    """The content of a directory for readers; each list is sorted by path.

    Attributes:
        visible: the files that a reader should see.
        losers: winner's path -> other attempts of the same file.
        unfinished: attempts without a ``_SUCCESS`` above them.
        empty: files without content: markers, and directories.
    """

    visible: list[Info] = field(default_factory=list)
    losers: dict[str, list[Info]] = field(default_factory=dict)
    unfinished: list[Info] = field(default_factory=list)
    empty: list[Info] = field(default_factory=list)


@dataclass(slots=True)
class Repair:
    """The result, or the plan, of repairing a table.

    Attributes:
        dry_run: nothing was deleted.
        losers: superseded attempts, which readers without Stocator see as duplicates.
        deleted: paths of the losers that were deleted.
        kept: path -> why it was left.
    """

    dry_run: bool
    losers: list[Info]
    deleted: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


async def resolve(store: Store, path: str) -> Resolved:
    """Return the files below a directory as a reader should see them.

    The whole directory is listed and kept in memory.

    Args:
        store: the store of the table.
        path: path of the directory; absolute and decoded.

    Raises ``NotFoundError`` if the directory does not exist and the store can report that.
    """
    above = await _has_success_above(store, path)
    found = Resolved()
    groups: dict[str, list[Info]] = {}
    committed: set[str] = set()
    async for info in _files(store, path):
        folder, _, name = info.path.rpartition("/")
        if name == SUCCESS:
            committed.add(folder)
        if not info.size:
            found.empty.append(info)
        elif is_attempt(info.path):
            groups.setdefault(united(info.path), []).append(info)
        else:
            found.visible.append(info)
    for shared, attempts in groups.items():
        if above or _is_below(shared, committed):
            _choose(found, attempts)
        else:
            found.unfinished.extend(attempts)
    for entries in (found.visible, found.unfinished, found.empty):
        entries.sort()
    return found


async def repair(store: Store, path: str, *, dry_run: bool = True) -> Repair:
    """Delete superseded attempts, so that readers see what Stocator shows.

    An attempt is deleted only if it is below a ``_SUCCESS``, the winner still exists and is not
    smaller, and the loser is unchanged since it was listed. No job may write to the table
    meanwhile.

    Args:
        store: the store of the table.
        path: path of the table; absolute and decoded.
        dry_run: only report what would be deleted.
    """
    losers = (await resolve(store, path)).losers
    done = Repair(dry_run, sorted(info for group in losers.values() for info in group))
    if dry_run:
        return done

    async def clean(winner: str) -> None:
        for loser in losers[winner]:
            await _delete(store, winner, loser, done)

    await for_each(losers, clean, workers=store.traits.workers)
    done.deleted.sort()
    return done


async def _files(store: Store, path: str) -> AsyncIterator[Info]:
    if store.traits.bulk_delete:
        async for page in tree_pages(store, path):
            for info in page:
                if _counts(info, path):
                    yield info
        return
    async for info in walk(store, path):
        if _counts(info, path):
            yield info


def _counts(info: Info, path: str) -> bool:
    below = info.path[len(path) :].split("/")
    return info.kind is Kind.FILE and TEMPORARY not in below


async def _has_success_above(store: Store, path: str) -> bool:
    """Return whether there is a marker in the directory or in one above it."""
    folder = path.rstrip("/")
    while True:
        if await is_there(store, f"{folder}/{SUCCESS}"):
            return True
        if not folder:
            return False
        folder = folder.rpartition("/")[0]


def _is_below(path: str, committed: set[str]) -> bool:
    folder = path.rpartition("/")[0]
    while folder and folder not in committed:
        folder = folder.rpartition("/")[0]
    return folder in committed


def _choose(found: Resolved, attempts: list[Info]) -> None:
    winner, *losers = sorted(attempts, key=lambda info: (-info.size, info.path))
    found.visible.append(winner)
    # A file without an attempt in its name has no other attempts.
    beaten = [info for info in losers if attempt_of(info.path)]
    if beaten:
        found.losers[winner.path] = beaten


async def _delete(store: Store, winner: str, loser: Info, done: Repair) -> None:
    try:
        if (await store.head(winner)).size < loser.size:
            done.kept[loser.path] = "the larger file is now smaller"
            return
        await delete_unchanged(store, loser)
    except NotFoundError as error:
        done.kept[loser.path] = "it is gone" if error.path == loser.path else f"{winner} is gone"
    except PreconditionError:
        done.kept[loser.path] = "it has changed since the listing"
    else:
        done.deleted.append(loser.path)

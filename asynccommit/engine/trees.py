"""Move a whole directory, in as few requests as the store allows."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from asynccommit.commit.spill import Entry
from asynccommit.engine.directories import Parents, leaves
from asynccommit.engine.journaled import (
    JournalPath,
    begun,
    carry_out,
    move_listed,
    move_whole,
    refuse_unjournaled,
)
from asynccommit.engine.listing import list_tree
from asynccommit.engine.operation import BulkOperation, OnError
from asynccommit.engine.pairs import FileRename
from asynccommit.engine.paths import checked_path, is_within
from asynccommit.engine.renames import Mover, check_renames, find
from asynccommit.engine.report import BulkReport, OnProgress
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OptionError,
    PreconditionError,
    StoreError,
)
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_if_there, remove_directories, remove_directory

_KEPT = (NotFoundError, ExistsError, PreconditionError)
"""The errors for a directory that is gone, has come to hold something, or is a link."""


async def move_tree(
    store: Store,
    source: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *,
    replace: bool = False,
    copy: bool = False,
    on_error: OnError = "stop",
    dry_run: bool = False,
    journal: JournalPath | None = None,
    lease: float | None = None,
    on_progress: OnProgress | None = None,
    host: Host | None = None,
) -> BulkReport:
    """Move a directory to ``dest`` itself, never into it.

    Where the store renames directories atomically, each directory that is missing at the
    destination is one request, whatever it holds; where both exist, their contents are merged. On
    other stores every file is renamed, as listed. Directories of the source that are empty in the
    end are removed. The same call again finishes what an earlier one has left.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        source: absolute path of a directory, or of one file.
        dest: its new absolute path.
        replace: replace files at the destination; by default such a file fails.
        copy: where the store cannot rename (S3), copy each file and delete its source.
        on_error: ``stop`` begins nothing more after the first failure; ``continue`` moves all
            others, and the report names the failures.
        dry_run: change nothing; report what would be moved and what would fail.
        journal: absolute local path, or URL, of a file to make, from which an interrupted move is
            finished by ``resume`` or undone by ``rollback``. With it every file is listed, and
            renamed by itself; nothing is moved if one could not be.
        lease: with a journal, seconds without a heartbeat after which another process may continue;
            60 by default, 300 over a network.
        on_progress: called a few times a second, in a thread.
        host: with a journal, clock, ids and names; the real ones by default.

    Raises:
        OptionError: a path is invalid, or one is within the other.
        UnsupportedError: the store cannot rename, and ``copy`` is false.
        PreflightError: the journal exists; nothing was done.
        NotFoundError: nothing is at ``source``.
        BulkError: something could not be moved and ``on_error`` is ``stop``; its ``report`` says
            what was done.
    """
    old, new = checked_path(source), checked_path(dest)
    if is_within(new, old) or is_within(old, new):
        raise OptionError(f"cannot move {old} to {new}: one is within the other")
    check_renames(store, copy=copy)
    operation = BulkOperation(
        "move_tree", store, on_error=on_error, dry_run=dry_run, on_progress=on_progress
    )
    mover = Mover(operation, replace=replace)
    info = await _source(store, old)  # the first request of a store may tell its traits
    if journal is not None and not dry_run:
        refuse_unjournaled(store, copy=copy, on_error=on_error)
        async with begun(operation, journal, lease, host, replace=replace) as move:
            if info.is_dir:
                await move_whole(move, old, new)
            else:
                await move_listed(move, [Entry(old, new, info.size, info.etag)])
            return await carry_out(move)
    if not info.is_dir:
        await mover.move([FileRename(old, new, info.etag, info.size)])
    elif store.traits.atomic_directory_rename:
        await _Merge(operation, mover).move(old, new)
    else:
        await _move_listed(operation, mover, old, new)
    return await operation.result()


async def _move_listed(operation: BulkOperation, mover: Mover, old: str, new: str) -> None:
    """Rename every listed file, then move directories without files."""
    store, directories = operation.store, list[Info]()

    async def files() -> AsyncIterator[FileRename]:
        async for info in list_tree(store, old):
            if info.is_dir:
                directories.append(info)
            else:
                yield FileRename(info.path, new + info.path[len(old) :], info.etag, info.size)

    await mover.move(files())
    if directories and not operation.dry_run and not operation.has_failed:
        empty = leaves(new + info.path[len(old) :] for info in directories)
        with operation.recording(old, new):
            await for_each(empty, store.mkdir, workers=operation.workers)
            await remove_directories(store, directories)


class _Pair(NamedTuple):
    """A directory of the source, and its place."""

    source: str
    dest: str


async def _source(store: Store, path: str) -> Info:
    try:
        return await store.head(path)
    except NotFoundError as error:
        raise NotFoundError("", path, "the source does not exist") from error


@dataclass(slots=True)
class _Found:
    """Entries of source directories, by what is at the destination."""

    files: list[FileRename] = field(default_factory=list)
    missing: list[_Pair] = field(default_factory=list)
    both: list[_Pair] = field(default_factory=list)


class _Merge:
    """Moves a directory to a place where there may be one.

    Directories that are missing at the destination are renamed as a whole.
    """

    def __init__(self, operation: BulkOperation, mover: Mover) -> None:
        self._operation = operation
        self._store = operation.store
        self._mover = mover
        self._parents = Parents(self._store)
        self._merged: list[str] = []

    async def move(self, old: str, new: str) -> None:
        """Move the directory ``old`` to ``new``."""
        found = _Found(missing=[_Pair(old, new)])
        if await find(self._store, new) is not None:
            found = _Found(both=[_Pair(old, new)])
        waiting = await self._move_found(found)
        while waiting and not self._operation.has_stopped:
            batch = waiting[-self._operation.workers :]
            del waiting[-len(batch) :]
            waiting += await self._move_found(await self._compare(batch))
        if not self._operation.dry_run:
            await self._remove_merged()

    async def _compare(self, pairs: list[_Pair]) -> _Found:
        """List directories at both ends."""
        found = _Found()

        async def compare(pair: _Pair) -> None:
            try:
                there = {info.path for info in await list_if_there(self._store, pair.dest)}
                here = await list_if_there(self._store, pair.source)
            except StoreError as error:
                self._operation.fail(pair.source, pair.dest, error)
                return
            for info in here:
                dest = pair.dest + info.path[len(pair.source) :]
                if not info.is_dir:
                    found.files.append(FileRename(info.path, dest, info.etag, info.size))
                else:
                    known = found.both if dest in there else found.missing
                    known.append(_Pair(info.path, dest))
            self._merged.append(pair.source)

        await self._operation.each(pairs, compare)
        return found

    async def _move_found(self, found: _Found) -> list[_Pair]:
        """FileRename directories and files; return the directories to merge."""

        async def rename(pair: _Pair) -> None:
            if not await self._rename(pair):
                found.both.append(pair)

        await self._operation.each(found.missing, rename)
        await self._mover.move(found.files)
        return found.both

    async def _rename(self, pair: _Pair) -> bool:
        """Rename a directory as a whole.

        Returns false if something has come to its place.
        """
        try:
            if not self._operation.dry_run:
                await self._parents.make(pair.dest)
                await self._store.rename(pair.source, pair.dest)
        except ExistsError:
            return False
        except StoreError as error:
            self._operation.fail(pair.source, pair.dest, error)
        else:
            self._operation.finish_directory()
        return True

    async def _remove_merged(self) -> None:
        """Remove empty directories of the source, the innermost first."""
        depths: dict[int, list[str]] = {}
        for path in self._merged:
            depths.setdefault(path.count("/"), []).append(path)

        async def remove(path: str) -> None:
            with self._operation.recording(path), suppress(*_KEPT):
                await remove_directory(self._store, path)

        for depth in sorted(depths, reverse=True):
            await for_each(depths[depth], remove, workers=self._operation.workers)

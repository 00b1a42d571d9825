"""Rename many files: each once, replacing nothing unless asked to."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Sequence
from typing import cast

from asynccommit.commit.spill import Entry, in_batches
from asynccommit.engine.copies import copy_and_delete
from asynccommit.engine.directories import Parents
from asynccommit.engine.journaled import (
    JournalPath,
    begun,
    carry_out,
    move_listed,
    refuse_unjournaled,
)
from asynccommit.engine.operation import BulkOperation, OnError
from asynccommit.engine.pairs import FileRename, Pairs, map_each, read_pairs
from asynccommit.engine.report import BulkReport, OnProgress
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from asynccommit.runtime.host import Host
from asynccommit.stores.base import BatchStore, Info, Store


async def rename_files(
    store: Store,
    pairs: Pairs,
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
    """Rename files, many at a time; make the directories that they go to.

    A rename whose response was lost is found done by its token or etag, and never done twice. A
    pair with an etag whose file is at its destination already counts as done, so that the same
    call finishes what an earlier one has left. Pairs have no order: none may end where another
    begins.

    All pairs are read before the first rename, so that a listing does not show what was moved.
    Those of an iterable other than a sequence go to an unnamed temporary file when they are many.

    Args:
        store: the store, as ``asynccommit.open_store`` opens it.
        pairs: ``(source, dest)``, ``(source, dest, etag)`` or ``FileRename``, from any iterable.
        replace: replace files at the destinations; by default such a pair fails. A second pair
            with the same destination fails anyway; about 60 bytes a pair are kept to know it.
        copy: where the store cannot rename (S3), copy each file and delete its source.
        on_error: ``stop`` begins nothing more after the first failure; ``continue`` renames all
            others, and the report names the failures.
        dry_run: change nothing; look at every source and destination and report what would fail.
        journal: absolute local path, or URL, of a file to make, from which interrupted renames are
            finished by ``resume`` or undone by ``rollback``. All pairs are read and checked before
            the first rename; none is done if one would fail.
        lease: with a journal, seconds without a heartbeat after which another process may continue;
            60 by default, 300 over a network.
        on_progress: called a few times a second, in a thread.
        host: with a journal, clock, ids and names; the real ones by default.

    Raises:
        OptionError: a pair is invalid, or ends where another begins; nothing was done.
        UnsupportedError: the store cannot rename, and ``copy`` is false.
        PreflightError: the journal exists; nothing was done.
        BulkError: a file could not be renamed and ``on_error`` is ``stop``; its ``report`` says
            what was done.
    """
    check_renames(store, copy=copy)
    operation = BulkOperation(
        "rename_files", store, on_error=on_error, dry_run=dry_run, on_progress=on_progress
    )
    journal = None if dry_run else journal
    if journal is not None:
        refuse_unjournaled(store, copy=copy, on_error=on_error)
    async with read_pairs(pairs) as known:
        if journal is not None:
            async with begun(operation, journal, lease, host, replace=replace) as move:
                await move_listed(move, map_each(known.entries(), _entry))
                return await carry_out(move)
        operation.total = known.count
        await Mover(operation, replace=replace).move(known.entries())
        return await operation.result()


def check_renames(store: Store, *, copy: bool) -> None:
    """Raise ``UnsupportedError`` if the store needs copies and may not."""
    if not store.traits.atomic_rename and not copy:
        raise UnsupportedError(
            f"{store.traits.name} cannot rename files. To copy each one and delete its source, "
            "which is not atomic, pass copy=True"
        )


def _entry(file: FileRename) -> Entry:
    return Entry(file.source, file.dest, file.size, file.etag)


class Mover:
    """Renames files for one operation.

    Args:
        operation: what it counts for.
        replace: whether destinations are replaced.
    """

    def __init__(self, operation: BulkOperation, *, replace: bool = False) -> None:
        self._operation = operation
        self._store = operation.store
        self._replace = replace
        self._taken: set[int] = set()
        self._parents = Parents(self._store)
        traits = self._store.traits
        self._moves = traits.atomic_rename
        self._together = 0 if replace else traits.bulk_rename

    async def move(self, entries: Iterable[FileRename] | AsyncIterable[FileRename]) -> None:
        """Rename every entry, or look at each in a dry run."""
        operation = self._operation
        if operation.dry_run:
            await operation.each(entries, self._look)
        elif self._together > 1:
            await operation.each(in_batches(entries, self._together), self._batch)
        else:
            await operation.each(entries, self._one)

    async def _one(self, entry: FileRename) -> None:
        try:
            self._take(entry)
            await self._parents.make(entry.dest)
            if self._moves:
                await self._rename(entry)
            else:
                await copy_and_delete(
                    self._store, entry.source, entry.dest, entry.etag, replace=self._replace
                )
        except StoreError as error:
            self._operation.fail(entry.source, entry.dest, error)
        else:
            self._operation.finish(size=entry.size)

    def _take(self, entry: FileRename) -> None:
        """Refuse a second file for one destination, which would replace the first."""
        if not self._replace:
            return  # the store refuses it
        place = hash(entry.dest)
        if place in self._taken:
            raise ExistsError("rename", entry.source, f"another pair replaces {entry.dest}")
        self._taken.add(place)

    async def _rename(self, entry: FileRename) -> None:
        try:
            await self._send(entry)
        except NotFoundError:
            # Either the source is gone, or the directory of the destination after it was made.
            if await find(self._store, entry.source) is None:
                raise
            self._parents.forget(entry.dest)
            await self._parents.make(entry.dest)
            await self._send(entry)

    async def _send(self, entry: FileRename) -> None:
        await self._store.rename(entry.source, entry.dest, replace=self._replace, etag=entry.etag)

    async def _is_there(self, entry: FileRename) -> bool:
        """Return whether the file is at its destination.

        Only an etag tells; a file of the same name may be another.
        """
        lasting = self._store.traits.lasting(entry.etag)
        if lasting is None:
            return False
        try:
            found = await self._store.head(entry.dest)
        except StoreError:
            return False
        return self._store.traits.lasting(found.etag) == lasting

    async def _batch(self, entries: Sequence[FileRename]) -> None:
        try:
            for entry in entries:
                await self._parents.make(entry.dest)
            moves = [(entry.source, entry.dest, entry.etag) for entry in entries]
            done, _ = await cast(BatchStore, self._store).rename_many(moves)
        except StoreError:
            done = 0  # each alone tells which it was
        self._operation.finish(done, sum(entry.size for entry in entries[:done]))
        for entry in entries[done:]:
            await self._one(entry)

    async def _look(self, entry: FileRename) -> None:
        """Report what a rename would do, from the present state."""
        try:
            self._take(entry)
            info = await self._store.head(entry.source)
            if not self._replace:
                await self._require_free(entry)
        except StoreError as error:
            if isinstance(error, NotFoundError) and await self._is_there(entry):
                self._operation.finish(size=entry.size)
            else:
                self._operation.fail(entry.source, entry.dest, error)
        else:
            self._operation.finish(size=info.size)

    async def _require_free(self, entry: FileRename) -> None:
        if await find(self._store, entry.dest) is not None:
            raise ExistsError("rename", entry.source, f"something is at {entry.dest}")


async def find(store: Store, path: str) -> Info | None:
    """Return the facts about ``path``, ``None`` if nothing is there."""
    try:
        return await store.head(path)
    except NotFoundError:
        return None

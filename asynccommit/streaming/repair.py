"""Repair a sink log from its existing files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from asynccommit.errors import OptionError, RejectedError, SinkLogError, SinkLogRaceError, UrlError
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address, Under
from asynccommit.streaming.batch_names import BatchNames, NamedRun
from asynccommit.streaming.batches import COMPACT, is_compaction, to_read
from asynccommit.streaming.entries import (
    FOLDER,
    HEADER,
    LogFileWriter,
    SinkFile,
    decode_batch,
    decode_entry,
    encode_entry,
    lines_of,
    sink_uri,
)
from asynccommit.streaming.listing import LogListing, place, read_listing
from asynccommit.streaming.publish import BatchPublisher
from asynccommit.streaming.read import LogSource
from asynccommit.streaming.settings import SinkLogSettings
from asynccommit.streaming.verify import Finding, examine, inside, table_files

_MISSING = 1000  # Do not search for more missing batches than this.


@dataclass(frozen=True, slots=True)
class Change:
    """A log file that is created or rewritten.

    Attributes:
        name: name of the file.
        what: description of the change.
        old: present content, ``None`` if the file does not exist.
        new: new content.
    """

    name: str
    what: tuple[str, ...]
    old: bytes | None = field(repr=False)
    new: bytes = field(repr=False)


@dataclass(slots=True)
class Repaired:
    """The result of repairing a log, or of a dry run.

    Attributes:
        dry_run: nothing was changed.
        changes: possible repairs.
        left: remaining problems.
        kept: names of the backups of old files, in the directory of the log.
        over: announced runs of batches that the log has.
        deleted: files of these runs that no batch lists, if they were deleted.
    """

    dry_run: bool
    changes: list[Change] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    over: list[NamedRun] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)


async def repair(
    store: Store,
    dest: Address,
    settings: SinkLogSettings,
    host: Host,
    *,
    moved_from: Address | None = None,
    dry_run: bool = True,
) -> Repaired:
    """Repair the log of a table without active writers.

    Args:
        store: store of the log.
        dest: the table.
        settings: the readers' interval, and the maximum size of a file.
        host: source of unique names.
        moved_from: location of the table when the log was written.
        dry_run: only report what would be done.

    Raises:
        OptionError: a listed file does not exist at the new location, or differs.
        SinkLogRaceError: a file has changed since it was read.
    """
    listing = await read_listing(store, dest)
    source = LogSource(store, dest, settings.max_bytes)
    files = await table_files(store, dest) if moved_from else {}
    planner = _Planner(source, listing, _Move(dest, moved_from, files))
    done = Repaired(dry_run, changes=await planner.plan(settings))
    for change in done.changes:
        listing.put(change.name, len(change.new))
        source.instead[change.name] = change.new
    done.left = (await examine(source, listing, settings)).findings
    names = BatchNames(store, dest, settings.max_bytes)
    newest = -1 if listing.newest is None else listing.newest
    done.over = [run for run in await names.announced() if run.batch <= newest]
    if not dry_run:
        for change in done.changes:
            await _make(store, dest, host, change, done)
        if not done.left:  # else it is not known what the log lists
            done.deleted = (await names.settle(done.over)).deleted
    return done


class _Move:
    """The mapping of listed files to the table's new location."""

    def __init__(self, dest: Address, source: Address | None, files: Mapping[str, int]) -> None:
        self._dest = dest
        self._source = source
        self._files = files

    def __call__(self, file: SinkFile) -> SinkFile:
        """Return the entry for the new location. Raises ``OptionError``.

        The error means that the file does not exist there.
        """
        if self._source is None or inside(self._dest, file.path) is not None:
            return file
        try:
            path = Under(self._source).path(file.path)
        except UrlError:
            return file
        below = path[len(self._source.path.rstrip("/")) + 1 :]
        here = self._dest.child(*below.split("/"))
        if self._files.get(here.path) != file.size:
            raise OptionError(
                f"--moved-from {self._source}: {here} does not exist with {file.size} bytes, as "
                "the log lists it: move or copy the files of the table first"
            )
        return replace(file, path=sink_uri(here))


class _Planner:
    """A planner that finds the possible repairs."""

    def __init__(self, source: LogSource, listing: LogListing, move: _Move) -> None:
        self._source = source
        self._listing = listing
        self._move = move
        self._seen: dict[str, SinkFile] = {}

    async def plan(self, settings: SinkLogSettings) -> list[Change]:
        """Return the possible changes, in log order."""
        try:
            interval = self._listing.interval(settings.interval)
        except SinkLogError:
            return []
        newest = self._listing.newest
        batches = range(0) if newest is None else to_read(newest, interval)
        if len(batches) > len(self._listing.singles) + _MISSING:
            return []
        changes = [await self._change(b, is_compaction(b, interval)) for b in batches]
        return [change for change in changes if change is not None]

    async def _change(self, batch: int, compact: bool) -> Change | None:
        kind = self._listing.compacts if compact else self._listing.singles
        name, info = f"{batch}{COMPACT if compact else ''}", kind.get(batch)
        try:
            old = None if info is None else await self._source.get(info)
            if old is not None:
                new, what = self._cleaned(old, name)
                return Change(name, what, old, new) if what else None
        except SinkLogError:
            pass
        new = await self._rebuilt(batch) if compact else b""
        if not new:
            return None
        new, what = self._cleaned(new, name)
        return Change(name, ("made of the batches before it", *what), old, new)

    def _cleaned(self, data: bytes, name: str) -> tuple[bytes, tuple[str, ...]]:
        """Return the file without redundant content, and what was removed.

        Raises ``SinkLogError`` if the file cannot be read.
        """
        path = place(self._source.dest, name)
        lines, seen, done = [HEADER], dict[str, SinkFile](), set[str]()
        for number, line in lines_of(data, path):
            if not line.strip():
                done.add("blank lines removed")
                continue
            file, wrote = decode_entry(line, path, number)
            moved = self._move(file)
            if moved is not file:
                done.add("entries changed to the place of the table")
                line = encode_entry(moved, wrote)
            if moved in (self._seen.get(moved.path), seen.get(moved.path)):
                done.add("duplicate entries removed")
                continue
            seen[moved.path] = moved
            lines.append(line.rstrip(b"\r"))
        self._seen.update(seen)
        return b"\n".join(lines), tuple(sorted(done))

    async def _rebuilt(self, batch: int) -> bytes:
        """Return a compact file built from the previous ones; empty if impossible."""
        below = max((one for one in self._listing.compacts if one < batch), default=-1)
        if batch - below > len(self._listing.singles):
            return b""
        wanted = [self._listing.compacts[below]] if below >= 0 else []
        wanted += [i for b, i in sorted(self._listing.singles.items()) if below < b <= batch]
        if len(wanted) < batch - below + (below >= 0):
            return b""
        writer = LogFileWriter()
        try:
            for info in wanted:
                for file, _ in decode_batch(await self._source.get(info), info.path):
                    writer.add(file)
        except SinkLogError:
            return b""
        return writer.data()


async def _make(store: Store, dest: Address, host: Host, change: Change, done: Repaired) -> None:
    publisher = BatchPublisher(store, dest, host)
    if change.old is None:
        await publisher.publish(change.name, change.new)
        return
    kept = f".{change.name}.{host.new_id()}.old"
    await publisher.publish(kept, change.old)
    done.kept.append(kept)
    path = dest.child(FOLDER, change.name).path
    if await _read(store, path, len(change.old)) != change.old:
        text = (
            "has changed since it was read: stop all queries that write to the table, then repair"
        )
        raise SinkLogRaceError(place(dest, change.name), text)
    await store.put(path, change.new)
    if not store.traits.durable:
        await store.sync(path)
        await store.sync(dest.child(FOLDER).path)


async def _read(store: Store, path: str, size: int) -> bytes | None:
    try:
        return await store.get(path, size)
    except RejectedError:
        return None

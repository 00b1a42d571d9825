"""Find all problems of a sink log, each with its remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from asynccommit.errors import SinkLogCorruptError, SinkLogError, UrlError
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import tree_pages, walk
from asynccommit.stores.urls import Address, Under
from asynccommit.streaming.batch_names import BatchNames, NamedRun
from asynccommit.streaming.batches import COMPACT, file_name, is_compaction, to_read
from asynccommit.streaming.entries import FOLDER, SinkFile, Wrote, decode_entry, lines_of
from asynccommit.streaming.listing import LogListing, place, read_listing
from asynccommit.streaming.read import LogSource
from asynccommit.streaming.settings import SinkLogSettings

_FINDINGS = 1000  # maximum number of findings that are kept


class Wrong(Enum):
    """The kinds of problems of a log; the value is the remedy."""

    NAME = "move that file away: Spark reads it as a batch"
    INTERVAL = "find out which of the two files was not written by Spark, and move it away"
    EMPTY = (
        "if the checkpoint of the query has no commits/ file of that batch, delete the file, "
        "and the query writes it again; otherwise the batch is lost: restore the file from a "
        "backup"
    )
    HEADER = "restore the file from a backup"
    LINE = "restore the file from a backup, or correct the line while no query writes"
    BLANK = "repair removes the line"
    TWICE = "repair removes the second entry"
    DIFFERS = "find out which of the two entries is correct, and remove the other one"
    OUTSIDE = (
        "if the table was moved or copied, repair with --moved-from; otherwise correct the "
        "scheme and authority to those that readers use"
    )
    BATCH = "restore the file from a backup: the query does not write it again"
    COMPACT = (
        "repair rebuilds it from its batch and the batches before it, if their files all exist; "
        "otherwise restore it from a backup"
    )
    GONE = "restore the file of the table: readers of the table fail"
    SIZE = "restore the original file of the table: readers of the table fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a log.

    Attributes:
        file: name of the log file.
        wrong: kind of the problem.
        problem: description of the problem.
    """

    file: str
    wrong: Wrong
    problem: str


@dataclass(slots=True)
class Batch:
    """One log file.

    Attributes:
        name: name of the file.
        size: size in bytes.
        entries: number of table files that it lists.
        query: writer of the batch, ``None`` if the batch does not name it.
        read: whether readers use it.
    """

    name: str
    size: int
    entries: int = 0
    query: str | None = None
    read: bool = True


@dataclass(slots=True)
class Verified:
    """The result of checking a log.

    Attributes:
        dest: the table.
        newest: newest batch, ``None`` if there is none.
        interval: batches between compact files.
        batches: the files that readers use, in order, then the rest.
        files: decoded path -> entry, for the files that readers see.
        findings: problems.
        more: number of further problems.
        unlisted: number of table files that no batch lists; ``None`` if not checked.
        over: announced runs of batches that the log has, whose files that no batch lists ``repair``
            deletes.
        running: announced runs of batches that the log lacks.
    """

    dest: Address
    newest: int | None = None
    interval: int = 0
    batches: list[Batch] = field(default_factory=list)
    files: dict[str, SinkFile] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    more: int = 0
    unlisted: int | None = None
    over: list[NamedRun] = field(default_factory=list)
    running: list[NamedRun] = field(default_factory=list)

    def found(self, file: str, wrong: Wrong, problem: str) -> None:
        """Record a problem."""
        if len(self.findings) < _FINDINGS:
            self.findings.append(Finding(file, wrong, problem))
        else:
            self.more += 1


async def verify(
    store: Store, dest: Address, settings: SinkLogSettings, *, data: bool = True
) -> Verified:
    """Check the whole log of a table without changing it.

    Args:
        store: store of the log.
        dest: the table.
        settings: the readers' interval, and the maximum size of a file.
        data: list the table too, and check that the listed files exist.
    """
    listing = await read_listing(store, dest)
    found = await examine(LogSource(store, dest, settings.max_bytes), listing, settings)
    if data and found.newest is not None:
        await _check_data(store, found)
    for run in await BatchNames(store, dest, settings.max_bytes).announced():
        is_over = found.newest is not None and run.batch <= found.newest
        (found.over if is_over else found.running).append(run)
    return found


async def examine(source: LogSource, listing: LogListing, settings: SinkLogSettings) -> Verified:
    """Check the files of a log, but not those of the table."""
    found = Verified(source.dest)
    wanted = _wanted(listing, settings, found)
    for info in wanted:
        await _check(source, info, found)
    names = {info.path for info in wanted}
    for info in (*listing.singles.values(), *listing.compacts.values()):
        if info.path not in names:
            found.batches.append(Batch(_name(info), info.size, read=False))
    return found


def _wanted(listing: LogListing, settings: SinkLogSettings, found: Verified) -> list[Info]:
    """Return the existing files that readers use; record the missing ones."""
    for info in listing.strange:
        found.found(_name(info), Wrong.NAME, "Spark reads its name as a batch")
    found.newest = listing.newest
    if listing.newest is None:
        return []
    try:
        found.interval = listing.interval(settings.interval)
    except SinkLogCorruptError as error:
        found.found(
            error.path.rpartition("/")[2], Wrong.INTERVAL, "its number does not match any interval"
        )
        return []
    wanted = to_read(listing.newest, found.interval)
    present: list[Info] = []
    for batch in wanted:
        compact = is_compaction(batch, found.interval)
        there = (listing.compacts if compact else listing.singles).get(batch)
        if there is not None:
            present.append(there)
            continue
        wrong = Wrong.COMPACT if compact else Wrong.BATCH
        problem = "is missing, but readers need it"
        if compact and batch in listing.singles:
            problem = f"{problem}: {batch} was written with another interval"
        found.found(file_name(batch, found.interval), wrong, problem)
        if found.more:
            break  # Names may contain absurdly large numbers.
    return present


async def _check(source: LogSource, info: Info, found: Verified) -> None:
    name = _name(info)
    batch = Batch(name, info.size)
    found.batches.append(batch)
    try:
        data = await source.get(info)
        for number, line in lines_of(data, place(source.dest, name)):
            if not line.strip():
                found.found(name, Wrong.BLANK, f"line {number} is blank")
                continue
            _check_line(line, number, batch, found)
    except SinkLogError as error:
        wrong = Wrong.HEADER if info.size else Wrong.EMPTY
        found.found(name, wrong, error.reason)


def _check_line(line: bytes, number: int, batch: Batch, found: Verified) -> None:
    try:
        file, wrote = decode_entry(line, place(found.dest, batch.name), number)
    except SinkLogError as error:
        found.found(batch.name, Wrong.LINE, error.reason)
        return
    batch.entries += 1
    if _is_of(wrote, batch.name):
        batch.query = wrote.query if wrote else None
    path = inside(found.dest, file.path)
    if path is None:
        problem = f"line {number} lists {file.path[:200]!r}, which readers of the table skip"
        found.found(batch.name, Wrong.OUTSIDE, problem)
        return
    there = found.files.setdefault(path, file)
    if there is not file:
        wrong = Wrong.TWICE if there == file else Wrong.DIFFERS
        also = "" if there == file else ", with different values"
        found.found(batch.name, wrong, f"line {number} lists {file.path[:200]!r} again{also}")


def inside(dest: Address, uri: str) -> str | None:
    """Return the decoded path of a table file outside the log, else ``None``."""
    try:
        path = Under(dest).path(uri)
    except UrlError:
        return None
    return None if path.startswith(f"{dest.child(FOLDER).path}/") else path


async def _check_data(store: Store, found: Verified) -> None:
    there = await table_files(store, found.dest)
    found.unlisted = len(there.keys() - found.files.keys())
    for path, file in found.files.items():
        if path not in there:
            problem = f"{file.path[:200]!r} is listed but does not exist"
            found.found(FOLDER, Wrong.GONE, problem)
        elif there[path] != file.size:
            problem = f"{file.path[:200]!r} has {there[path]} bytes, but {file.size} are listed"
            found.found(FOLDER, Wrong.SIZE, problem)


async def table_files(store: Store, dest: Address) -> Mapping[str, int]:
    """Return the visible files of a table: decoded path -> bytes."""
    sizes: dict[str, int] = {}
    if store.traits.bulk_delete:
        async for page in tree_pages(store, dest.path):
            sizes.update((i.path, i.size) for i in page if _is_data(i, dest))
        return sizes
    async for info in walk(store, dest.path):
        if _is_data(info, dest):
            sizes[info.path] = info.size
    return sizes


def _is_data(info: Info, dest: Address) -> bool:
    names = info.path[len(dest.path.rstrip("/")) + 1 :].split("/")
    return not info.is_dir and not any(_is_hidden(name) for name in names)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_of(wrote: Wrote | None, name: str) -> bool:
    return wrote is not None and name.removesuffix(COMPACT) == str(wrote.batch)


def _name(info: Info) -> str:
    return info.path.rpartition("/")[2]

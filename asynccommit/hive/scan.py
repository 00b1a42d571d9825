"""Find the files of a Hive table that are several attempts of one task.

This module changes nothing. ``deduplication`` acts on the findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from asynccommit.errors import ManifestError, NotFoundError, RejectedError
from asynccommit.hive.empty_files import MOST, Format, empty_file
from asynccommit.hive.names import (
    HiveAttempt,
    HiveName,
    HiveRules,
    is_copy,
    is_hidden,
    is_spark,
    is_temporary,
    parse_name,
    winner_of,
)
from asynccommit.options.checked import Within, check_fields, checked
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import pages

_MOST_BUCKETS = 1_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """The options for reading a table.

    Attributes:
        rules: rules of a Hive version.
        partitions: depth of the directories with files: 2 for ``year=2026/month=5``.
        buckets: required number of files in each directory with files; 0 for any number.
        format: format of empty buckets; ``None`` to detect it from a neighbouring file.
        force: apply the rules to names that look like another program's.

    Raises:
        OptionError: a number is below 0, or there would be more than a million buckets.
    """

    rules: HiveRules = HiveRules.TWO
    partitions: Annotated[int, Within(0, 100)] = 0
    buckets: Annotated[int, Within(0, _MOST_BUCKETS)] = 0
    format: Format | None = None
    force: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


class Duplicates(NamedTuple):
    """The files of one task: the one to keep, and the others."""

    winner: Info
    losers: tuple[Info, ...]


@dataclass(slots=True)
class TableScan:
    """The content of a table; each list by path.

    Attributes:
        files: number of files, without temporary and hidden ones.
        directories: number of directories at that depth, with or without files.
        duplicates: tasks that have several files.
        temporary: files that no task had finished.
        empty: partition directories without any file.
        missing: path of a bucket that has no file -> its future content.
        conflicts: path -> why the rules cannot be applied there.
        passed: paths above or below the depth of the partitions, which were ignored.
    """

    files: int = 0
    directories: int = 0
    duplicates: list[Duplicates] = field(default_factory=list)
    temporary: list[Info] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    missing: dict[str, bytes] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)

    @property
    def losers(self) -> list[Info]:
        """The files that a better attempt makes redundant."""
        return [info for one in self.duplicates for info in one.losers]

    def check(self) -> None:
        """Raise ``ManifestError`` if there is a conflict."""
        for path, reason in self.conflicts.items():
            more = len(self.conflicts) - 1
            raise ManifestError(path, reason + (f" (and {more} more)" if more else ""))


@checked
async def scan_table(store: Store, path: str, reading: Reading) -> TableScan:
    """Return the content of a table.

    Names and sizes are kept in memory only for duplicates.

    Args:
        store: any store.
        path: path of the table; absolute and decoded.
        reading: how to read the table.

    Raises:
        NotFoundError: the directory does not exist, and the store can report that.
        ManifestError: the names look like Spark's, or like those of no known program, and the rules
            would delete good data: unless ``reading.force``.
    """
    found = TableScan()

    async def each(directory: str) -> None:
        await _look_at(store, directory, reading, found)

    leaves = await _leaves(store, path, reading.partitions, found)
    await for_each(leaves, each, workers=store.traits.workers)
    found.directories = len(leaves)
    found.duplicates.sort()
    found.temporary.sort()
    found.empty.sort()
    found.passed.sort()
    found.missing = dict(sorted(found.missing.items()))
    found.conflicts = dict(sorted(found.conflicts.items()))
    return found


async def _leaves(store: Store, path: str, depth: int, found: TableScan) -> list[str]:
    """Return the directories at a depth below the table."""
    level = [path]
    for _ in range(depth):
        below: list[str] = []

        async def step(directory: str, into: list[str] = below) -> None:
            for info in await _listed(store, directory, path):
                if is_hidden(_name(info)):
                    continue
                (into if info.is_dir else found.passed).append(info.path)

        await for_each(level, step, workers=store.traits.workers)
        level = sorted(below)
    return level


async def _listed(store: Store, directory: str, table: str) -> list[Info]:
    try:
        return [info async for page in pages(store, directory) for info in page]
    except NotFoundError:
        if directory == table:
            raise
        return []  # deleted since its parent was listed


async def _look_at(store: Store, directory: str, reading: Reading, found: TableScan) -> None:
    table = directory if reading.partitions == 0 else ""
    entries = await _listed(store, directory, table)
    temporary = [info for info in entries if info.kind is Kind.FILE and is_temporary(_name(info))]
    found.temporary += temporary
    found.passed += [info.path for info in entries if info.is_dir and not is_hidden(_name(info))]
    if reading.partitions and len(temporary) == len(entries):
        # In a transactional table an empty base_5 means that earlier data are obsolete.
        if "=" in directory.rpartition("/")[2]:
            found.empty.append(directory)
        return
    files = sorted(
        info for info in entries if info.kind is Kind.FILE and not is_hidden(_name(info))
    )
    found.files += len(files)
    if not reading.force:
        _refuse_spark(files)
    staying = _compare(files, reading, found)
    if reading.buckets and staying:
        await _fill(store, staying, reading, found)


def _refuse_spark(files: Iterable[Info]) -> None:
    for info in files:
        if is_spark(_name(info)):
            raise ManifestError(
                info.path,
                "has a name in Spark's format: files of different tasks would count as attempts "
                "of one task and be deleted; --force proceeds anyway",
            )


def _compare(files: list[Info], reading: Reading, found: TableScan) -> list[Info]:
    """Record tasks with several files and their winners, and return all files to keep."""
    groups: dict[str, list[Info]] = {}
    for info in files:
        name = _name(info)
        parsed = None if is_copy(name) else parse_name(name, reading.rules)
        if parsed is not None:
            groups.setdefault(parsed.id, []).append(info)
    gone: set[Info] = set()
    for group in groups.values():
        if len(group) > 1:
            gone.update(_choose(group, reading, found))
    return [info for info in files if info not in gone]


def _choose(group: list[Info], reading: Reading, found: TableScan) -> tuple[Info, ...]:
    by_name = {_name(info): info for info in group}
    try:
        if not reading.force:
            _refuse_foreign(by_name, reading.rules)
            _refuse_same(by_name, reading.rules)
        attempts = [HiveAttempt(name, info.size) for name, info in by_name.items()]
        winner = by_name[winner_of(attempts, reading.rules).name]
    except ManifestError as error:
        found.conflicts[f"{group[0].path.rpartition('/')[0]}/{error.path}"] = error.reason
        return ()
    losers = tuple(info for info in group if info is not winner)
    found.duplicates.append(Duplicates(winner, losers))
    return losers


def _refuse_foreign(names: Iterable[str], rules: HiveRules) -> None:
    for name in names:
        parsed = parse_name(name, rules)
        if parsed is not None and parsed.is_foreign:
            raise ManifestError(
                name,
                "does not have a name in Hive's format and would count as an attempt of task "
                f"{parsed.id}; --force proceeds anyway",
            )


def _refuse_same(names: Iterable[str], rules: HiveRules) -> None:
    """Reject two files of one attempt: they come from different statements.

    An attempt writes one file. A second INSERT with another compression finds its name free, and so
    makes no copy.
    """
    seen: dict[int, str] = {}
    for name in names:
        parsed = parse_name(name, rules)
        number = -1 if parsed is None else parsed.number
        if number in seen:
            raise ManifestError(
                name,
                f"belongs to the same attempt as {seen[number]}, and so to another statement; "
                "--force proceeds anyway",
            )
        seen[number] = name


async def _fill(store: Store, files: list[Info], reading: Reading, found: TableScan) -> None:
    """Record the buckets that have no file, with their future content."""
    parsed = [(info, parse_name(_name(info), reading.rules)) for info in files]
    named = [(info, name) for info, name in parsed if name is not None]
    if not named:
        found.conflicts[files[0].path] = "is not a bucket: its name has no number"
        return
    info, model = min(named, key=lambda one: (bool(one[1].copy), one[0].path))
    there = {int(name.task) for _, name in named}
    if max(there) >= reading.buckets:
        found.conflicts[info.path.rpartition("/")[0]] = (
            f"has bucket {max(there)}, but --buckets {reading.buckets} ends before it: give the "
            "number of buckets of the table"
        )
        return
    missing = set(range(reading.buckets)) - there
    if not missing:
        return
    try:
        await _add_buckets(store, files, (model, sorted(missing)), reading, found)
    except (ManifestError, RejectedError) as error:
        found.conflicts[error.path] = str(error).removeprefix(f"{error.path}: ")


async def _add_buckets(
    store: Store,
    files: list[Info],
    first: tuple[HiveName, list[int]],
    reading: Reading,
    found: TableScan,
) -> None:
    folder = files[0].path.rpartition("/")[0]
    model, numbers = first
    names = [model._replace(copy="").of_task(number) for number in numbers]
    for name, number in zip(names, numbers, strict=True):
        made = parse_name(name, reading.rules)
        if made is None or made.copy or int(made.task) != number:
            text = f"Hive would not read {name} as bucket {number}; let Hive write the bucket"
            raise ManifestError(folder, text)
    paths = [f"{folder}/{name}" for name in names]
    data = empty_file(paths[0], await _beside(store, files, reading), reading.format)
    found.missing.update(dict.fromkeys(paths, data))


async def _beside(store: Store, files: list[Info], reading: Reading) -> bytes:
    """Return the smallest non-empty file, for its format and columns."""
    if reading.format is Format.TEXT:
        return b""
    filled = [info for info in files if info.size]
    if not filled:
        raise ManifestError(
            files[0].path,
            "no neighboring file has content, so the format is unknown: use --format text for "
            "empty files",
        )
    return await store.get(min(filled, key=lambda info: (info.size, info.path)).path, MOST)


def _name(info: Info) -> str:
    return info.path.rpartition("/")[2]

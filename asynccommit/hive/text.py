"""Show the result of deduplicating a Hive table as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from asynccommit.hive.deduplication import Dedup
from asynccommit.runtime.cells import ROWS, safe
from asynccommit.runtime.terminal import count_of, show_bytes
from asynccommit.stores.base import Info
from asynccommit.stores.urls import Address


def hive_dedup(dest: Address, done: Dedup) -> RenderableType:
    """Return the findings, the changes, and the option that applies them.

    Args:
        dest: the table.
        done: result of ``dedup``.
    """
    found = done.found
    where = count_of(found.directories, "directory", "directories")
    head = safe(f"{dest}: {count_of(found.files, 'file')} in {where}", "bold")
    lines = list(_plan(done) if done.dry_run else _done(done))
    lines += _reasons("conflict", found.conflicts)
    if found.passed:
        lines += _named("skipped, not at the depth given by --partitions", found.passed)
    if len(lines) == 0:
        lines = ["nothing to do"]
    if done.dry_run and _changes(done):
        lines.append(
            "resolve the conflicts first"
            if found.conflicts
            else "nothing was changed: pass --yes to make the changes"
        )
    return Group(head, *(Padding(safe(line), (0, 0, 0, 2)) for line in lines))


def _changes(done: Dedup) -> int:
    found = done.found
    return len(found.duplicates) + len(found.temporary) + len(found.empty) + len(found.missing)


def _plan(done: Dedup) -> Iterator[str]:
    found = done.found
    if found.duplicates:
        yield f"would delete {_sum(found.losers, 'superfluous file')}"
        for one in found.duplicates[:ROWS]:
            for loser in one.losers[:ROWS]:
                yield f"  {_file(loser)}, for {_file(one.winner)}"
        yield from _more(len(found.duplicates))
    if found.temporary:
        yield f"would delete {_sum(found.temporary, 'unfinished file')}"
        yield from _listed([info.path for info in found.temporary])
    if found.missing:
        yield from _named("would make empty buckets", list(found.missing))
    if found.empty:
        yield from _named("would remove empty partitions", found.empty)


def _done(done: Dedup) -> Iterator[str]:
    for what, paths in (
        ("deleted", done.deleted),
        ("made empty buckets", done.created),
        ("removed empty partitions", done.removed),
    ):
        if paths:
            yield from _named(what, paths)
    yield from _reasons("kept", done.kept)


def _named(what: str, paths: Sequence[str]) -> Iterator[str]:
    yield f"{what}: {len(paths):,}"
    yield from _listed(paths)


def _listed(paths: Sequence[str]) -> Iterator[str]:
    for path in paths[:ROWS]:
        yield f"  {path}"
    yield from _more(len(paths))


def _more(number: int) -> Iterator[str]:
    if number > ROWS:
        yield f"  and {number - ROWS:,} more; --json has all"


def _reasons(what: str, reasons: Mapping[str, str]) -> Iterator[str]:
    for path, reason in list(reasons.items())[:ROWS]:
        yield f"{what}: {path} {reason}"
    yield from _more(len(reasons))


def _file(info: Info) -> str:
    return f"{info.path} ({show_bytes(info.size)})"


def _sum(files: Sequence[Info], noun: str) -> str:
    return f"{count_of(len(files), noun)}, {show_bytes(sum(info.size for info in files))}"

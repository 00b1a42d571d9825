"""Format the garbage of dead jobs, and the result of deleting it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.inspect.collect import GarbageResult
from asynccommit.inspect.garbage import Garbage, KeptItem, Sweep
from asynccommit.inspect.open_uploads import DAY
from asynccommit.runtime.cells import columns, copied, safe
from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_seconds


def garbage_plan(sweep: Sweep) -> RenderableType:
    """Return what would be deleted, and what is kept with the reason."""
    if sweep.blocked:
        head = "nothing can be deleted: finish this commit first"
    elif sweep.garbage:
        head = f"would delete {_sum(sweep.garbage)}"
    else:
        head = f"nothing to delete under {plain(str(sweep.dest))}"
    parts: list[RenderableType] = [safe(head, "bold")]
    if sweep.garbage and not sweep.blocked:
        parts.append(Padding(_table(sweep.garbage), (0, 0, 0, 2)))
    parts += _kept(sweep.spared)
    if sweep.garbage and not sweep.blocked:
        parts.append(Text("nothing was changed: pass --yes to delete"))
    return Group(*parts)


def garbage_result(sweep: Sweep, result: GarbageResult) -> RenderableType:
    """Return what was deleted; every failure is named."""
    parts: list[RenderableType] = [safe(f"deleted {_sum(result.done)}", "bold")]
    if result.done:
        parts.append(Padding(_table(result.done), (0, 0, 0, 2)))
    parts += [safe(f"  failed {one.path}: {why}", "red") for one, why in result.failures]
    return Group(*parts, *_kept(sweep.spared))


def _sum(garbage: Sequence[Garbage]) -> str:
    files = count_of(sum(one.files for one in garbage), "file")
    size = show_bytes(sum(one.bytes for one in garbage))
    return f"{count_of(len(garbage), 'item')}, {files}, {size}"


def _table(garbage: Sequence[Garbage]) -> Table:
    table = columns("age", "kind", "files", "size", "path", numbers=("files", "size"))
    for one in garbage:
        cells = (_age(one.age), str(one.kind), f"{one.files:,}", show_bytes(one.bytes), one.path)
        table.add_row(*map(safe, cells))
    return table


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return show_seconds(seconds) if seconds < 2 * DAY else count_of(int(seconds / DAY), "day")


def _kept(spared: Sequence[KeptItem]) -> Iterator[RenderableType]:
    for one in spared:
        yield copied(f"kept {one.path}: {one.reason}", 2)
        if one.command:
            yield copied(one.command, 6)

"""Tables, facts and reports of rich, as every command and result has them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.runtime.terminal import plain, show_bytes

ROWS = 20
"""Number of rows of a long table that are shown."""

_WIDE = 4000  # columns where no terminal says how many: lines are for grep, not for the eye


def safe(text: object, style: str = "") -> Text:
    """Return foreign text as a cell without markup or control characters."""
    return Text(plain(str(text)), style=style, overflow="fold")


def copied(text: str, indent: int) -> Text:
    """Return a line that is never wrapped, so that it can be copied."""
    return Text(" " * indent + plain(text), no_wrap=True, overflow="ignore")


def printed(renderable: RenderableType) -> str:
    """Return what a command shows where no terminal is."""
    return to_text(renderable, _WIDE)


def to_text(renderable: RenderableType, width: int = 100) -> str:
    """Return a table as text without colours, for logs and files."""
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def sheet(head: str, *parts: RenderableType, notes: Sequence[Text] = ()) -> Group:
    """Return a report: its first line, notes, and parts that are indented and set apart."""
    inner = [line for part in parts for line in (Text(), part)][1:]
    return Group(safe(head, "bold"), *notes, Padding(Group(*inner), (0, 0, 0, 2)))


def columns(*names: str, numbers: Sequence[str] = (), gap: int = 2) -> Table:
    """Return an empty table without lines.

    Args:
        names: its columns; a long cell is folded.
        numbers: further columns of numbers; if they are among ``names``, their place is there.
        gap: blanks between two columns.
    """
    table = Table(box=None, padding=(0, gap, 0, 0), show_edge=False, header_style="dim")
    for name in dict.fromkeys((*names, *numbers)):
        if name in numbers:
            table.add_column(name, justify="right", no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    return table


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Return names and values as a table with one row each."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        _add_fact(table, name.replace("_", " "), value)
    return table


def _add_fact(table: Table, name: str, value: object) -> None:
    if isinstance(value, Mapping):
        lines = [f"{key}: {_first_line(str(text))}" for key, text in value.items()]
        add_list(table, name, lines, len(lines))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        add_list(table, name, value, len(value))
    elif name == "bytes" and isinstance(value, int):
        table.add_row(name, show_bytes(value))
    elif isinstance(value, bool):
        table.add_row(name, "yes" if value else "no")
    else:
        table.add_row(name, safe(f"{value:,}" if isinstance(value, int) else value))


def _first_line(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    return f"{first} ..." if rest else first


def add_list(table: Table, name: str, values: Sequence[object], count: int) -> None:
    """Add the first of ``count`` values to a table of facts, and how many more there are."""
    for index, value in enumerate(values[:ROWS]):
        table.add_row("" if index else safe(name), safe(value))
    if count > min(len(values), ROWS):
        table.add_row("", f"and {count - min(len(values), ROWS):,} more")

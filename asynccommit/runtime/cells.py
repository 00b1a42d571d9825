"""Make cells of tables, and text without colours, with rich."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType
from rich.text import Text

from asynccommit.runtime.terminal import plain

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

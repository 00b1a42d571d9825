"""The display of results, as the results know it.

The code that formats a result is far above it, and needs rich: it is loaded when a result is shown.
The package says at its import where that code is, so a result need not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType


class Display(Protocol):
    """Shows results on a terminal, in a notebook and as a page."""

    def as_rich(self, result: Any) -> RenderableType:
        """Return a result for ``print`` of rich."""
        ...

    def as_html(self, result: Any) -> str:
        """Return a result as an HTML fragment."""
        ...

    def page_of(self, report: Any) -> str:
        """Return the report of a job as a page that needs no other file."""
        ...

    def printed(self, renderable: RenderableType) -> str:
        """Return what the command shows where no terminal is."""
        ...


_loaders: list[Callable[[], Display]] = []


def show_by(load: Callable[[], Display]) -> None:
    """Have results shown by what ``load`` returns, from now on."""
    _loaders[:] = [load]


def display() -> Display:
    """Return what shows results."""
    return _loaders[0]()

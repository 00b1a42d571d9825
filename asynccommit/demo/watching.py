"""Count the files of a table while a driver writes it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from asynccommit.commit.layouts.layout import TEMPORARY
from asynccommit.demo.flights import Say

_EVERY = 5.0  # seconds between two lines if there is no terminal
_REDRAW = 0.1
_RECOUNT = 0.3


class Counts:
    """The files of one table: visible to readers, or not yet.

    Args:
        table: path of the table; it need not exist yet.

    Attributes:
        visible: number of files that readers saw when they were counted last.
        written: number of files that the tasks had written when they were counted last.
        killed: whether the driver was killed.
    """

    def __init__(self, table: Path) -> None:
        self.table = table
        self.visible = 0
        self.written = 0
        self.killed = False
        self._counted = 0.0

    def half_way(self) -> bool:
        """Count, and return whether half of the files are visible."""
        self.visible = _parquet_files(self.table)
        if not self.visible and time.monotonic() - self._counted > _RECOUNT:
            self.written = self.hidden()
            self._counted = time.monotonic()
        return 0 < self.written <= 2 * self.visible

    def count_all(self) -> None:
        """Count every file, visible or not."""
        self.visible = _parquet_files(self.table)
        self.written = self.visible + self.hidden()

    def hidden(self) -> int:
        """Return the number of files that readers do not see."""
        return _parquet_files(self.table / TEMPORARY, hidden=True)

    def clear(self) -> None:
        """Delete the table."""
        shutil.rmtree(self.table, ignore_errors=True)
        self.visible = self.written = 0

    def __str__(self) -> str:
        if not self.written:
            return "starting Spark"
        if not self.visible:
            return f"{self.written:,} files written, none visible"
        end = ", killed" if self.killed else ""
        return f"{self.visible:,} of {self.written:,} files visible{end}"


@contextmanager
def watched(terminal: TextIO | None, say: Say, counts: Mapping[str, Counts]) -> Iterator[None]:
    """Show counts by name while the block runs.

    Args:
        terminal: a stream to draw bars on; ``None`` for a line every five seconds.
        say: takes the lines.
        counts: what to show, by name.
    """
    if terminal is None:
        with _repeated(_EVERY, lambda: say("; ".join(f"{n}: {c}" for n, c in counts.items()))):
            yield
        return
    with _bars(terminal, counts) as redraw, _repeated(_REDRAW, redraw):
        yield


@contextmanager
def _repeated(every: float, act: Callable[[], object]) -> Iterator[None]:
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(every):
            act()

    thread = threading.Thread(target=beat, name="asynccommit-demo", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _bars(terminal: TextIO, counts: Mapping[str, Counts]) -> Iterator[Callable[[], None]]:
    """Draw a bar of each table; yield what draws them anew."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("  {task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", style="cyan"),
    )
    with Progress(*columns, console=Console(file=terminal), auto_refresh=False) as bars:
        rows = {name: bars.add_task(name, total=1, count="") for name in counts}

        def redraw() -> None:
            for name, one in counts.items():
                text = f"[red]{one}[/red]" if one.killed else str(one)
                total = max(one.written, 1)
                bars.update(rows[name], completed=one.visible, total=total, count=text)
            bars.refresh()

        yield redraw
        redraw()


def _parquet_files(directory: Path | str, *, hidden: bool = False) -> int:
    """Return the number of Parquet files below a directory.

    Unless ``hidden``, names that begin with ``_`` or ``.`` are left out, as readers do.
    """
    found = 0
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not hidden and entry.name.startswith(("_", ".")):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found += _parquet_files(entry.path, hidden=hidden)
                else:
                    found += entry.name.endswith(".parquet")
    except FileNotFoundError:  # a commit moves directories while they are listed
        return found
    return found

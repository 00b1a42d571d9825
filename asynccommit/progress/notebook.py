"""Show the progress of a commit in a notebook, by rich.

The bars are one output of the cell, which is replaced twice a second. What stays there is one line
for each job that was committed, and the bar of one that was not. All commits of a cell share it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from asynccommit.commit.meter import OnProgress

if TYPE_CHECKING:
    from asynccommit.progress.bars import JobBars

EVERY = 0.5
"""Seconds between two updates."""

_lock = threading.Lock()
_outputs: dict[str, CellOutput] = {}


def in_kernel() -> bool:
    """Return whether this program is the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def notebook_progress(every: float = EVERY) -> Iterator[OnProgress]:
    """Show bars in the current cell while the block runs.

    Args:
        every: seconds between two updates.
    """
    with _lock:
        output = _output_of(_cell())
        output.enter(every)
    try:
        yield output.bars
    finally:
        with _lock:
            output.leave()


class CellOutput:
    """The output of one cell, and the blocks that show progress in it.

    Attributes:
        bars: the bars of all its jobs.
    """

    def __init__(self) -> None:
        from IPython.display import display

        from asynccommit.progress.bars import JobBars

        self.bars: JobBars = JobBars()
        self._handle: Any = display(self.bars.table(), display_id=True)  # type: ignore[no-untyped-call]
        self._blocks = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_used(self) -> bool:
        """Return whether a block shows progress here."""
        return self._blocks > 0

    def enter(self, every: float) -> None:
        """Begin a block; the first one starts the updates."""
        self._blocks += 1
        if self._blocks > 1:
            return
        self._ended = threading.Event()
        # The output belongs to the cell whose context this is.
        context = copy_context()
        self._thread = threading.Thread(
            target=context.run,
            args=(self._beat, self._ended, every),
            name="asynccommit-progress",
            daemon=True,
        )
        self._thread.start()

    def leave(self) -> None:
        """End a block; the last one ends the updates."""
        self._blocks -= 1
        if self._blocks == 0 and self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._update()

    def _beat(self, ended: threading.Event, every: float) -> None:
        while not ended.wait(every):
            self._update()

    def _update(self) -> None:
        with suppress(Exception):  # a kernel that ends does not fail the commit
            self._handle.update(self.bars.table())


def _output_of(cell: str) -> CellOutput:
    """Return the output of a cell; forget those of cells that have ended."""
    for name in [name for name, output in _outputs.items() if not output.is_used]:
        if name != cell:
            del _outputs[name]
    if not cell:
        return CellOutput()
    if cell not in _outputs:
        _outputs[cell] = CellOutput()
    return _outputs[cell]


def _cell() -> str:
    """Return the id of the request that runs the cell; empty if unknown."""
    with suppress(Exception):  # other kernels than ipykernel
        parent = sys.modules["IPython"].get_ipython().kernel.get_parent()
        return str(parent["header"]["msg_id"])
    return ""

"""Show the progress of a commit in a notebook, by rich.

The bars are one output of the cell, which is replaced twice a second. What stays there is one line
for each job that was committed, and the bar of one that was not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

from asynccommit.commit.meter import OnProgress

EVERY = 0.5
"""Seconds between two updates."""


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
    from IPython.display import display

    from asynccommit.inspect.bars import JobBars

    bars = JobBars()
    handle: Any = display(bars.table(), display_id=True)  # type: ignore[no-untyped-call]
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(every):
            with suppress(Exception):  # a kernel that ends does not fail the commit
                handle.update(bars.table())

    # The output belongs to the cell whose context this is.
    context = copy_context()
    thread = threading.Thread(
        target=context.run, args=(beat,), name="asynccommit-progress", daemon=True
    )
    thread.start()
    try:
        yield bars
    finally:
        ended.set()
        thread.join()
        with suppress(Exception):
            handle.update(bars.table())

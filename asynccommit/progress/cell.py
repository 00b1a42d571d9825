"""Progress in the cell of a notebook, for callers without their own.

What shows it is far above a commit, so it is imported by name, and in notebooks only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from asynccommit.commit.meter import OnProgress


@contextmanager
def shown_in_cell(on_progress: OnProgress | None) -> Iterator[OnProgress | None]:
    """Yield the callback for progress: in a notebook, the cell by default."""
    if on_progress is not None or not is_notebook():
        yield on_progress
        return
    with _notebook().notebook_progress() as bars:
        yield bars


def is_notebook() -> bool:
    """Return whether this program is a notebook, and progress is not off."""
    return "IPython" in sys.modules and not is_off() and bool(_notebook().in_kernel())


def is_off() -> bool:
    """Return whether ``ASYNCCOMMIT_PROGRESS`` in the environment is ``off``."""
    return os.environ.get("ASYNCCOMMIT_PROGRESS", "").lower() == "off"


def _notebook() -> Any:
    return import_module("asynccommit.progress.notebook")

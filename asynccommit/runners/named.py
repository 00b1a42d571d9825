"""The runners that options name."""

from __future__ import annotations

import os

from asynccommit.commit.orders import Runner
from asynccommit.runners.processes import Processes

_FILES = 700_000
"""Number of files from which processes save more time than their start takes."""
_CORES = 4
_MOST = 4
"""Number of processes that an account keeps busy at most, as far as this was measured."""


def runner_named(name: str) -> Runner | None:
    """Return the runner that ``asynccommit.workers`` names; ``None`` for none.

    The name is as ``options.values.runner`` returns it.
    """
    cores = os.cpu_count() or 1
    kind, _, number = name.partition(":")
    if kind == "processes":
        return Processes(int(number) if number else min(_MOST, cores))
    if kind == "auto" and cores >= _CORES:
        return Processes(min(_MOST, cores // 2), _FILES)
    return None

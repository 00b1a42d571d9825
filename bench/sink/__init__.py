"""Streaming sinks: what a batch costs, and whether a log costs the same after thousands of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench.sink import batches, compaction, queries

ROWS = ("batches", "memory", "queries", "compaction")

Say = Callable[[str], None]


def run(rows: Sequence[str] = ROWS, *, quick: bool, folder: str | None, say: Say) -> dict[str, Any]:
    """Measure ``rows``; returns what each of them found."""
    measure: dict[str, Callable[[], Any]] = {
        "batches": lambda: batches.run(quick=quick, folder=folder),
        "memory": lambda: _memory(quick=quick),
        "queries": lambda: queries.run(quick=quick, folder=folder),
        "compaction": lambda: compaction.run(quick=quick, folder=folder),
    }
    result = {}
    for row in ROWS:
        if row in rows:
            say(f"sink-{row}")
            result[row] = measure[row]()
    return result


def _memory(*, quick: bool) -> dict[str, Any]:
    """Measure in a new process, in which nothing else has been before."""
    command = [sys.executable, "-m", "bench.sink.memory", "quick" if quick else "full"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result

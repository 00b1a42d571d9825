"""What a job commit holds in memory, of some uploads and of several times as many."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

TARGET = 1.2
"""How much more memory several times the uploads may take."""

_TASKS, _FILES = 200, 500
"""Of the smaller job: more uploads than are kept in memory before the rest goes to a file."""
_FULL, _QUICK = 8, 2


def run(*, quick: bool) -> dict[str, Any]:
    """Measure both jobs, each in a new process; returns bytes, seconds and the ratio."""
    times = _QUICK if quick else _FULL
    commits = [_measured(_TASKS), _measured(_TASKS * times)]
    few, many = (one["peak_bytes"] for one in commits)
    return {
        "files_of_a_task": _FILES,
        "commits": commits,
        "times": times,
        "ratio": many / few,
        "target": TARGET,
    }


def _measured(tasks: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.s3.held", str(tasks), str(_FILES)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result

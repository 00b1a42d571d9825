"""What a task holds in memory that streams a large file in parts: a process of its own, on moto."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from bench.s3.moto import serving

_FULL, _QUICK = 1_000, 256  # MiB


def run(*, quick: bool) -> dict[str, Any]:
    """Measure in a new process; returns bytes and seconds."""
    with serving() as host:
        command = [sys.executable, "-m", "bench.s3.stream", host, str(_QUICK if quick else _FULL)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result

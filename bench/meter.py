"""CPU time: of this process, of the thread that runs the loop, and of other processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


class Meter:
    """Takes time from where it is made; make and read it on the thread of the loop.

    What the loop's thread uses is the bound of what holds the GIL: nearly all of it does, system
    calls apart, and no other thread of ours runs Python code.
    """

    def __init__(self) -> None:
        self._cpu, self._loop = time.process_time(), time.thread_time()
        self._wall = time.perf_counter()

    def read(self, count: int) -> dict[str, Any]:
        """Return seconds in all, and microseconds for each of ``count`` things."""
        wall = time.perf_counter() - self._wall
        cpu, loop = time.process_time() - self._cpu, time.thread_time() - self._loop
        each = 1e6 / max(count, 1)
        return {
            "count": count,
            "seconds": wall,
            "cpu_us": cpu * each,
            "loop_us": loop * each,
            "per_second": count / wall,
        }


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process so far, or 0.0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

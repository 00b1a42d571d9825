"""Measure the memory that a piece of work uses, from this process's size.

Tracing every allocation would take several times as long as the work.
"""

from __future__ import annotations

import gc
import resource
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory use of a simulated commit.

    Attributes:
        files: number of files of the measured job.
        grown: maximum growth of the process in bytes.
        model: bytes of it that belong to the model: a real store would keep them elsewhere.
        how: method of measurement.
    """

    files: int
    grown: int
    model: int
    how: str

    @property
    def engine(self) -> int:
        """The bytes of the engine: growth without the model."""
        return max(0, self.grown - self.model)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"engine": self.engine, **asdict(self)}


class MemoryGrowth:
    """A measurement of memory growth since its creation."""

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError):  # otherwise an earlier peak hides later growth, up to its height
            _RESET.write_text("5")
        self._begin = _resident("VmRSS")

    def bytes(self) -> int:
        """Return the maximum growth of the process since the start, in bytes."""
        return max(0, _resident("VmHWM") - self._begin)

    @property
    def how(self) -> str:
        """The method of measurement on this machine."""
        if _STATUS.exists():
            return "growth of the process's resident set up to its peak"
        return "growth of the process's ru_maxrss, which hides what earlier peaks had room for"


def _resident(name: str) -> int:
    """Return the resident set in bytes: now (``VmRSS``) or peak (``VmHWM``)."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return int(value.split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

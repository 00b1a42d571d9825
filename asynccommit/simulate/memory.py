"""How much memory a piece of work takes, by the size of this process.

To trace every allocation would take several times as long as the work.
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
    """What a simulated commit took.

    Attributes:
        files: of the job that was measured.
        grown: bytes by which the process grew at most.
        model: those of them that are the model's: what a real store would keep elsewhere.
        how: how it was measured.
    """

    files: int
    grown: int
    model: int
    how: str

    @property
    def engine(self) -> int:
        """What is left for the engine."""
        return max(0, self.grown - self.model)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"engine": self.engine, **asdict(self)}


class MemoryGrowth:
    """Measures from when it is made."""

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError):  # then an earlier peak hides what follows, up to its height
            _RESET.write_text("5")
        self._begin = _resident("VmRSS")

    def bytes(self) -> int:
        """Return by how much the process has grown at most since then."""
        return max(0, _resident("VmHWM") - self._begin)

    @property
    def how(self) -> str:
        """How this is measured here."""
        if _STATUS.exists():
            return "growth of the process's resident set up to its peak"
        return "growth of the process's ru_maxrss, which hides what earlier peaks had room for"


def _resident(name: str) -> int:
    """Return the resident set in bytes: as of now (``VmRSS``) or its peak (``VmHWM``)."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return int(value.split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""The table of cells (start, Spark line, master), and the run of one."""

from __future__ import annotations

import math
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.field.belongings import jars
from tests.field.effects import problems
from tests.field.environments import LINES, NEWEST, Environment
from tests.field.machine_starts import MACHINE_STARTS, ON_MACHINES, SEEDS
from tests.field.place import Place, StartError
from tests.field.starts import STARTS
from tests.field.yarn_starts import YARN, YARN_STARTS

LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,1024]"
ON_ALL_LINES = ("python", "submit", "shell", "builder", "notebook")
ALL_STARTS = {**STARTS, **MACHINE_STARTS, **YARN_STARTS}
TIMEOUT = 240.0
TIMEOUT_ON_CLUSTERS = 900.0  # six JVMs start, the servers' among them, on the cores of one machine


@dataclass(frozen=True, slots=True)
class Cell:
    """One start of Spark: how, which line, which master."""

    start: str
    line: str
    master: str

    @property
    def name(self) -> str:
        """Return the name in the file of results."""
        kind = re.match(r"[a-z-]*", self.master)
        return f"{self.start}-{self.line}-{kind[0] if kind else ''}"

    @property
    def has_events(self) -> bool:
        """Return whether something happens to its writes."""
        return self.start.startswith("events-")

    @property
    def timeout(self) -> float:
        """Return the seconds that it may take."""
        return TIMEOUT if self.master.startswith("local") else TIMEOUT_ON_CLUSTERS


ENDS = next(iter(LINES)), NEWEST
EVENTS = [Cell(f"events-{seed}", ENDS[1 - seed % 2], ON_MACHINES) for seed in SEEDS]


def _cells() -> list[Cell]:
    newest = [Cell(start, NEWEST, master) for master in (LOCAL, CLUSTER) for start in STARTS]
    others = [line for line in reversed(LINES) if line != NEWEST]
    old = [Cell(start, line, LOCAL) for line in others for start in ON_ALL_LINES]
    machines = [Cell("machines", line, ON_MACHINES) for line in ENDS]
    yarn = [Cell(start, line, YARN) for line in ENDS for start in YARN_STARTS]
    return newest + old + machines + yarn + EVENTS


CELLS = _cells()


def run_cell(cell: Cell, environment: Environment, timeout: float = math.inf) -> None:
    """Run a cell.

    Raises ``StartError`` if it fails, and ``MissingError`` if it cannot be tried on this machine.
    """
    start, seconds = ALL_STARTS[cell.start], min(timeout, cell.timeout)
    with tempfile.TemporaryDirectory(prefix="field-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder), environment, cell.master, jars(), seconds)
        output = start.run(place)
        found = [] if start.tables is None else problems(place, start.tables, output)
        if found:
            raise StartError("\n".join([output, *found]))

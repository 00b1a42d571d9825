"""The table of cells (start, Spark line, master), and the run of one."""

from __future__ import annotations

import math
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.field.belongings import jars
from tests.field.driver_starts import DRIVER_STARTS
from tests.field.effects import problems
from tests.field.environments import LINES, NEWEST, Environment
from tests.field.machine_starts import MACHINE_STARTS, ON_MACHINES, SEEDS
from tests.field.place import Place, StartError
from tests.field.secured import SECURED_STARTS
from tests.field.starts import STARTS
from tests.field.yarn_starts import YARN, YARN_STARTS

LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,1024]"
STANDALONE = "standalone"
IN_ONE_PROCESS = ("python", "submit", "shell", "builder", "notebook")
ON_ALL_LINES = "submit"
ON_NEWEST = ("connect", "refused", "java")  # Java's jar differs from Scala's by its compiler
IN_DRIVER = ("shell",)  # what differs is what the driver reads
ALL_STARTS = {**STARTS, **DRIVER_STARTS, **MACHINE_STARTS, **YARN_STARTS, **SECURED_STARTS}
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
MACHINES = [Cell("machines", line, ON_MACHINES) for line in ENDS]
MACHINES += [Cell(start, NEWEST, ON_MACHINES) for start in ("hdfs", "s3")]
EVENTS = [Cell(f"events-{seed}", ENDS[1 - seed % 2], ON_MACHINES) for seed in SEEDS]


def driver_master(start: str) -> str:
    """Return the master of a driver without Python."""
    return STANDALONE if start in ("jar", "refused") else LOCAL


def _driver_cells(start: str) -> list[Cell]:
    lines = [NEWEST] if start in ON_NEWEST else ENDS
    return [Cell(start, line, driver_master(start)) for line in lines]


def _cells() -> list[Cell]:
    """Return the cells: rows before lines, and lines before masters.

    Executors in processes of their own need all that those in the driver's need, so nearly each
    start runs with them; the lines between oldest and newest have one start each.
    """
    newest = [Cell(start, NEWEST, LOCAL) for start in IN_ONE_PROCESS]
    newest += [Cell(start, NEWEST, CLUSTER) for start in STARTS if start not in IN_DRIVER]
    drivers = [cell for start in DRIVER_STARTS for cell in _driver_cells(start)]
    oldest = [Cell(start, ENDS[0], LOCAL) for start in IN_ONE_PROCESS]
    between = [Cell(ON_ALL_LINES, line, LOCAL) for line in LINES if line not in ENDS]
    yarn = [Cell(start, line, YARN) for line in ENDS for start in YARN_STARTS]
    yarn += [Cell(start, NEWEST, YARN) for start in SECURED_STARTS]
    return newest + drivers + oldest + between + MACHINES + yarn + EVENTS


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

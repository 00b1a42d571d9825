"""The table of cells (start, Spark line, master), and the run of one."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.field.belongings import jars
from tests.field.effects import problems
from tests.field.environments import LINES, NEWEST, Environment
from tests.field.place import Place, StartError
from tests.field.starts import STARTS

LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,1024]"
ON_ALL_LINES = ("python", "submit", "shell", "builder", "notebook")
TIMEOUT = 240.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One start of Spark: how, which line, which master."""

    start: str
    line: str
    master: str

    @property
    def name(self) -> str:
        """Return the name in the file of results."""
        return f"{self.start}-{self.line}-{self.master.partition('[')[0]}"


def _cells() -> list[Cell]:
    newest = [Cell(start, NEWEST, master) for master in (LOCAL, CLUSTER) for start in STARTS]
    others = [line for line in reversed(LINES) if line != NEWEST]
    return newest + [Cell(start, line, LOCAL) for line in others for start in ON_ALL_LINES]


CELLS = _cells()


def run_cell(cell: Cell, environment: Environment, timeout: float = TIMEOUT) -> None:
    """Run a cell.

    Raises ``StartError`` if it fails, and ``MissingError`` if it cannot be tried on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="field-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder), environment, cell.master, jars(), timeout)
        output = STARTS[cell.start].run(place)
        if found := problems(place, STARTS[cell.start].tables, output):
            raise StartError("\n".join([output, *found]))

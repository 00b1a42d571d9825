"""Start Spark in each way in which it is started, and check that its jobs are committed.

Results are kept beside the environments, in ``build/field``: a cell that has passed at the same
commit is not run again.

    python -m tests.field                     all cells; makes an environment for each Spark line
    python -m tests.field submit 4.0          cells with both in their names, or whole names
    python -m tests.field --installed         those of the installed Spark line
    python -m tests.field --minutes 5         one draw of events, then starts that end in time
    python -m tests.field --print             no run; the table as far as it is known
    python -m tests.field --record            no run; keep the results and write the page of them
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.field import results
from tests.field.cells import CELLS, Cell, run_cell
from tests.field.environments import KEPT, environment, installed_line
from tests.field.place import MissingError, StartError, TooLongError
from tests.field.results import CHANGED, PAGE, RECORDED, Result
from tests.support.selection import day

_OWN = KEPT / "results.json"
_SHORTEST = 45.0  # seconds without which no cell is begun
YES, NO, MISSING, BEFORE, LATER = "yes", "no", "missing", "passed before", "not reached"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells; return the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.print:
        known = results.latest(results.read_results(RECORDED), results.read_results(_OWN))
        _say("\n".join(results.tables(known)))
        return 0
    if asked.record:
        return _record()
    cells = _chosen(asked)
    if not cells:
        parser.error(f"no cell has {' and '.join(asked.names)} in its name")
    return _run(cells, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="field", description="Start Spark in each way in which it is started."
    )
    parser.add_argument("names", nargs="*", help="parts of a cell's name: start, line, master")
    parser.add_argument("--again", action="store_true", help="run those that have passed, too")
    parser.add_argument("--installed", action="store_true", help="only the installed Spark line")
    parser.add_argument("--minutes", type=float, help="begin no cell that may not end in time")
    parser.add_argument("--print", action="store_true", help="print the table")
    parser.add_argument("--record", action="store_true", help="keep the results; write the page")
    return parser


def _chosen(asked: argparse.Namespace) -> list[Cell]:
    named = [cell for cell in CELLS if cell.name in asked.names]
    cells = named or [cell for cell in CELLS if all(name in cell.name for name in asked.names)]
    if asked.installed:
        cells = [cell for cell in cells if cell.line == installed_line()]
    if asked.minutes is not None and cells:
        first = day() * 7 % len(cells)
        cells = cells[first:] + cells[:first]
        cells.sort(key=lambda cell: (cell.has_events, cell.timeout))  # long ones last
        cells = [*cells[-1:], *cells[:-1]] if cells[-1].has_events else cells
    return cells


def _run(cells: Sequence[Cell], asked: argparse.Namespace) -> int:
    end = time.monotonic() + 60 * asked.minutes if asked.minutes is not None else math.inf
    made = results.commit()
    known = {} if asked.again else results.read_results(_OWN)
    passed = {name for name, it in known.items() if (it.outcome, it.commit) == (YES, made)}
    counts = dict.fromkeys((YES, NO, MISSING, BEFORE, LATER), 0)
    for cell in cells:
        counts[BEFORE if cell.name in passed else _outcome(cell, made, end)] += 1
    _say("== cells: " + ", ".join(f"{number} {name}" for name, number in counts.items()))
    return 1 if counts[NO] else 0


def _outcome(cell: Cell, made: str, end: float) -> str:
    """Run a cell if there is time, keep its result, and return the outcome."""
    if end - time.monotonic() < _SHORTEST:
        return LATER
    around = environment(cell.line)
    started = time.monotonic()
    timeout = min(cell.timeout, end - started)
    try:
        run_cell(cell, around, timeout)
        outcome = YES
    except MissingError as error:
        _say(f"{MISSING:<7} {cell.name}: {error}")
        return MISSING
    except StartError as error:
        if isinstance(error, TooLongError) and timeout < cell.timeout:
            return LATER
        outcome = NO
        _say(f"{error}\n")
    seconds = round(time.monotonic() - started)
    _say(f"{outcome:<7} {cell.name}: {seconds} s")
    _keep(cell, Result(outcome, made, datetime.now(UTC).date().isoformat(), seconds))
    return outcome


def _keep(cell: Cell, result: Result) -> None:
    results.write_results(_OWN, {**results.read_results(_OWN), cell.name: result})


def _record() -> int:
    """Keep the results in the repository, and write the page; refuse those of changed files."""
    known = results.latest(results.read_results(RECORDED), results.read_results(_OWN))
    if changed := [name for name, it in known.items() if CHANGED in it.commit or not it.commit]:
        sys.stderr.write(f"field: commit first, then run again: {', '.join(changed)}\n")
        return 1
    results.write_results(RECORDED, known)
    PAGE.write_text(results.page(known), "utf-8")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

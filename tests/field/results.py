"""The file of results, and the page of the documentation that is made from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.field.cells import (
    ALL_STARTS,
    CELLS,
    CLUSTER,
    ENDS,
    EVENTS,
    IN_ONE_PROCESS,
    LOCAL,
    Cell,
    driver_master,
)
from tests.field.driver_starts import DRIVER_STARTS
from tests.field.environments import LINES, NEWEST
from tests.field.events import KINDS
from tests.field.machine_starts import ON_MACHINES
from tests.field.secured import SECURED_STARTS
from tests.field.starts import STARTS
from tests.field.yarn_starts import YARN, YARN_STARTS
from tests.support.snippets import ROOT

RECORDED = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs/spark-starts.md"
_TESTED = ("asynccommit", "README.md", "tests/field", ":!tests/field/results.json")
CHANGED = "+changes"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a cell.

    Attributes:
        outcome: ``yes`` or ``no``.
        commit: the commit that last changed the package, README or the cells.
        date: the day, as ``2026-11-26``.
        seconds: how long it took.
    """

    outcome: str
    commit: str
    date: str
    seconds: int


def read_results(path: Path) -> dict[str, Result]:
    """Return the results of a file by the names of their cells."""
    if not path.is_file():
        return {}
    return {name: Result(**it) for name, it in json.loads(path.read_text("utf-8")).items()}


def write_results(path: Path, results: Mapping[str, Result]) -> None:
    """Write a line for each cell, sorted."""
    lines = [f'"{name}": {json.dumps(asdict(results[name]))}' for name in sorted(results)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def commit() -> str:
    """Return the commit that is tested; it says if the files differ from it."""
    last = _git("log", "-1", "--format=%h", "--abbrev=9", "--", *_TESTED)
    return last + CHANGED if _git("status", "--porcelain", "--", *_TESTED) else last


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def page(results: Mapping[str, Result]) -> str:
    """Return the page of the documentation."""
    return "\n".join(_page(results))


def _page(results: Mapping[str, Result]) -> Iterator[str]:
    yield _TEXT.format(newest=NEWEST, releases=", ".join(LINES.values()))
    yield from tables(results)
    yield _MACHINES.format(events=len(EVENTS) * len(KINDS))
    yield from _heading(["Start, on machines of their own", *ENDS])
    for start in ("machines", "hdfs", "s3"):
        yield _row(start, [Cell(start, line, ON_MACHINES) for line in ENDS], results)
    yield ""
    yield from _heading(["Draw", "Spark", "Six events"])
    for cell in EVENTS:
        seed = cell.start.removeprefix("events-")
        yield f"| {seed} | {cell.line} | {_said(cell, results)} |"
    yield ""
    yield f"{_runs(results)}."
    yield ""


def _runs(results: Mapping[str, Result]) -> str:
    """Return the commit and the day of each cell; those of most cells are said for the rest."""
    found: dict[str, list[str]] = {}
    for name, result in sorted(results.items()):
        found.setdefault(f"at commit `{result.commit}` on {result.date}", []).append(f"`{name}`")
    *few, (most, rest) = sorted(found.items(), key=lambda run: len(run[1]))
    parts = [f"{', '.join(names)} ran {when}" for when, names in few]
    return "; ".join([*parts, f"{'the other ' if few else ''}{len(rest)} cells ran {most}"])


def tables(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of the tables: all starts on the newest line, some on others."""
    yield from _heading([f"Start, with Spark {NEWEST}", f"`{LOCAL}`", f"`{CLUSTER}`"])
    for start in STARTS:
        yield _row(start, [Cell(start, NEWEST, master) for master in (LOCAL, CLUSTER)], results)
    yield ""
    yield from _heading([f"Start, with `{LOCAL}`", *LINES])
    for start in IN_ONE_PROCESS:
        yield _row(start, [Cell(start, line, LOCAL) for line in LINES], results)
    yield ""
    yield from _heading([f"Start, with `{YARN}`", *ENDS])
    for start in YARN_STARTS:
        yield _row(start, [Cell(start, line, YARN) for line in ENDS], results)
    yield ""
    yield from _heading([f"Start, with `{YARN}` and Kerberos", NEWEST])
    for start in SECURED_STARTS:
        yield _row(start, [Cell(start, NEWEST, YARN)], results)
    yield _DRIVERS
    yield from _heading(["Driver without Python", *ENDS])
    for start in DRIVER_STARTS:
        yield _row(start, [Cell(start, line, driver_master(start)) for line in ENDS], results)


def _heading(names: list[str]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"


def _row(start: str, cells: list[Cell], results: Mapping[str, Result]) -> str:
    return f"| {' | '.join([ALL_STARTS[start].text, *(_said(_, results) for _ in cells)])} |"


def _said(cell: Cell, results: Mapping[str, Result]) -> str:
    if cell not in CELLS:
        return ""
    result, refusal = results.get(cell.name), ALL_STARTS[cell.start].refusal
    if result is None:
        return "has not run"
    said = f"Spark refuses: {refusal}" if refusal and result.outcome == "yes" else result.outcome
    return f"{said}, {result.seconds} s"


def latest(recorded: Mapping[str, Result], own: Mapping[str, Result]) -> dict[str, Result]:
    """Return the results of the table's cells; this machine's own are newer than the recorded."""
    both = {**recorded, **own}
    return {cell.name: both[cell.name] for cell in CELLS if cell.name in both}


_DRIVERS = """
## Drivers without Python

They write a table by the settings of `asynccommit spark-conf`, and count its rows; then the command
reads the report of the last job. The Thrift server has the jar on its class path as well. The
server of Spark Connect is among PySpark's jars since Spark 4.0.
"""
_MACHINES = """
## Machines of their own

The master, two workers and the driver of a standalone cluster, and the store, each have a network
namespace with an address of its own on a bridge, a host name, processes and a file tree. None of
the addresses exists outside. A worker sees Java, a bare Python and Spark's files, and has nothing
in common with the driver but the network. The store is this package's emulator of ADLS, which
tasks reach through Hadoop's client of their Spark line; a NameNode and a DataNode of HDFS; or moto,
with S3A's magic committer. Rows are read by other clients than this package's. Events happen to the
first of these stores.

{events} events strike slow writes there, in each draw one of each kind. After each the
rows of the table are compared, and after the first four the number of files with the report's:

- executors are killed while their tasks write;
- an executor is stopped until its tasks are tried a second time, and then goes on beside them;
- a worker is cut off while it writes, from all or from all but the store, or its executor is
  stopped; it is let back once the job is committed;
- the clock of a worker is days off;
- the driver is cut off from the store in mid-commit for longer than its lease, and is let back
  before or after another machine has resumed the commit;
- the driver's machine ends in mid-commit, and another resumes the commit or rolls it back.

Nothing of a job is left after any of them but what a task makes again whose executor is killed
after the end of its job: its own files, in `_temporary/ID/00/tasks`, `absolute` or `manifests`.
`asynccommit abort URL --job-id ID --force` deletes them, which is done after each event, and at
least once in each draw, where a late file is written in such a place.

"""
_TEXT = """\
# Starts of Spark

This page is made from the results of `make test-field`, which starts an application for each cell.
The application is README's first example, word for word unless the start says otherwise. Then it
writes from ten threads of a pool, from a thread that inherits its properties, and from the batches
of a streaming query that another thread has started. The rows are read back with pyarrow, each job
must have a report, and a jar of the user's must be loadable in the driver and in the tasks.

The versions are {releases}. Each line has an environment of its own, in which this package is
installed; Spark {newest} runs in the environment of `make setup`.

Each application makes what it is given: the jar, the Maven package in a local repository, the
module of `--py-files` with a zip of this package, and the archive, which is a virtual environment
packed with `tar`. The shell gets `PYSPARK_DRIVER_PYTHON_OPTS=-i`, without which Python reads a pipe
as a script that has no session. The store of `hadoop_clients=["abfs"]` is this package's emulator.

YARN is the mini cluster of Hadoop's own tests, of one node, with HDFS as its default filesystem. A
driver in a container has Python and this package from an archive of an environment that is no more
where it was made, and so have tasks. With Kerberos there is the KDC of Hadoop's tests as well,
HDFS and YARN accept tickets and delegation tokens only, and a token must be renewed after 30
seconds, which is less than a commit takes. Rows and the owners of files are compared.

The seconds are those of the whole application, on a machine of two cores with other work to do. An
empty cell has not been tried: `local-cluster` has all that a start on `local[2]` needs and
executors of its own, and the lines between oldest and newest run the start that broke there once.
"""

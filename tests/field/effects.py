"""The effects that a start must have: rows by pyarrow, reports, classes and modules in tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyarrow import parquet

from tests.field import programs
from tests.field.belongings import PACKED
from tests.field.environments import LINES
from tests.field.place import Place
from tests.support.spark import leftovers

_FLIGHTS = [{"id": number, "day": number % 7} for number in range(1000)]
TABLES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "flights": _FLIGHTS,
    "again": _FLIGHTS,
    "before": [{"id": number} for number in range(5)],
    "threads": [{"id": number, "n": number // 10} for number in range(110)],
    "batches": [{"id": number, "n": number // 10} for number in range(110)],
}
OURS = ("flights", "again", "threads/n=0", "threads/n=9", "threads/n=10", "batches", "classes")


def problems(place: Place, tables: Sequence[str], output: str) -> list[str]:
    """Return a line for each effect that is not there."""
    if not (place.folder / "found.json").is_file():
        return ["the program has not reached its end"]
    found = json.loads((place.folder / "found.json").read_text("utf-8"))
    wanted = ["flights", "threads", "batches", *tables]
    return [
        *(text for name in wanted for text in table_problems(place.folder / name)),
        *_session(place, found, output),
        *_reports(found, wanted),
        *_classes(place, found),
        *_modules(place, found),
    ]


def table_problems(table: Path) -> Iterator[str]:
    """Yield a line if a table has other rows than its start writes, or leftovers."""
    wanted, found = TABLES[table.name], rows(table)
    if found != sorted(wanted, key=_key):
        yield f"{table.name} has other rows: {len(found)}, expected {len(wanted)}"
    if table.name != "before" and (left := leftovers(table)):  # Spark's own have checksum files
        yield f"{table.name} has leftovers: {left}"


def rows(table: Path) -> list[Mapping[str, Any]]:
    """Return the rows of a table, sorted."""
    if not table.is_dir():
        return []
    found: list[Mapping[str, Any]] = parquet.read_table(table, partitioning="hive").to_pylist()
    return sorted(found, key=_key)


def _key(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def _session(place: Place, found: Mapping[str, Any], output: str) -> Iterator[str]:
    if not found["active"]:
        yield "the session is not configured"
    if found["master"] != place.master:
        yield f"the master is {found['master']}, expected {place.master}"
    if found["version"] not in LINES.values():
        yield f"Spark is {found['version']}"
    if found["rows"] != len(_FLIGHTS):
        yield f"Spark has read {found['rows']} rows of flights"
    if not programs.printed().search(output):
        yield f"no line of the output is {programs.printed().pattern}"


def _reports(found: Mapping[str, Any], tables: Sequence[str]) -> Iterator[str]:
    dests = [dest for dest, _ in found["reports"]]
    for name in OURS:
        wanted = name.partition("/")[0] in (*tables, "classes")
        if wanted and not any(dest.endswith(f"/{name}") for dest in dests):
            yield f"there is no report of the job that wrote {name}: {dests}"
    if any(dest.endswith("/before") for dest in dests):
        yield "there is a report of a job before configure"
    if found["last"] != dests[-1]:
        yield f"the last report is of {found['last']}"


def _classes(place: Place, found: Mapping[str, Any]) -> Iterator[str]:
    loaded = rows(place.folder / "classes")
    if sorted({row["name"] for row in loaded}) != sorted(place.given["classes"]):
        yield f"tasks have loaded {loaded}, expected {place.given['classes']}"
    processes = {row["process"] for row in loaded}
    local = place.master.startswith("local[")
    if processes != {found["process"]} if local else found["process"] in processes:
        yield f"tasks have run in {processes} with {place.master}, the driver in {found['process']}"


def _modules(place: Place, found: Mapping[str, Any]) -> Iterator[str]:
    if not place.given["module"]:
        return
    if not re.search(r"/asynccommit\.zip/", found["package"]):
        yield f"the package was imported from {found['package']}, not from --py-files"
    values = [[double, text] for double, text, _ in found["tasks"]]
    if values != [[2 * number, PACKED] for number in range(4)]:
        yield f"tasks have returned {found['tasks']}"
    packed = all(re.search(r"/env(/\.)?$", prefix) for *_, prefix in found["tasks"])
    if not packed and not place.master.startswith("local["):
        yield f"tasks have run outside of the packed environment: {found['tasks']}"

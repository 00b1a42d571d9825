"""The JSON of commands fits the published schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.streaming.entries import FOLDER as LOG
from tests.cli.support import Command, cut_short, prepare
from tests.cli.test_am import leave
from tests.cli.test_hive import FILES
from tests.support.jobs import JOB, write
from tests.support.schemas import FOLDER, SCHEMAS, check, text_of
from tests.support.sink import BlockingLog, of_disk
from tests.support.snippets import ROOT

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")


def done(table: Path) -> None:
    """Commit a job."""
    with sync.open_job(table) as job, job.task(0) as task:
        task.put("day=1/part-0", b"x")


def interrupted(table: Path) -> None:
    """Leave a commit that was interrupted."""
    cut_short(table)


def written(table: Path) -> None:
    """Leave a job that has not been committed."""
    prepare(table)


def listed(table: Path) -> None:
    """Commit a job, and leave a list of a file that is there and of one that is not."""
    done(table)
    table.with_suffix(".tsv").write_text("day=1/part-0\t1\t\nday=1/part-1\t1\t\n")


def streamed(table: Path) -> None:
    """Leave a table with a sink log that misses a batch and has a line twice."""
    table.mkdir()
    log = BlockingLog(table)
    for batch in range(3):
        file = table / f"part-{batch}.parquet"
        file.write_bytes(bytes(10))
        log.add(batch, [of_disk(file, table)], "query-1")
    (table / LOG / "1").unlink()
    lines = (table / LOG / "2").read_text().splitlines()
    (table / LOG / "2").write_text("\n".join([*lines, lines[-1]]))


def of_hive(table: Path) -> None:
    """Leave a table of Hive with a task that ran twice."""
    write(table, FILES)


def nothing(table: Path) -> None:
    """Leave nothing."""


SMALL = ("simulate", "--files", "300", "--tasks", "3", "--partitions", "2")
FEW = ("--files", "20", "--max-requests", "2000", "--max-seconds", "1")
CASES: Sequence[tuple[str, Any, Sequence[str]]] = [
    ("status", done, ("status", "T")),
    ("status", interrupted, ("status", "T")),
    ("status", written, ("status", "T")),
    ("inspect", interrupted, ("inspect", "T")),
    ("inspect", done, ("inspect", "T/_SUCCESS")),
    ("inspect", written, ("inspect", "T")),
    ("report", done, ("report", "T")),
    ("report", interrupted, ("report", "T")),
    ("job", interrupted, ("resume", "T")),
    ("job", written, ("commit", "T", "--trust-manifests", "--dry-run")),
    ("job", written, ("commit", "T", "--tasks", "2")),
    ("abort", written, ("abort", "T", "--force")),
    ("abort", interrupted, ("abort", "T", "--rollback")),
    ("plan", interrupted, ("abort", "T", "--rollback", "--dry-run")),
    ("plan", written, ("abort", "T", "--dry-run")),
    ("gc", written, ("gc", "T", "--older-than", "0")),
    ("gc", interrupted, ("gc", "T")),
    ("doctor", done, ("doctor",)),
    ("ls", done, ("ls", "T")),
    ("bulk", done, ("mv", "T/day=1", "T/day=2")),
    ("bulk", done, ("rm", "T/day=1", "--recursive", "--dry-run")),
    ("error", done, ("abort", "T")),
    ("error", done, ("status", "T/missing")),
    ("error", done, ("statsu",)),
    ("abort", interrupted, ("abort", "T", "--job-id", JOB)),
    ("verify", listed, ("verify", "T", "--from-file", "T.tsv")),
    ("sink-log", streamed, ("sink-log", "show", "T")),
    ("sink-log-verify", streamed, ("sink-log", "verify", "T")),
    ("sink-log-repair", streamed, ("sink-log", "repair", "T")),
    ("sink-log-repair", streamed, ("sink-log", "repair", "T", "--yes")),
    ("sink-log-adopt", streamed, ("sink-log", "adopt", "T", "--query", "Q")),
    ("hive", of_hive, ("hive", "dedup", "T", "--partitions", "1", "--buckets", "2")),
    ("hive", of_hive, ("hive", "dedup", "T", "--partitions", "1", "--yes")),
    ("mapreduce", leave, ("mapreduce", "status", "T")),
    ("simulate", nothing, SMALL),
    (
        "simulate",
        nothing,
        (*SMALL, "--store", "gcs", "--latency", "10ms-30ms", "--faults", "lossy"),
    ),
    ("simulate", nothing, (*SMALL, "--store", "hdfs", "--faults", "storm")),
    ("loadtest", nothing, ("loadtest", "T", *FEW)),
    ("man", nothing, ("man",)),
    ("version", nothing, ("--version",)),
]
ELSEWHERE = {
    "demo": "tests/demo/test_demo.py",
    "emulate": "tests/testing/emulators/test_emulate_command.py",
    "spark-conf": "tests/spark/test_settings.py",
    "uploads": "tests/cli/test_uploads.py",
    "uploads-abort": "tests/cli/test_uploads.py",
}
"""Schema -> the tests that check output that takes a server, or Spark."""


@pytest.mark.parametrize("name,state,words", CASES)
def test_output_fits_its_schema(
    name: str, state: Any, words: Sequence[str], command: Command, tmp_path: Path
) -> None:
    """What a command really prints fits the schema that docs/schemas publishes for it."""
    state(tmp_path / "t")

    command(*(word.replace("T", str(tmp_path / "t")) for word in words), "--json")

    check(name, json.loads(command.out))


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schema_is_current(name: str) -> None:
    """A schema is what the types say: run ``python -m tests.support.schemas`` after a change."""
    assert (FOLDER / f"{name}.json").read_text("utf-8") == text_of(name)


def test_all_published_schemas_are_tested() -> None:
    """There is no file without a type, and no type without an output."""
    assert {path.stem for path in FOLDER.iterdir()} == {*SCHEMAS}
    assert {*SCHEMAS} - {name for name, _, _ in CASES} == {*ELSEWHERE}
    for name, tests in ELSEWHERE.items():
        assert f'check("{name}", ' in (ROOT / tests).read_text("utf-8")


def test_page_of_the_command_links_each_schema() -> None:
    """The page about the command line names every schema that is published."""
    page = (ROOT / "docs/cli.md").read_text("utf-8")

    assert [name for name in SCHEMAS if f"](schemas/{name}.json)" not in page] == []


def test_schema_refuses_what_does_not_fit(command: Command, tmp_path: Path) -> None:
    """A schema is strict enough to notice a field that is missing, or of another type."""
    done(tmp_path / "t")
    command("status", tmp_path / "t", "--json")
    value = json.loads(command.out)

    for broken in ({**value, "jobs": 3}, {**value, "schema_version": 2}, {"schema_version": 1}):
        with pytest.raises(jsonschema.ValidationError):
            check("status", broken)

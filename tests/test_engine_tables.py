"""Tables of every engine: modes, names, stores, and each engine reads those of the others."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from asynccommit import OptionError, sync
from asynccommit.errors import PreflightError
from asynccommit.parallel import TaskPlace, partition_directory
from asynccommit.tabular.arrow_files import ArrowFiles, python_values
from asynccommit.tabular.names import escaped
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.engine_places import place, tables_at
from tests.support.engine_programs import PROGRAM_ROWS, write_in_a_program
from tests.support.engine_writers import READERS, RECURSIVE, WRITERS, by_ray
from tests.support.engines import VALUES, directories, files, once, running_ray, values_of
from tests.support.s3_servers import moto_url
from tests.support.spark import ENVIRONMENT

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url", "place"]

pytestmark = [
    # The reader and the writer of Dask call pandas in a way that its newest version deprecates.
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
    pytest.mark.timeout(180),
]
ENGINES = pytest.mark.parametrize("engine", sorted(WRITERS))
KEYS = [VALUES[number % len(VALUES)] for number in range(12)]
TABLE = pa.table({"k": pa.array(KEYS, pa.string()), "v": range(12)})


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what pools leave here, and not on the event loop, which may not block."""
    yield
    gc.collect()


@pytest.mark.sample(3)
@ENGINES
def test_directories_are_those_of_spark(tmp_path: Path, engine: str) -> None:
    """A text that is hard to name a directory by is escaped as Spark escapes it."""
    report = WRITERS[engine](TABLE, tmp_path / "out", by=["k"])

    assert directories(tmp_path / "out") == {partition_directory({"k": value}) for value in VALUES}
    assert values_of(tmp_path / "out", "v") == once(range(12))
    assert report.files == len(files(tmp_path / "out"))


@pytest.mark.sample(2)
@ENGINES
def test_modes_of_a_second_write(tmp_path: Path, engine: str) -> None:
    """Appended files have other names; the other modes replace, or refuse."""
    dest, write = tmp_path / "out", WRITERS[engine]
    write(TABLE, dest, by=["k"])
    write(TABLE, dest, by=["k"])
    assert values_of(dest, "v") == once([*range(12), *range(12)])

    with pytest.raises(PreflightError):
        write(TABLE, dest, by=["k"], mode="fail")
    plain = pa.table({"k": ["plain"], "v": [99]})
    write(plain, dest, by=["k"], mode="replace_partitions")
    left = [v for v in range(12) if KEYS[v] != "plain"]
    assert values_of(dest, "v") == once([*left, *left, 99])

    write(plain, dest, mode="overwrite")
    assert values_of(dest, "v") == once([99])
    assert directories(dest) == {"."}


@pytest.mark.parametrize("engine", sorted({*WRITERS} - {"pandas"}))
def test_invalid_columns_are_refused(tmp_path: Path, engine: str) -> None:
    """The error names the column, and nothing is written."""
    for by, text in ((["none"], "no column 'none'"), (["k", "v"], "all columns")):
        with pytest.raises(OptionError, match=text):
            WRITERS[engine](TABLE, tmp_path / "out", by=by)

    assert not (tmp_path / "out").exists() or files(tmp_path / "out") == []


ZONED = pa.timestamp("us", "UTC")
TYPED: dict[str, Any] = {
    "integer": pa.array([1, None, 30], pa.int32()),
    "bool": pa.array([True, None, False]),
    "date": pa.array([date(2026, 1, 2), None, date(1, 1, 1)]),
    "moment": pa.array(
        [datetime(2026, 1, 2, 3, 4, 5), None, datetime(2026, 1, 2, 3, 4, 5, 500000)]
    ),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
    "float": pa.array([1e20, None, 1e-7]),
    "not a number": pa.array([float("nan"), None, float("-inf")]),
    "single": pa.array([0.1, None, 16777216.0], pa.float32()),
    "bytes": pa.array([b"abc", None, "é/".encode()]),
    "nanoseconds": pa.array([10**15, None, 10**15 + 1000], pa.timestamp("ns")),
    "zone": pa.array([1792888200, None, 0], pa.timestamp("s", "UTC")).cast(ZONED),
}
BERLIN = "Europe/Berlin"
REFUSED: dict[str, tuple[Any, str]] = {
    "nanoseconds": (pa.array([10**15, 10**15 + 1], pa.timestamp("ns")), "round it to micro"),
    "hour that repeats": (
        pa.array([1792888200000000, 1792891800000000], ZONED).cast(pa.timestamp("us", BERLIN)),
        "comes twice",
    ),
    "bytes": (pa.array([b"\xff", b"\xfe"]), "not UTF-8"),
}
"""Values of which two would have one directory."""


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", sorted(TYPED))
@pytest.mark.parametrize("engine", ["arrow", "daft", "duckdb", "polars"])
@pytest.mark.sample(3)
def test_values_are_named_as_spark_names_them(tmp_path: Path, engine: str, kind: str) -> None:
    """Each type of a partition column has the text that Spark casts it to."""
    table = pa.table({"k": TYPED[kind], "v": range(3)})
    WRITERS[engine](table, tmp_path / "out", by=["k"])

    wanted = {f"k={escaped(value)}" for value in python_values(TYPED[kind])}
    assert directories(tmp_path / "out") == wanted


@pytest.mark.parametrize("kind", sorted(REFUSED))
@pytest.mark.parametrize("engine", ["arrow", "daft", "duckdb", "polars"])
@pytest.mark.sample(4)
def test_no_two_values_share_a_directory(tmp_path: Path, engine: str, kind: str) -> None:
    """A value that its directory would not lead back to is refused, and nothing is committed."""
    if (engine, kind) == ("duckdb", "hour that repeats"):
        pytest.skip("DuckDB names times in the zone of its session: see tests/test_duckdb.py")
    values, text = REFUSED[kind]
    with pytest.raises(Exception, match=text):
        WRITERS[engine](pa.table({"k": values, "v": range(2)}), tmp_path / "out", by=["k"])

    assert not (tmp_path / "out").exists() or files(tmp_path / "out") == []


@pytest.mark.parametrize("name", ["a b", "größe", "a,b", "{a}"])
@pytest.mark.parametrize("engine", ["arrow", "daft", "duckdb", "polars"])
@pytest.mark.sample(4)
def test_nulls_of_any_column(tmp_path: Path, engine: str, name: str) -> None:
    """Nulls are beside the values of their column, however that is called."""
    table = pa.table({name: ["x", None], "v": range(2)})
    WRITERS[engine](table, tmp_path / "out", by=[name])

    assert directories(tmp_path / "out") == {
        partition_directory({name: value}) for value in ("x", None)
    }


@pytest.mark.every(2)
@ENGINES
@pytest.mark.parametrize("by", [None, ["k"]], ids=["flat", "parts"])
@pytest.mark.sample(3)
def test_any_store_takes_a_table(place: Any, engine: str, by: Any) -> None:
    """On a store without local files, an engine writes through the task's filesystem."""
    url, storage = place
    report = WRITERS[engine](TABLE, url, by=by, storage_options=storage)
    found = tables_at(url, storage)

    folders = {partition_directory({"k": value}) for value in VALUES} if by else {""}
    assert {name.rpartition("/")[0] for name in found} == folders
    assert report.files == len(found)
    assert sorted(v for table in found.values() for v in table["v"].to_pylist()) == [*range(12)]


@pytest.mark.sample(1)
def test_a_task_that_ran_twice_is_committed_once(place: Any) -> None:
    """As after a worker's death: the attempt whose message was accepted is there, on any store."""
    url, storage = place
    with sync.open_job(url, storage_options=storage) as job:
        at = TaskPlace(url, job.job_id, storage_options=storage)
        written = ArrowFiles(("k",))
        tables = [pa.table({"k": [key], "v": [1]}) for key in ("first", "second")]
        commits = [
            at.run(0, partial(written.write, number=0, job_id=job.job_id, data=table))
            for table in tables
        ]
        job.accept(commits[1])

    assert {name.rpartition("/")[0] for name in tables_at(url, storage)} == {"k=second"}


@pytest.mark.every(2)
@pytest.mark.parametrize("writer", sorted(WRITERS))
@pytest.mark.parametrize("reader", sorted(READERS))
@pytest.mark.sample(6)
def test_each_engine_reads_each_table(tmp_path: Path, writer: str, reader: str) -> None:
    """Rows and partitions are the same, whoever has written them."""
    WRITERS[writer](TABLE, tmp_path / "out", by=["k"])
    found = READERS[reader](tmp_path / "out", pa.string()).select(["k", "v"]).to_pylist()

    wanted = {(value or None, number) for number, value in enumerate(KEYS)}
    assert {(row["k"] or None, row["v"]) for row in found} == wanted
    assert len(found) == 12


@pytest.mark.parametrize("writer", sorted({*WRITERS} - {"pandas"}))
@pytest.mark.sample(2)
def test_a_pattern_matches_no_staged_file(tmp_path: Path, writer: str) -> None:
    """Readers of all directories find no row of a job that was refused, on its way or after it."""
    dest, write = tmp_path / "out", WRITERS[writer]
    write(TABLE, dest, by=["k"], job_id="first")
    taken = next(dest.glob("k=plain/*-first-*"))
    taken = taken.with_name(taken.name.replace("first", "other"))
    taken.mkdir()
    with pytest.raises(PreflightError):
        write(TABLE, dest, by=["k"], job_id="other")
    taken.rmdir()

    assert len([*dest.glob("_temporary/**/part-*-other-*")]) == len(files(dest))
    counts = {reader: count(dest) for reader, count in RECURSIVE.items()}
    assert counts == dict.fromkeys(RECURSIVE, 12)


SPARK = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
for table in sys.argv[1:]:
    rows = spark.read.schema("k string, v long").parquet(table).collect()
    print("rows", json.dumps(sorted([row.v, row.k] for row in rows)))
spark.range(12).selectExpr(
    "id as v", f"element_at(array({', '.join(map(repr, VALUES_TO_WRITE))}), int(id % 6) + 1) as k"
).write.partitionBy("k").parquet(OUT)
spark.stop()
"""


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::FutureWarning:ray")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_spark_reads_each_table_and_each_engine_reads_its(tmp_path: Path) -> None:
    """Spark reads the rows that each engine wrote, and each engine those of Spark."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    tables = [tmp_path / engine for engine in [*WRITERS, "ray"]]
    for engine, write in WRITERS.items():
        write(TABLE, tmp_path / engine, by=["k"])
    with running_ray():
        by_ray(TABLE, tmp_path / "ray", by=["k"])
    values = [value for value in VALUES if value is not None]
    program = f"VALUES_TO_WRITE, OUT = {[*values, 'more']!r}, {str(tmp_path / 'spark')!r}\n{SPARK}"
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, tables)],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=150,
    )

    assert done.returncode == 0, done.stderr
    found = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("rows")]
    wanted = sorted([number, value or None] for number, value in enumerate(KEYS))
    assert found == [wanted] * len(tables)
    ours = [*values, "more"]
    for read in READERS.values():
        rows = read(tmp_path / "spark", pa.string()).to_pylist()
        assert {(row["v"], row["k"] or None) for row in rows} == {
            (number, ours[number % 6] or None) for number in range(12)
        }


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.parametrize("engine", ["arrow", "daft", "duckdb", "pandas", "polars"])
def test_a_killed_program_leaves_a_part_only_without_us(tmp_path: Path, engine: str) -> None:
    """Readers see files of an engine's own write that died; of ours they see all or nothing."""
    own, ours = tmp_path / "own", tmp_path / "ours"

    assert write_in_a_program(engine, "own", own, tmp_path / "flag-own") == "killed"
    assert write_in_a_program(engine, "ours", ours, tmp_path / "flag-ours") == "killed"
    assert files(own) != []
    assert files(ours) == []

    assert write_in_a_program(engine, "ours", ours, tmp_path / "flag-ours") == "done"
    assert values_of(ours, "v") == once(range(PROGRAM_ROWS))

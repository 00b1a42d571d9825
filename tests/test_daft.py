"""Daft: Parquet by its own writer and by pyarrow, CSV, partitions, options and errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from asynccommit import OptionError
from asynccommit.errors import PreflightError
from asynccommit.results import JobReport
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.support.engines import ROOT, VALUES, directories, files

daft = pytest.importorskip("daft", reason="Daft is not installed")

from asynccommit.daft import write_csv, write_parquet  # noqa: E402

__all__ = ["adls_emulator_thread"]

KEYS = [VALUES[number % len(VALUES)] for number in range(12)]
TABLE = pa.table({"k": pa.array(KEYS, pa.string()), "v": range(12)})
WRITERS: dict[str, tuple[Callable[..., JobReport], dict[str, Any], Callable[..., Any], str]] = {
    "own": (write_parquet, {}, parquet.read_table, ".snappy.parquet"),
    "arrow": (write_parquet, {"use_dictionary": False}, parquet.read_table, ".snappy.parquet"),
    "csv": (write_csv, {}, csv.read_csv, ".csv"),
}
KINDS = pytest.mark.parametrize("kind", sorted(WRITERS))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what Daft leaves here, and not on the event loop, which may not block."""
    yield
    gc.collect()


def _frame(table: Any = TABLE) -> Any:
    return daft.from_arrow(table)


def _write(kind: str, frame: Any, url: Any, **given: Any) -> JobReport:
    write, options, _, _ = WRITERS[kind]
    return write(frame, url, **options, **given)


def _values(dest: Path, kind: str) -> list[Any]:
    """Return the column ``v`` of all visible rows, sorted."""
    read = WRITERS[kind][2]
    found = [read(str(dest / name), **_plainly(kind))["v"] for name in files(dest)]
    return sorted(v for column in found for v in column.to_pylist())


def _plainly(kind: str) -> dict[str, Any]:
    """Return what has a reader take no columns from directories."""
    return {} if kind == "csv" else {"partitioning": None}


@pytest.mark.parametrize("by", [None, "k"], ids=["flat", "parts"])
@KINDS
@pytest.mark.sample(2)
def test_each_row_is_written_once(tmp_path: Path, kind: str, by: Any) -> None:
    """Files have the suffix of their format, and directories are those of Spark."""
    dest = tmp_path / "a table=100%é"
    report = _write(kind, _frame(), dest, partition_cols=by)

    assert _values(dest, kind) == [*range(12)]
    assert all(name.endswith(WRITERS[kind][3]) for name in files(dest))
    assert all(report.job_id in name for name in files(dest))
    assert len(directories(dest)) == (len(VALUES) - 1 if by else 1)
    assert report.files == len(files(dest))


@KINDS
@pytest.mark.sample(1)
def test_modes_of_a_second_write(tmp_path: Path, kind: str) -> None:
    """Appended files have other names; the other modes replace, or refuse."""
    dest = tmp_path / "out"
    first, more = pa.table({"k": ["x", "y"], "v": [0, 1]}), pa.table({"k": ["x"], "v": [9]})
    for _ in range(2):
        _write(kind, _frame(first), dest, partition_cols=["k"])
    assert _values(dest, kind) == [0, 0, 1, 1]

    with pytest.raises(PreflightError):
        _write(kind, _frame(more), dest, partition_cols=["k"], mode="error")
    _write(kind, _frame(more), dest, partition_cols=["k"], mode="replace_partitions")
    assert _values(dest, kind) == [1, 1, 9]
    _write(kind, _frame(more), dest, mode="overwrite")
    assert _values(dest, kind) == [9]


@KINDS
@pytest.mark.sample(1)
def test_columns_of_partitions_are_nested_in_order(tmp_path: Path, kind: str) -> None:
    """Each column is a level; nulls and empty texts share the default directory."""
    table = pa.table({"path": ["x", None, ""], "b": [1, 2, 2], "v": [0, 1, 2]})
    _write(kind, _frame(table), tmp_path / "out", partition_cols=["b", "path"])

    null = "__HIVE_DEFAULT_PARTITION__"
    assert directories(tmp_path / "out") == {"b=1/path=x", f"b=2/path={null}"}
    assert _values(tmp_path / "out", kind) == [0, 1, 2]


def test_names_of_columns_are_escaped(tmp_path: Path) -> None:
    """Directories of Daft's own writer get Spark's names at each level."""
    table = pa.table({"a b/c": ["x y"], "d=e": ["f:g"], "v": [0]})
    report = write_parquet(_frame(table), tmp_path / "out", partition_cols=["a b/c", "d=e"])

    assert directories(tmp_path / "out") == {"a b%2Fc=x y/d%3De=f%3Ag"}
    assert report.files == 1


@pytest.mark.parametrize(
    "kind, arguments, writer",
    [
        ("own", {}, "parquet-rs"),
        ("own", {"partition_cols": "k"}, "parquet-rs"),
        ("arrow", {}, "parquet-cpp-arrow"),
        ("arrow", {"partition_cols": "k"}, "parquet-cpp-arrow"),
    ],
)
@pytest.mark.sample(2)
def test_daft_writes_parquet_itself(
    tmp_path: Path, kind: str, arguments: dict[str, Any], writer: str
) -> None:
    """Daft's own writer makes local files; options of pyarrow need pyarrow's."""
    _write(kind, _frame(), tmp_path / "out", **arguments)

    made = [parquet.read_metadata(tmp_path / "out" / name) for name in files(tmp_path / "out")]
    assert {one.created_by.split()[0] for one in made} == {writer}


@pytest.mark.parametrize("codec", ["zstd", "gzip", "none", "lz4"])
@pytest.mark.sample(1)
def test_a_compression_is_part_of_the_name(tmp_path: Path, codec: str) -> None:
    """Files have the compression that their name says."""
    write_parquet(_frame(), tmp_path / "out", compression=codec)

    for name in files(tmp_path / "out"):
        assert name.endswith(".parquet" if codec == "none" else f".{codec}.parquet")
        group = parquet.read_metadata(tmp_path / "out" / name).row_group(0)
        wanted = {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
        assert group.column(0).compression == wanted


@KINDS
@pytest.mark.sample(1)
def test_an_account_takes_each_format(adls_emulator_thread: Any, kind: str) -> None:
    """On a store without local files pyarrow writes, in as many tasks as Daft has writes."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    storage = {"connection_string": emulator.connection_string}

    assert _write(kind, _frame(), url, storage_options=storage).files == 1
    parts = _write(kind, _frame(), url, storage_options=storage, partition_cols="k")
    assert parts.files == len(VALUES) - 1


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"partition_cols": "none"}, "no column 'none'"),
        ({"partition_cols": ["k", "k"]}, "each column once"),
        ({"partition_cols": ["k", "v"]}, "all columns are partition columns"),
        ({"mode": "replace"}, "expected one of"),
        ({"row_group": 3}, "options of (parquet|csv) files"),
    ],
    ids=str,
)
@KINDS
@pytest.mark.sample(4)
def test_invalid_arguments_are_refused(
    tmp_path: Path, kind: str, arguments: dict[str, Any], text: str
) -> None:
    """The error names the argument, and nothing is written."""
    with pytest.raises(OptionError, match=text):
        _write(kind, _frame(), tmp_path / "out", **arguments)

    assert not (tmp_path / "out").exists()


@KINDS
@pytest.mark.sample(1)
def test_a_plan_that_fails_leaves_nothing(tmp_path: Path, kind: str) -> None:
    """The error of Daft is raised, and the job is aborted."""

    def fail(value: int) -> int:
        raise ConnectionError("the source went away")

    failing: Any = daft.func(fail, return_dtype=daft.DataType.int64())
    frame = _frame().with_column("v", failing(daft.col("v")))
    with pytest.raises(Exception, match="the source went away"):
        _write(kind, frame, tmp_path / "out")

    assert not (tmp_path / "out").exists()


ON_RAY = """
import sys
import daft, pyarrow
from asynccommit.daft import write_parquet
from tests.support.engines import VALUES, running_ray

if __name__ == "__main__":
    keys = pyarrow.array([VALUES[number % len(VALUES)] for number in range(120)], pyarrow.string())
    with running_ray():
        daft.set_runner_ray(noop_if_initialized=True)
        frame = daft.from_arrow(pyarrow.table({"k": keys, "v": range(120)})).into_partitions(3)
        report = write_parquet(frame, sys.argv[1], partition_cols="k")
        print("tasks", len(report.tasks), "files", report.files)
"""


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.timeout(180)
def test_workers_of_ray_write_as_tasks(tmp_path: Path) -> None:
    """On Daft's Ray runner each write is a task, and the program commits all of them."""
    pytest.importorskip("ray", reason="Ray is not installed")
    done = subprocess.run(
        [sys.executable, "-c", ON_RAY, str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=150,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert _values(tmp_path / "out", "arrow") == [*range(120)]
    tasks = int(done.stdout.partition("tasks ")[2].split()[0])
    assert tasks > 1, done.stdout
    assert f"files {len(files(tmp_path / 'out'))}" in done.stdout

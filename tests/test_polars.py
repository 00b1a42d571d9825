"""polars: each sink, with and without partitions, its options and its errors."""

from __future__ import annotations

import gc
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit import OptionError, UnsupportedError
from asynccommit.errors import PreflightError
from asynccommit.polars import sink_csv, sink_ipc, sink_parquet
from asynccommit.results import JobReport
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.support.engines import VALUES, directories, files

polars = pytest.importorskip("polars", reason="polars is not installed")

__all__ = ["adls_emulator_thread"]

KEYS = [VALUES[number % len(VALUES)] for number in range(12)]
FRAME = polars.LazyFrame({"k": KEYS, "v": range(12)})
SINKS: dict[str, tuple[Callable[..., JobReport], Callable[..., Any], str]] = {
    "parquet": (sink_parquet, polars.read_parquet, ".zstd.parquet"),
    "csv": (sink_csv, polars.read_csv, ".csv"),
    "ipc": (sink_ipc, polars.read_ipc, ".arrow"),
}
KINDS = pytest.mark.parametrize("kind", sorted(SINKS))


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what polars leaves here, and not on the event loop, which may not block."""
    yield
    gc.collect()


def _values(dest: Path, kind: str) -> list[Any]:
    """Return the column ``v`` of all visible rows, sorted."""
    read = SINKS[kind][1]
    return sorted(v for name in files(dest) for v in read(dest / name)["v"].to_list())


@pytest.mark.parametrize("by", [None, "k"], ids=["flat", "parts"])
@KINDS
@pytest.mark.sample(2)
def test_each_sink_writes_each_row_once(tmp_path: Path, kind: str, by: Any) -> None:
    """Files have the suffix of their format, and directories are those of Spark."""
    sink, _, suffix = SINKS[kind]
    report = sink(FRAME, tmp_path / "out", partition_by=by)

    assert _values(tmp_path / "out", kind) == [*range(12)]
    assert all(name.endswith(suffix) for name in files(tmp_path / "out"))
    assert len(directories(tmp_path / "out")) == (len(VALUES) - 1 if by else 1)
    assert report.files == len(files(tmp_path / "out"))


@KINDS
@pytest.mark.sample(1)
def test_modes_of_a_second_sink(tmp_path: Path, kind: str) -> None:
    """Appended files have other names; the other modes replace, or refuse."""
    dest, sink = tmp_path / "out", SINKS[kind][0]
    first = polars.DataFrame({"k": ["x", "y"], "v": [0, 1]})
    more = polars.DataFrame({"k": ["x"], "v": [9]})
    for _ in range(2):
        sink(first, dest, partition_by=["k"])
    assert _values(dest, kind) == [0, 0, 1, 1]

    with pytest.raises(PreflightError):
        sink(more, dest, partition_by=["k"], mode="error")
    sink(more, dest, partition_by=["k"], mode="replace_partitions")
    assert _values(dest, kind) == [1, 1, 9]
    sink(more, dest, partition_by=["k"], mode="overwrite")
    assert _values(dest, kind) == [9]


@KINDS
@pytest.mark.sample(1)
def test_columns_of_partitions_are_nested_in_order(tmp_path: Path, kind: str) -> None:
    """Each column is a level; nulls and empty texts share the default directory."""
    frame = polars.LazyFrame({"a": ["x", None, ""], "b": [1, 2, 2], "v": [0, 1, 2]})
    SINKS[kind][0](frame, tmp_path / "out", partition_by=["b", "a"])

    null = "__HIVE_DEFAULT_PARTITION__"
    assert directories(tmp_path / "out") == {"b=1/a=x", f"b=2/a={null}"}
    assert _values(tmp_path / "out", kind) == [0, 1, 2]


@KINDS
@pytest.mark.sample(1)
def test_files_may_be_limited_in_size(tmp_path: Path, kind: str) -> None:
    """``max_rows_per_file`` makes several files, with partitions and without."""
    SINKS[kind][0](FRAME, tmp_path / "flat", max_rows_per_file=5)
    SINKS[kind][0](FRAME, tmp_path / "parts", partition_by="k", max_rows_per_file=1)

    assert (len(files(tmp_path / "flat")), len(files(tmp_path / "parts"))) == (3, 12)
    assert _values(tmp_path / "flat", kind) == _values(tmp_path / "parts", kind) == [*range(12)]


def test_options_of_a_method_are_passed_on(tmp_path: Path) -> None:
    """The options of polars reach its writer; a compression is part of the name."""
    sink_csv(FRAME, tmp_path / "csv", separator=";", compression="gzip")
    (name,) = files(tmp_path / "csv")
    assert name.endswith(".csv.gz")
    text = gzip.decompress((tmp_path / "csv" / name).read_bytes()).decode()
    assert text.startswith("k;v\n")

    sink_parquet(FRAME, tmp_path / "parquet", compression="snappy", row_group_size=4)
    (name,) = files(tmp_path / "parquet")
    assert name.endswith(".snappy.parquet")


@KINDS
@pytest.mark.sample(1)
def test_an_account_takes_each_sink(adls_emulator_thread: Any, kind: str) -> None:
    """On a store without local files polars writes to open files of the task."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    storage = {"connection_string": emulator.connection_string}
    sink = SINKS[kind][0]

    assert sink(FRAME, url, storage_options=storage).files == 1
    parts = sink(FRAME, url, storage_options=storage, partition_by="k")
    assert parts.files == len(VALUES)  # a null and an empty text are two files of one directory


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"mkdir": True}, "mkdir is not an argument here: leave it out"),
        ({"lazy": True}, "lazy is not an argument here: leave it out"),
        ({"credential_provider": None}, "credential_provider .* use storage_options"),
        ({"partition_by": "none"}, "no column 'none'"),
        ({"partition_by": ["k", "k"]}, "each column once"),
        ({"partition_by": ["k", "v"]}, "all columns are partition columns"),
        ({"mode": "replace"}, "expected one of"),
    ],
    ids=str,
)
@KINDS
@pytest.mark.sample(4)
def test_invalid_arguments_are_refused(
    tmp_path: Path, kind: str, arguments: dict[str, Any], text: str
) -> None:
    """The error names the argument and the remedy, and nothing is written."""
    with pytest.raises(OptionError, match=text):
        SINKS[kind][0](FRAME, tmp_path / "out", **arguments)

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("by", [None, "k"], ids=["flat", "parts"])
@KINDS
@pytest.mark.sample(2)
def test_a_query_that_fails_leaves_nothing(tmp_path: Path, kind: str, by: Any) -> None:
    """The error of polars is raised, and the job is aborted."""
    failing = FRAME.with_columns(polars.col("k").cast(polars.Int64))
    with pytest.raises(polars.exceptions.InvalidOperationError):
        SINKS[kind][0](failing, tmp_path / "out", partition_by=by)

    assert not (tmp_path / "out").exists()


def test_many_files_need_a_newer_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A polars that cannot write many files writes one, and partitions are refused."""
    monkeypatch.delattr(polars, "PartitionBy")

    assert sink_parquet(FRAME, tmp_path / "out").files == 1
    with pytest.raises(UnsupportedError, match=r"has no PartitionBy.* upgrade it"):
        sink_parquet(FRAME, tmp_path / "out2", partition_by="k")
    assert not (tmp_path / "out2").exists()

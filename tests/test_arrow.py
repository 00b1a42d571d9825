"""pyarrow: kinds of data, formats, partitionings and modes of ``write_dataset``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asynccommit import OptionError
from asynccommit.arrow import write_dataset
from asynccommit.errors import PreflightError
from tests.support.engines import VALUES, directories, files, once, table_of, values_of

KEYS = [VALUES[number % len(VALUES)] for number in range(12)]
TABLE = pa.table({"k": pa.array(KEYS, pa.string()), "v": range(12)})
BATCHES = TABLE.to_batches(max_chunksize=5)
FOLDERS = {
    "k=a b%2Fc%3Ad%3Dé",
    "k=__HIVE_DEFAULT_PARTITION__",
    "k=%7B%5B%5E%5D}%25%23",
    "k=x+y&z",
    "k=plain",
}

KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "table": lambda: {"data": TABLE},
    "tables": lambda: {"data": [TABLE.slice(0, 7), TABLE.slice(7)]},
    "batch": lambda: {"data": TABLE.combine_chunks().to_batches()[0]},
    "batches": lambda: {"data": BATCHES},
    "iterator": lambda: {"data": iter(BATCHES), "schema": TABLE.schema},
    "reader": lambda: {"data": TABLE.to_reader(5)},
    "dataset": lambda: {"data": ds.dataset(TABLE)},
    "scanner": lambda: {"data": ds.dataset(TABLE).scanner()},
    "pandas": lambda: {"data": TABLE.to_pandas()},
}


@pytest.mark.parametrize("by", [None, ["k"]], ids=["flat", "parts"])
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.sample(5)
def test_each_kind_of_data_is_written(tmp_path: Path, kind: str, by: Any) -> None:
    """All that pyarrow takes is taken, and each row is there once."""
    report = write_dataset(**KINDS[kind](), url=tmp_path / "out", partitioning=by)

    assert values_of(tmp_path / "out", "v") == once(range(12))
    assert directories(tmp_path / "out") == (FOLDERS if by else {"."})
    assert report.files == len(files(tmp_path / "out"))


def test_partitions_have_large_row_groups(tmp_path: Path) -> None:
    """Rows of a partition are gathered from all batches, in their order."""
    rows = pa.table({"k": [0, 1, 2, 3] * 10_000, "v": range(40_000)})

    write_dataset(rows.to_reader(1_000), tmp_path / "out", partitioning=["k"])

    for number, path in enumerate(sorted(files(tmp_path / "out"))):
        file = parquet.ParquetFile(tmp_path / "out" / path)
        assert file.num_row_groups == 1
        assert file.read()["v"].to_pylist() == list(range(number, 40_000, 4))


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from("ab"))),
    at_once=st.integers(1, 8),
    limit=st.sampled_from(["_ROWS", "_BYTES"]),
)
def test_any_rows_go_to_their_partitions(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], at_once: int, limit: str
) -> None:
    """However rows are gathered, each is in the directory of its values."""
    columns = {"n": [row[0] for row in rows], "k": [row[1] for row in rows]}
    schema = pa.schema({"n": pa.int32(), "k": pa.string(), "v": pa.int64()})
    table = pa.table({**columns, "v": range(len(rows))}, schema)
    out = tmp_path_factory.mktemp("any") / "out"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"asynccommit.tabular.arrow_files.{limit}", at_once)
        write_dataset(table.to_reader(5), out, partitioning=["n", "k"])

    expected: dict[str, list[int]] = {}
    for place, (number, letter) in enumerate(rows):
        name = "__HIVE_DEFAULT_PARTITION__" if number is None else number
        expected.setdefault(f"n={name}/k={letter}", []).append(place)
    found = {
        path.rpartition("/")[0]: sorted(parquet.ParquetFile(out / path).read()["v"].to_pylist())
        for path in files(out)
    }
    assert found == expected


@pytest.mark.parametrize(
    "data",
    [BATCHES[0].to_pydict(), iter(BATCHES), [], 7],
    ids=lambda data: type(data).__name__,
)
def test_other_data_is_refused(tmp_path: Path, data: Any) -> None:
    """The error names the type and what is expected, and nothing is written."""
    with pytest.raises(OptionError, match=f"data is a {type(data).__name__}: expected tables"):
        write_dataset(data, tmp_path / "out")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "form, name, suffix",
    [
        ("parquet", "parquet", ".parquet"),
        (ds.ParquetFileFormat(), "parquet", ".parquet"),
        ("csv", "csv", ".csv"),
        (ds.CsvFileFormat(), "csv", ".csv"),
        ("ipc", "ipc", ".arrow"),
        ("arrow", "ipc", ".arrow"),
        (ds.IpcFileFormat(), "ipc", ".arrow"),
    ],
    ids=["parquet", "ParquetFileFormat", "csv", "CsvFileFormat", "ipc", "arrow", "IpcFileFormat"],
)
@pytest.mark.sample(3)
def test_each_format_is_written(tmp_path: Path, form: Any, name: str, suffix: str) -> None:
    """A format may be a name or an object; its files have its suffix and can be read."""
    write_dataset(TABLE, tmp_path / "out", format=form, partitioning=["k"])

    found = files(tmp_path / "out")
    assert {Path(each).suffix for each in found} == {suffix}
    read = ds.dataset([str(tmp_path / "out" / each) for each in found], format=name).to_table()
    assert sorted(read["v"].to_pylist()) == [*range(12)]


def test_options_of_files_are_passed_on(tmp_path: Path) -> None:
    """The options of a format reach its writer, and those of the dataset too."""
    made = ds.ParquetFileFormat().make_write_options(compression="zstd")
    limits: dict[str, Any] = {"max_rows_per_file": 5, "max_rows_per_group": 5}
    report = write_dataset(
        TABLE, tmp_path / "out", file_options=made, preserve_order=True, **limits
    )

    groups = [
        parquet.read_metadata(tmp_path / "out" / name).row_group(0)
        for name in files(tmp_path / "out")
    ]
    assert {group.column(0).compression for group in groups} == {"ZSTD"}
    assert [group.num_rows for group in groups] == [5, 5, 2]
    assert report.files == 3


@pytest.mark.parametrize(
    "partitioning",
    [
        "k",
        ["k"],
        pa.schema([("k", pa.string())]),
        ds.partitioning(pa.schema([("k", pa.string())]), flavor="hive"),
    ],
    ids=["name", "names", "schema", "hive"],
)
@pytest.mark.sample(2)
def test_partitionings_name_columns(tmp_path: Path, partitioning: Any) -> None:
    """Names, a schema and a Hive partitioning give the same directories."""
    write_dataset(TABLE, tmp_path / "out", partitioning=partitioning)

    assert directories(tmp_path / "out") == FOLDERS


def test_columns_of_partitions_are_nested_in_order(tmp_path: Path) -> None:
    """Each column is a level; a null of either is its default directory."""
    table = pa.table({"a": ["x", None, "x"], "b": [1, 2, None], "v": [0, 1, 2]})
    write_dataset(table, tmp_path / "out", partitioning=["b", "a"])

    null = "__HIVE_DEFAULT_PARTITION__"
    assert directories(tmp_path / "out") == {"b=1/a=x", f"b=2/a={null}", f"b={null}/a=x"}
    assert table_of(tmp_path / "out").column_names == ["v"]


MODES = {
    None: "refused",
    "error": "refused",
    "overwrite_or_ignore": [0, 1, 9],
    "delete_matching": [1, 9],
}


@pytest.mark.parametrize("behavior", MODES, ids=str)
@pytest.mark.sample(2)
def test_existing_data_behavior_is_a_mode(tmp_path: Path, behavior: Any) -> None:
    """pyarrow's words refuse, append, or replace the directories that receive files."""
    dest = tmp_path / "out"
    write_dataset(pa.table({"k": ["x", "y"], "v": [0, 1]}), dest, partitioning=["k"])
    more = pa.table({"k": ["x"], "v": [9]})

    if MODES[behavior] == "refused":
        with pytest.raises(PreflightError):
            write_dataset(more, dest, partitioning=["k"], existing_data_behavior=behavior)
        assert values_of(dest, "v") == once([0, 1])
        return
    write_dataset(more, dest, partitioning=["k"], existing_data_behavior=behavior)
    assert values_of(dest, "v") == once(MODES[behavior])


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"existing_data_behavior": "replace"}, "existing_data_behavior is 'replace': expected"),
        ({"existing_data_behavior": "error", "mode": "fail"}, "both given: expected one"),
        ({"mode": "replace"}, "expected one of"),
        ({"format": "orc"}, "format 'orc': expected one of parquet"),
        ({"partitioning": ["none"]}, "no column 'none'"),
        ({"partitioning": ["k", "k"]}, "each column once"),
        ({"partitioning": ["k", "v"]}, "all columns are partition columns"),
        (
            {"partitioning": ds.partitioning(pa.schema([("k", pa.string())]))},
            "DirectoryPartitioning: expected names, or a HivePartitioning",
        ),
        ({"basename_template": "x-{i}"}, "basename_template is not an argument here: expected"),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else None,
)
@pytest.mark.sample(4)
def test_invalid_arguments_are_refused(
    tmp_path: Path, arguments: dict[str, Any], text: str
) -> None:
    """The error names the argument and what is expected, and nothing is written."""
    with pytest.raises(OptionError, match=text):
        write_dataset(TABLE, tmp_path / "out", **arguments)

    assert not (tmp_path / "out").exists() or files(tmp_path / "out") == []


def test_a_reader_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """The error of the data is raised, and the job is aborted."""

    def batches() -> Any:
        yield BATCHES[0]
        raise ConnectionError("the source went away")

    with pytest.raises(ConnectionError, match="went away"):
        write_dataset(batches(), tmp_path / "out", schema=TABLE.schema, partitioning=["k"])

    assert not (tmp_path / "out").exists()

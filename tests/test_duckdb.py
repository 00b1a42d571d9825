"""DuckDB: each format of ``copy``, with and without partitions, its options and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from asynccommit import OptionError
from asynccommit.duckdb import copy
from asynccommit.errors import PreflightError
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.support.engines import VALUES, directories, files

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

__all__ = ["adls_emulator_thread"]

READ = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}
FORMS = pytest.mark.parametrize("form", sorted(READ))


@pytest.fixture
def connection() -> Iterator[Any]:
    """Return a connection with a table of 12 rows, whose keys are hard to name directories by."""
    with duckdb.connect() as made:
        made.execute("CREATE TABLE rows (k VARCHAR, v BIGINT)")
        rows = [(VALUES[number % len(VALUES)], number) for number in range(12)]
        made.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        yield made


def _values(dest: Path, form: str) -> list[Any]:
    """Return the column ``v`` of all visible rows, sorted."""
    names = [str(dest / name) for name in files(dest)]
    if not names:
        return []
    with duckdb.connect() as reading:
        text = f"SELECT v FROM {READ[form]}(?, hive_partitioning = false) ORDER BY v"
        return [row[0] for row in reading.execute(text, [names]).fetchall()]


@pytest.mark.parametrize("by", [None, "k"], ids=["flat", "parts"])
@FORMS
@pytest.mark.sample(2)
def test_each_format_writes_each_row_once(
    tmp_path: Path, connection: Any, form: str, by: Any
) -> None:
    """Files have the suffix of their format, and directories are those of Spark."""
    report = copy(connection, "FROM rows;", tmp_path / "out", partition_by=by, format=form)

    assert _values(tmp_path / "out", form) == [*range(12)]
    assert {Path(name).suffix for name in files(tmp_path / "out")} == {f".{form}"}
    assert len(directories(tmp_path / "out")) == (len(VALUES) - 1 if by else 1)
    assert report.files == len(files(tmp_path / "out"))


@FORMS
@pytest.mark.sample(1)
def test_modes_of_a_second_copy(tmp_path: Path, connection: Any, form: str) -> None:
    """Appended files have other names; the other modes replace, or refuse."""
    dest = tmp_path / "out"
    given: dict[str, Any] = {"partition_by": "k", "format": form}
    for _ in range(2):
        copy(connection, "SELECT * FROM (VALUES ('x', 0), ('y', 1)) t(k, v)", dest, **given)
    assert _values(dest, form) == [0, 0, 1, 1]

    more = "SELECT 'x' AS k, 9 AS v"
    with pytest.raises(PreflightError):
        copy(connection, more, dest, mode="error", **given)
    copy(connection, more, dest, mode="replace_partitions", **given)
    assert _values(dest, form) == [1, 1, 9]
    copy(connection, more, dest, mode="overwrite", **given)
    assert _values(dest, form) == [9]


def test_columns_of_partitions_are_nested_in_order(tmp_path: Path, connection: Any) -> None:
    """Each column is a level; nulls and empty texts share the default directory."""
    rows = "(VALUES ('x', 1.5::DOUBLE, 0), ('', 'nan'::DOUBLE, 1), (NULL, NULL, 2)) t(a, b, v)"
    copy(connection, f"SELECT * FROM {rows}", tmp_path / "out", partition_by=["b", "a"])

    null = "__HIVE_DEFAULT_PARTITION__"
    assert directories(tmp_path / "out") == {
        "b=1.5/a=x",
        f"b=NaN/a={null}",
        f"b={null}/a={null}",
    }
    assert _values(tmp_path / "out", "parquet") == [0, 1, 2]


def test_columns_with_odd_names(tmp_path: Path, connection: Any) -> None:
    """A quote, a space and a slash in the name of a column are those of the directory."""
    query = """SELECT 'x' AS "a ""b/c", 1 AS v"""
    copy(connection, query, tmp_path / "out", partition_by='a "b/c')

    assert directories(tmp_path / "out") == {"a %22b%2Fc=x"}


def test_options_of_copy_are_passed_on(tmp_path: Path, connection: Any) -> None:
    """Texts, numbers and truth values reach DuckDB."""
    copy(connection, "FROM rows", tmp_path / "out", compression="zstd", row_group_size=2048)
    (name,) = files(tmp_path / "out")
    group = parquet.read_metadata(tmp_path / "out" / name).row_group(0)
    assert group.column(0).compression == "ZSTD"

    copy(connection, "FROM rows", tmp_path / "csv", format="csv", header=False, delimiter="|")
    (name,) = files(tmp_path / "csv")
    assert (tmp_path / "csv" / name).read_text().splitlines()[-1] == "plain|11"


@FORMS
@pytest.mark.sample(1)
def test_an_account_takes_each_format(
    adls_emulator_thread: Any, connection: Any, form: str
) -> None:
    """On a store without local files DuckDB writes through the task, which it then forgets."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    storage = {"connection_string": emulator.connection_string}
    given: dict[str, Any] = {"format": form, "storage_options": storage}

    assert copy(connection, "FROM rows", url, **given).files == 1
    parts = copy(connection, "FROM rows", url, partition_by="k", **given)
    assert parts.files == len(VALUES) - 1
    assert connection.list_filesystems() == []


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"format": "orc"}, "format is 'orc': expected one of parquet, csv, json"),
        ({"overwrite": True}, "overwrite is not an argument here: use mode='overwrite'"),
        ({"APPEND": True}, "append is not an argument here: use mode='append'"),
        ({"filename_pattern": "x"}, "filename_pattern is not an argument here: leave it out"),
        ({"a b": 1}, "copy option 'a b': expected the name of an option"),
        ({"compression": None}, "copy option None: expected a text, a number"),
        ({"partition_by": "none"}, "no column 'none'"),
        ({"partition_by": ["k", "k"]}, "each column once"),
        ({"partition_by": ["k", "v"]}, "all columns are partition columns"),
        ({"mode": "replace"}, "expected one of"),
    ],
    ids=str,
)
@pytest.mark.sample(4)
def test_invalid_arguments_are_refused(
    tmp_path: Path, connection: Any, arguments: dict[str, Any], text: str
) -> None:
    """The error names the argument and the remedy, and nothing is written."""
    with pytest.raises(OptionError, match=text):
        copy(connection, "FROM rows", tmp_path / "out", **arguments)

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("by", [None, "k"], ids=["flat", "parts"])
@pytest.mark.sample(1)
def test_a_query_that_fails_leaves_nothing(tmp_path: Path, connection: Any, by: Any) -> None:
    """The error of DuckDB is raised, and the job is aborted."""
    with pytest.raises(duckdb.Error, match="the source went away"):
        query = "SELECT k, CASE WHEN v > 8 THEN error('the source went away') ELSE v END AS v"
        copy(connection, f"{query} FROM rows", tmp_path / "out", partition_by=by)

    assert not (tmp_path / "out").exists()


def test_an_hour_that_comes_twice(tmp_path: Path, connection: Any) -> None:
    """Times are named in the zone of the session, and the second of two equal names is refused."""
    query = "SELECT to_timestamp(1792888200 + 3600 * (v % {})) AS at, v FROM rows"
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    copy(connection, query.format(1), tmp_path, partition_by="at")
    assert directories(tmp_path) == {"at=2026-10-25 02%3A30%3A00"}

    with pytest.raises(OptionError, match="its hour comes twice"):
        copy(connection, query.format(2), tmp_path, partition_by="at")
    with pytest.raises(OptionError, match="'at' of type INTERVAL"):
        copy(connection, "SELECT INTERVAL 1 day AS at, v FROM rows", tmp_path, partition_by="at")
    assert len(files(tmp_path)) == 1

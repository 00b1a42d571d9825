"""Files of one task: how rows are parted, how many files are open, how large they get."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import UnsupportedError
from asynccommit.formats.partition_names import partition_value
from asynccommit.spark.datasource.encoders import footer
from asynccommit.spark.datasource.files import TableFiles
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.rows import part_rows


class Folder:
    """Files in memory, and how many of them were open at one time."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.open = self.most = 0

    def begin(self, name: str) -> Any:
        """Begin a file."""
        folder = self
        folder.open += 1
        folder.most = max(folder.most, folder.open)

        class File(io.BytesIO):
            def close(self) -> None:
                if not self.closed:
                    folder.files[name] = self.getvalue()
                    folder.open -= 1
                super().close()

            def abort(self) -> None:
                folder.open -= 1
                super().close()

        return File()

    def rows(self) -> list[dict[str, Any]]:
        """Return what all files hold."""
        return [row for data in self.files.values() for row in table_of(data).to_pylist()]


def table_of(data: bytes) -> pa.Table:
    """Return what a Parquet file holds."""
    return pq.read_table(pa.BufferReader(data))


def write(
    folder: Folder, batches: list[pa.RecordBatch], *, whole: bool = False, **more: Any
) -> Any:
    """Write batches as one task does, and return the files."""
    options = SourceOptions("/t", **more)
    inside = [f for f in batches[0].schema if f.name not in options.partition_by]
    files = TableFiles(options, pa.schema(inside), 0, "tag", folder.begin, whole=whole)
    for batch in batches:
        files.write(batch)
    files.close()
    return files


def batch(start: int, count: int, parts: int) -> pa.RecordBatch:
    """Return rows whose column ``p`` has so many values."""
    ids = range(start, start + count)
    return pa.RecordBatch.from_pydict({"id": list(ids), "p": [i % parts for i in ids]})


def test_files_have_all_rows_and_know_their_sizes() -> None:
    """Each row is in the file of its partition, and the sizes are told."""
    folder = Folder()

    files = write(folder, [batch(0, 50, 3), batch(50, 50, 3)], partition_by=("p",))

    assert {name: len(data) for name, data in folder.files.items()} == files.written
    assert sorted(files.written) == [f"p={p}/part-00000-tag.c000.snappy.parquet" for p in range(3)]
    assert table_of(folder.files["p=1/part-00000-tag.c000.snappy.parquet"])["id"].to_pylist() == [
        *range(1, 100, 3)
    ]


def test_footers_say_what_sparks_own_say() -> None:
    """A Parquet file has Spark's schema and version in its footer, and no schema of Arrow's."""
    folder = Folder()
    said = footer('{"type":"struct","fields":[]}', "4.3.0")
    schema = pa.schema([("id", pa.int64())], metadata=said)
    files = TableFiles(SourceOptions("/t"), schema, 0, "tag", folder.begin)
    files.write(pa.RecordBatch.from_pydict({"id": [1]}))
    files.close()

    (data,) = folder.files.values()
    assert pq.read_metadata(pa.BufferReader(data)).metadata == said


def orc(column: Any) -> Any:
    """Return what an ORC file gives back that was written of one column."""
    folder = Folder()
    table = pa.table({"a": column})
    files = TableFiles(SourceOptions("/t", file_format="orc"), table.schema, 0, "tag", folder.begin)
    for rows in table.to_batches():
        files.write(rows)
    files.close()
    (data,) = folder.files.values()
    return pa.orc.read_table(pa.BufferReader(data))["a"].to_pylist()


OLD = dt.date(1582, 10, 14)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, OLD]),
        pa.array([[OLD], None]),
        pa.array([{"x": 1, "d": OLD}]),
        pa.array([[(1, OLD)]], pa.map_(pa.int64(), pa.date32())),
        pa.array([[(OLD, 1)]], pa.map_(pa.date32(), pa.int64())),
        pa.array([[[{"d": [OLD]}]]]),
    ],
)
def test_old_days_in_orc(column: Any) -> None:
    """Days that Spark would read otherwise from an ORC file are refused, wherever they are."""
    with pytest.raises(UnsupportedError, match=r"'a' has the day 1582-10-14"):
        orc(column)


def test_days_in_orc() -> None:
    """Days from 1582-10-15 are written to ORC, and what a slice leaves out is not looked at."""
    first = dt.date(1582, 10, 15)
    kind = pa.map_(pa.int64(), pa.date32())

    assert orc(pa.array([first, None])) == [first, None]
    assert orc(pa.array([[(1, OLD)], [(2, first)]], kind)[1:]) == [[(2, first)]]
    assert orc(pa.array([[OLD], [first]])[1:]) == [[first]]


def test_no_rows_in_orc() -> None:
    """An ORC file without rows is one, and has its columns."""
    assert orc(pa.array([], pa.date32())) == []


def test_bound_on_open_files() -> None:
    """No more files are open than allowed: the one least recently written makes way."""
    folder = Folder()
    batches = [batch(i * 40, 40, 20) for i in range(5)]

    write(folder, batches, partition_by=("p",), open_files=4, row_group_rows=2, memory=1)

    assert folder.most == 4
    assert sorted(row["id"] for row in folder.rows()) == [*range(200)]
    assert len(folder.files) > 20  # a partition that comes again has a new file
    assert "p=0/part-00000-tag.c001.snappy.parquet" in folder.files


def test_least_recently_written_makes_way() -> None:
    """A file that is written to all the time stays open."""
    folder = Folder()
    keys = [value for i in range(10) for value in (0, i + 1)]
    batches = [pa.RecordBatch.from_pydict({"id": [i], "p": [key]}) for i, key in enumerate(keys)]

    write(folder, batches, partition_by=("p",), open_files=2, row_group_rows=1, memory=1)

    assert [name for name in folder.files if name.startswith("p=0/")] == [
        "p=0/part-00000-tag.c000.snappy.parquet"
    ]


def test_rows_and_row_groups() -> None:
    """A row group has the wanted rows, a file no more than allowed."""
    folder = Folder()

    write(folder, [batch(0, 70, 1), batch(70, 30, 1)], row_group_rows=25, file_rows=60)

    names = [f"part-00000-tag-c00{n}.snappy.parquet" for n in range(2)]
    groups = [pq.ParquetFile(pa.BufferReader(folder.files[name])).metadata for name in names]
    assert [g.num_rows for g in groups] == [60, 40]
    assert [groups[0].row_group(i).num_rows for i in range(3)] == [25, 25, 10]


def test_size_of_files() -> None:
    """A file that has reached its size is closed, and the next one begun."""
    folder = Folder()
    batches = [batch(i * 1000, 1000, 1000) for i in range(10)]

    write(folder, batches, row_group_rows=1000, file_bytes=10_000, compression="none")

    assert len(folder.files) > 2
    assert all(10_000 <= len(data) < 40_000 for data in folder.files.values())


def test_memory_of_files_that_are_whole() -> None:
    """Where open files are in memory, the largest are finished when there is too much of them."""
    folder = Folder()
    batches = [batch(i * 1000, 1000, 2) for i in range(20)]
    more: dict[str, Any] = {"row_group_rows": 500, "memory": 20_000, "compression": "none"}

    write(folder, batches, whole=True, partition_by=("p",), **more)

    assert len(folder.files) > 4
    assert all(len(data) < 40_000 for data in folder.files.values())


@pytest.mark.parametrize("task, files", [(0, 1), (1, 0)])
def test_no_rows(task: int, files: int) -> None:
    """The first task of a table without partitions leaves a file though it has no rows."""
    folder = Folder()
    made = TableFiles(SourceOptions("/t"), batch(0, 1, 1).schema, task, "tag", folder.begin)
    made.write(batch(0, 0, 1))

    made.close()

    assert len(folder.files) == files
    assert all(table_of(data).num_rows == 0 for data in folder.files.values())


def test_no_rows_in_partitions() -> None:
    """A partitioned table without rows has no files."""
    folder = Folder()
    made = TableFiles(
        SourceOptions("/t", partition_by=("p",)),
        pa.schema([("id", pa.int64())]),
        0,
        "t",
        folder.begin,
    )

    made.close()

    assert folder.files == {}


VALUES = st.one_of(st.none(), st.text(max_size=2))


@given(
    st.lists(st.tuples(VALUES, st.one_of(st.none(), st.integers(0, 2)), st.integers()), min_size=1)
)
def test_parting(rows: list[tuple[str | None, int | None, int]]) -> None:
    """Every row is in the part of its values, in its old order, and no part is there twice."""
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.string()),
            "b": pa.array([row[1] for row in rows], pa.int8()),
            "x": pa.array([str(row[2]) for row in rows]),
        }
    )

    parts = list(part_rows(table, ["a", "b"]))

    wanted: dict[tuple[object, ...], list[str]] = {}
    for a, b, x in rows:
        wanted.setdefault((a, b), []).append(str(x))
    assert {values: part["x"].to_pylist() for values, part in parts} == wanted
    assert len(parts) == len(wanted)
    assert all(part.column_names == ["x"] for _, part in parts)


def test_nested_values_are_parted_too() -> None:
    """Maps, lists and structs come along with the rest of their row."""
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("t", pa.timestamp("us", "UTC"))])))
    maps = pa.array([[("k", [{"t": i}])] for i in range(4)], kind)
    table = pa.table({"p": ["x", "y", "x", "y"], "m": maps})

    parts = dict(part_rows(table, ["p"]))

    assert parts[("y",)]["m"].to_pylist() == [maps[1].as_py(), maps[3].as_py()]


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(2932897, pa.date32()),
        pa.scalar(-719163, pa.date32()),
        pa.scalar(1 << 58, pa.timestamp("us", "UTC")),
    ],
)
def test_years_that_no_directory_has(value: Any) -> None:
    """A partition of a year that Python cannot name is refused by the column's name."""
    table = pa.table({"id": [1], "day": pa.array([value])})

    with pytest.raises(UnsupportedError, match="'day' has a value outside the years"):
        list(part_rows(table, ["day"]))


@pytest.mark.parametrize(
    "zone, hour",
    [
        ("UTC", "00:00:00"),
        ("Z", "00:00:00"),
        ("GMT+5", "05:00:00"),
        ("UTC-08:00", "16:00:00"),
        ("+05:30", "05:30:00"),
        ("-0030", "23:30:00"),
        ("+01:02:03", "01:02:03"),
        ("Asia/Tokyo", "09:00:00"),
    ],
)
def test_times_in_partitions_are_of_the_sessions_zone(zone: str, hour: str) -> None:
    """A time names its directory as the session's clock shows it, by whatever name of Java's."""
    times = pa.array([0, None], pa.timestamp("us", zone))
    table = pa.table({"id": [1, 2], "at": times})

    found = [values[0] for values, _ in part_rows(table, ["at"])]

    assert partition_value(found[0]).endswith(hour)
    assert found[1] is None


def test_zone_that_python_does_not_know() -> None:
    """A zone that only Java knows is refused with what to do."""
    table = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", "ACT"))})

    with pytest.raises(UnsupportedError, match=r"zone 'ACT'.*spark.sql.session.timeZone"):
        list(part_rows(table, ["at"]))

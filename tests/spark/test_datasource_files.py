"""Files of one task: how rows are parted, how many files are open, how large they get."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.spark.source.files import TableFiles
from asynccommit.spark.source.options import SourceOptions
from asynccommit.spark.source.rows import part_rows


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

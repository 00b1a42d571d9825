"""Files without rows, in the format of the files beside them."""

from __future__ import annotations

import bz2
import gzip
import sys
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from pyarrow import parquet as pq

from asynccommit.errors import ManifestError, UnsupportedError
from asynccommit.hive.empty_files import Format, empty_file, recognise

TABLE = pa.table(
    {
        "n": pa.array([1, 2], pa.int8()),
        "text": ["a", None],
        "tags": pa.array([["a"], []], pa.list_(pa.string())),
        "day": pa.array([0, 1], pa.date32()),
        "price": pa.array([1, None], pa.decimal128(10, 2)),
    }
)


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE.replace_schema_metadata({"pandas": "two rows"}), sink)
    return bytes(sink.getvalue().to_pybytes())


def _orc() -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(TABLE, sink)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("format", [None, Format.PARQUET])
def test_parquet(format: Format | None) -> None:
    """The columns are those of the file beside; there is not even a row group without rows."""
    made = empty_file("/t/000001_0", _parquet(), format)
    found = pq.ParquetFile(pa.BufferReader(made))

    assert recognise("/t/000001_0", made) is Format.PARQUET
    assert (found.metadata.num_rows, found.metadata.num_row_groups) == (0, 0)
    assert found.schema_arrow.equals(TABLE.schema)
    assert b"two rows" not in made


def test_orc() -> None:
    """The columns are those of the file beside."""
    made = empty_file("/t/000001_0", _orc())
    found = orc.ORCFile(pa.BufferReader(made))

    assert recognise("/t/000001_0", made) is Format.ORC
    assert (found.nrows, found.schema) == (0, TABLE.schema)


@pytest.mark.parametrize(
    "name,read",
    [
        ("000001_0", bytes),
        ("000001_0.csv", bytes),
        ("000001_0.gz", gzip.decompress),
        ("000001_0.csv.bz2", bz2.decompress),
        ("000001_0.deflate", zlib.decompress),
    ],
)
def test_text(name: str, read: Callable[[bytes], bytes]) -> None:
    """No bytes, or the least that the codec of the extension reads as none."""
    made = empty_file(f"/t.gz/{name}", b"a\x01b\n")

    assert read(made) == b""
    assert (made == b"") is (read is bytes)
    assert made == empty_file(f"/t/{name}", b"", Format.TEXT)


@pytest.mark.parametrize("name", ["000001_0.snappy", "000001_0.lz4", "000001_0.zst"])
def test_text_of_other_codecs(name: str) -> None:
    """A codec that is not at hand is refused."""
    with pytest.raises(ManifestError, match="cannot be made here; let Hive write the bucket"):
        empty_file(f"/t/{name}", b"?")


@pytest.mark.parametrize(
    "beside,name",
    [
        (b"RCF\x01\x00", "RCFile"),
        (b"SEQ\x06)org.apache.hadoop.hive.ql.io.RCFile$KeyBuffer", "RCFile"),
        (b"SEQ\x06\x19org.apache.hadoop.io.Text", "SequenceFile"),
        (b"Obj\x01\x04", "Avro"),
    ],
)
def test_formats_that_are_refused(beside: bytes, name: str) -> None:
    """The reason is said, and what to do."""
    with pytest.raises(ManifestError, match=f"an empty {name} cannot be made: .*let Hive write"):
        empty_file("/t/000001_0", beside)


@pytest.mark.parametrize("format", [Format.PARQUET, Format.ORC])
def test_a_file_beside_of_another_format(format: Format) -> None:
    """A format that was said wrongly is an error."""
    with pytest.raises(ManifestError, match=f"the neighboring file is not a {format.value} file"):
        empty_file("/t/000001_0", b"a,b\n", format)


@given(st.sampled_from([_parquet(), _orc()]), st.integers(0, 2000), st.binary(max_size=8))
def test_damaged_files_beside(whole: bytes, at: int, damage: bytes) -> None:
    """Whatever is wrong with the file beside, it is an error of one kind or a file is made."""
    damaged = whole[:at] + damage + whole[at + len(damage) :]
    for data in (damaged, whole[:at]):
        try:
            made = empty_file("/t/000001_0", data)
        except ManifestError:
            continue
        assert len(made) < 20_000


@pytest.mark.parametrize("data", [_parquet, _orc])
def test_without_pyarrow(data: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is said, with the command that brings it."""
    beside = data()
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(UnsupportedError, match="pip install pyarrow"):
        empty_file("/t/000001_0", beside)

"""One file of a sink log: as Spark writes it, and as little else as can be."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import SinkLogCorruptError
from asynccommit.stores.urls import parse_url
from asynccommit.streaming.entries import (
    LogFileWriter,
    SinkFile,
    Wrote,
    decode_batch,
    encode_entry,
    sink_uri,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sink_log"
FILE = SinkFile("file:///t/p=x%253D1/part-0.parquet", 480, 1_795_224_376_616)
LINE = (
    b'{"path":"file:///t/p=x%253D1/part-0.parquet","size":480,"isDir":false,'
    b'"modificationTime":1795224376616,"blockReplication":1,"blockSize":33554432,"action":"add"}'
)
SAMPLES = sorted(FIXTURES.glob("*/_spark_metadata/*"))


def read(data: bytes) -> list[SinkFile]:
    """Return the entries of a file of the log."""
    return [file for file, _ in decode_batch(data, "file:/t/_spark_metadata/0")]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_samples_are_read_and_written_the_same(sample: Path) -> None:
    """Scenario 57: what Spark wrote, and what its recipe in Python wrote, is read and written to
    the byte."""
    data = sample.read_bytes()
    files = [file for file, _ in decode_batch(data, str(sample))]

    assert files
    assert LogFileWriter().add_all(files).data() == data


def test_entry_is_sparks() -> None:
    """An entry has Spark's keys in Spark's order; a batch without files is its version alone."""
    assert encode_entry(FILE) == LINE
    assert LogFileWriter().data() == b"v1"
    assert LogFileWriter().add_all([FILE, FILE]).data() == b"v1\n" + LINE + b"\n" + LINE


def test_first_entry_says_who_wrote_the_batch() -> None:
    """The first entry alone names batch and query, under a key that Spark passes over."""
    data = LogFileWriter(Wrote(3, "q")).add_all([FILE, FILE]).data()

    assert data.count(b'"asynccommit":{"batch":3,"query":"q"}') == 1
    assert [wrote for _, wrote in decode_batch(data, "x")] == [Wrote(3, "q"), None]


@pytest.mark.parametrize("note", [b"1", b"{}", b'{"batch":true,"query":"q"}', b'{"batch":1}'])
def test_a_note_that_is_none(note: bytes) -> None:
    """What others may have put under that key is passed over."""
    data = b"v1\n" + LINE[:-1] + b',"asynccommit":' + note + b"}"

    assert [wrote for _, wrote in decode_batch(data, "x")] == [None]


@pytest.mark.parametrize(
    "data",
    [
        b"v1\n" + LINE + b"\n",
        b"v1\r\n" + LINE + b"\r\n",
        b"v1\n" + LINE[:-1] + b',"more":[1]}',
    ],
)
def test_what_sparks_reader_takes(data: bytes) -> None:
    """An end of the last line, CRLF and other keys are fine, as for Spark."""
    assert read(data) == [FILE]


@pytest.mark.parametrize("data", [b"v1", b"v1\n", b"v1\r\n"])
def test_no_entries(data: bytes) -> None:
    """A batch without files has no entries."""
    assert read(data) == []


def without(key: str) -> bytes:
    """Return the line without one of its keys."""
    import orjson

    value = orjson.loads(LINE)
    del value[key]
    return orjson.dumps(value)


KEYS = ("path", "size", "isDir", "modificationTime", "blockReplication", "blockSize", "action")


@pytest.mark.parametrize("key", KEYS)
def test_missing_key(key: str) -> None:
    """Every key must be there, as for Spark; the error names it and its line."""
    with pytest.raises(SinkLogCorruptError, match=f"line 3: {key} is null or missing"):
        read(b"v1\n" + LINE + b"\n" + without(key))


@pytest.mark.parametrize(
    "data,problem",
    [
        (b"", "it is empty"),
        (b"v2\n" + LINE, "its version is v2"),
        (b"v999999999999999999999999\n", "its version is v99"),
        (b"v0", "begins with 'v0'"),
        (b"1", "begins with '1'"),
        (b"\xff\xfe", "begins with"),
        (b"{}", "begins with"),
        (b"\nv1", "begins with ''"),
        (b"v1\n\n" + LINE, "line 2 is blank"),
        (b"v1\n" + LINE + b"\n\n", "line 3 is blank"),
        (b"v1\n" + LINE[:-1], "line 2 is not valid JSON"),
        (b"v1\n[]", "line 2 is a list, not an object"),
        (b"v1\n" + b"[" * 100_000, "line 2 is not valid JSON"),
        (b"v1\n" + LINE.replace(b'"add"', b'"delete"'), "treat as 'add'"),
        (b"v1\n" + LINE.replace(b'"add"', b'"x"'), "not 'add'"),
        (b"v1\n" + LINE.replace(b"480", b'"480"'), "size is the string"),
        (b"v1\n" + LINE.replace(b"480", b"-1"), "size is less than 0"),
        (b"v1\n" + LINE.replace(b"480", b"1e3"), "size is a float"),
        (b"v1\n" + LINE.replace(b"480", b"99999999999999999999"), "size is a float"),
        (b"v1\n" + LINE.replace(b"false", b"0"), "isDir is a number"),
        (b"v1\n" + LINE.replace(b"file:///t/p=x%253D1/part-0.parquet", b""), "path is empty"),
        (
            b"v1\n" + b'{"path":"' + b"x" * (1 << 20) + b'"}',
            "line 2 exceeds the number of lines that Spark writes",
        ),
    ],
)
def test_corrupt(data: bytes, problem: str) -> None:
    """Whatever Spark does not write is refused, with the line that is wrong."""
    with pytest.raises(SinkLogCorruptError, match=problem):
        read(data)


@given(st.binary(max_size=300))
def test_hostile_bytes(data: bytes) -> None:
    """Whatever the bytes, they are read or refused, and nothing else happens."""
    for text in (data, b"v1\n" + data, b"v1\n" + LINE[: len(data)] + data):
        with suppress(SinkLogCorruptError):
            assert all(file.size >= 0 for file in read(text))


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1)


@given(names.filter(lambda name: name not in (".", "..")), st.integers(0, 2**62))
def test_round_trip(name: str, number: int) -> None:
    """Scenario 57: every file that can be has an entry, which is read as it was written."""
    file = SinkFile(sink_uri(parse_url("s3a://b/t").child(name)), number, number)

    assert read(LogFileWriter().add_all([file]).data()) == [file]


def test_uri_has_two_slashes() -> None:
    """Spark writes local paths with an empty authority, and encodes what is encoded on disk."""
    assert sink_uri(parse_url("/w/p=x%3D1/a b")) == "file:///w/p=x%253D1/a%20b"
    assert sink_uri(parse_url("s3a://b/t/x")) == "s3a://b/t/x"

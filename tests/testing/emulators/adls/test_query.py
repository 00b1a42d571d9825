"""Queries of content, by Azure's SDK and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    ArrowDialect,
    ArrowType,
    BlobClient,
    DelimitedJsonDialect,
    DelimitedTextDialect,
    QuickQueryDialect,
)

from asynccommit.testing.emulators.adls.emulator import EmulatorThread

CSV = b'day,"delay, min",to\r\nmon,5,JFK\r\ntue,12,"a ""b"""\r\nwed\r\n'
HEADER = DelimitedTextDialect(has_header=True)


@pytest.fixture
def blob(adls_emulator_thread: EmulatorThread) -> Iterator[BlobClient]:
    """Yield the SDK's client of a blob with CSV."""
    emulator = adls_emulator_thread
    emulator.do(lambda it: it.model.create_filesystem("data"))
    client = BlobClient(emulator.url, "data", "a.csv", credential=emulator.key, retry_total=0)
    client.upload_blob(CSV)
    yield client
    client.close()


def _query(blob: BlobClient, text: str, **options: Any) -> tuple[bytes, list[tuple[str, bool]]]:
    """Return the result of a query, and its errors."""
    errors: list[tuple[str, bool]] = []
    reader = blob.query_blob(
        text, on_error=lambda error: errors.append((str(error.error), error.is_fatal)), **options
    )
    found: Any = reader.readall()
    return found, errors


def test_columns_are_chosen_by_name(blob: BlobClient) -> None:
    """A record that lacks one is passed over, and told as an error."""
    text = 'SELECT to, "delay, min" FROM BlobStorage WHERE "delay, min" > 9'
    out = DelimitedTextDialect(delimiter=";", quotechar="'", has_header=True)

    found, errors = _query(blob, text, blob_format=HEADER, output_format=out)

    assert found == b'to;delay, min\na "b";12\n'
    assert errors == [("InvalidColumnName", False)]


def test_columns_are_chosen_by_position(blob: BlobClient) -> None:
    """Without a header the first record is one like the others; limits count what is selected."""
    assert _query(blob, "SELECT _1 FROM x WHERE _1 <> 'mon' LIMIT 2")[0] == b"day\ntue\n"


def test_text_becomes_json_and_back(blob: BlobClient) -> None:
    """Columns become members, and members columns."""
    found, _ = _query(
        blob, "SELECT day FROM x", blob_format=HEADER, output_format=DelimitedJsonDialect()
    )
    assert found == b'{"day":"mon"}\n{"day":"tue"}\n{"day":"wed"}\n'

    blob.upload_blob(found + b'{"day": 1, "more": [1, null]}', overwrite=True)
    found, _ = _query(
        blob, "SELECT * FROM x", blob_format=DelimitedJsonDialect(), output_format=HEADER
    )
    assert found == b'day,more\nmon\ntue\nwed\n1,"[1, null]"\n'


def test_invalid_content_is_a_fatal_error(blob: BlobClient) -> None:
    """The records before it are returned."""
    blob.upload_blob(b'{"a": 1}\n{a: 2}\n{"a": 3}', overwrite=True)

    found, errors = _query(blob, "SELECT a FROM x", blob_format=DelimitedJsonDialect())

    assert (found, errors) == (b'{"a":1}\n', [("ParseError", True)])


def test_arrow_is_written_in_the_types_of_the_schema(blob: BlobClient) -> None:
    """A stream that pyarrow reads."""
    pa.array([1])  # at the first array it looks for pandas, which would block the emulator's loop
    schema = [ArrowDialect(ArrowType.STRING, name="d"), ArrowDialect(ArrowType.INT64, name="n")]
    text = "SELECT day, \"delay, min\" FROM x WHERE to = 'JFK'"

    found, _ = _query(blob, text, blob_format=HEADER, output_format=schema)

    table = pa.ipc.open_stream(found).read_all()
    assert table.to_pylist() == [{"d": "mon", "n": 5}]
    assert table.schema.field("n").type == pa.int64()


def test_parquet_is_read(blob: BlobClient) -> None:
    """It comes back as CSV; what is no Parquet is refused."""
    table = pa.table({"id": [1, 0], "day": [date(2026, 1, 2), None], "to": ["JFK", "a,b"]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    blob.upload_blob(sink.getvalue().to_pybytes(), overwrite=True)
    parquet: Any = QuickQueryDialect.PARQUET

    found, _ = _query(blob, "SELECT * FROM x WHERE id < 2", blob_format=parquet)
    assert found == b'1,2026-01-02,JFK\n0,,"a,b"\n'

    blob.upload_blob(CSV, overwrite=True)
    with pytest.raises(HttpResponseError, match="not Parquet"):
        blob.query_blob("SELECT * FROM x", blob_format=parquet)


@pytest.mark.parametrize(
    "text,options",
    [
        ("SELECT COUNT(*) FROM x", {}),
        ("SELECT * FROM x", {"blob_format": DelimitedTextDialect(lineterminator="%")}),
        ("SELECT * FROM x", {"output_format": [ArrowDialect(ArrowType.INT64, name="a")]}),
        ("SELECT _1 FROM x", {"output_format": [ArrowDialect(ArrowType.INT64, name="a")]}),
    ],
)
def test_what_is_not_supported_is_refused(
    blob: BlobClient, text: str, options: dict[str, Any]
) -> None:
    """The error says what; nothing is guessed."""
    with pytest.raises(HttpResponseError, match=r"here|Arrow|int64|columns") as refused:
        blob.query_blob(text, **options)

    assert refused.value.status_code == 400

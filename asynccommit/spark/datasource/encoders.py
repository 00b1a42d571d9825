"""Write files with pyarrow, one row group or stripe at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet as pq

from asynccommit.errors import UnsupportedError
from asynccommit.runtime.terminal import plain
from asynccommit.spark.datasource.options import SourceOptions

SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
VERSION_KEY = b"org.apache.spark.version"

_GREGORIAN = dt.date(1582, 10, 15)


class Encoder(Protocol):
    """A writer of one file of a format."""

    def write(self, table: pa.Table) -> None:
        """Write rows as a group of their own."""
        ...

    def close(self) -> None:
        """Write the end of the file; its sink stays open."""
        ...

    def forget(self) -> None:
        """Discard the file: write nothing more."""
        ...


class ParquetEncoder:
    """A Parquet writer whose files Spark reads like its own.

    Args:
        sink: receives the bytes.
        schema: the schema of the rows, with the metadata of ``footer``.
        codec: its name among our options.
    """

    def __init__(self, sink: Any, schema: pa.Schema, codec: str) -> None:
        compression = {"none": "NONE", "uncompressed": "NONE", "lz4_raw": "LZ4"}.get(codec, codec)
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            compression=compression,
            version="2.6",  # microseconds; Spark reads no older form of them with a zone
            store_schema=False,  # Spark's own is in the footer
        )
        if schema.metadata:  # Arrow leaves it out together with its schema
            self._writer.add_key_value_metadata(schema.metadata)

    def write(self, table: pa.Table) -> None:
        """See ``Encoder.write``."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        """See ``Encoder.close``."""
        self._writer.close()

    def forget(self) -> None:
        """See ``Encoder.forget``."""
        self._writer.is_open = False  # else its finalizer would write to the closed sink


class OrcEncoder:
    """An ORC file.

    Args:
        sink: receives the bytes.
        schema: the schema of the rows.
        codec: its name among our options.
    """

    def __init__(self, sink: Any, schema: pa.Schema, codec: str) -> None:
        compression = "uncompressed" if codec == "none" else codec
        self._schema = schema
        self._empty = True
        self._writer = pyarrow.orc.ORCWriter(sink, compression=compression)

    def write(self, table: pa.Table) -> None:
        """Write rows. See ``Encoder.write``.

        Raises ``UnsupportedError`` for dates that Spark misreads.
        """
        _refuse_old_days(table)
        self._empty = False
        self._writer.write(table)

    def close(self) -> None:
        """See ``Encoder.close``."""
        if self._empty:  # the writer begins the file with the first table
            self._writer.write(self._schema.empty_table())
        self._writer.close()

    def forget(self) -> None:
        """See ``Encoder.forget``."""
        self._writer.is_open = False


def _refuse_old_days(table: pa.Table) -> None:
    """Refuse dates before 1582, as Arrow's files do not name their calendar.

    Spark takes these dates for the Julian calendar and reads other ones.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        for chunk in column.chunks:
            for days in _days(chunk):
                first = pc.min(days).as_py()
                if first is not None and first < _GREGORIAN:
                    raise UnsupportedError(
                        f"column {plain(field.name)!r} has the day {first}: Spark reads days "
                        f"before {_GREGORIAN} differently from ORC files; write parquet"
                    )


def _days(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the dates in an array, at any depth."""
    kind = values.type
    if pa.types.is_date32(kind):
        yield values
    elif "date32" not in str(kind):
        return
    elif pa.types.is_struct(kind):
        for child in values.flatten():
            yield from _days(child)
    elif pa.types.is_map(kind):
        exact = values.take(pa.array(range(len(values)), pa.int64()))  # a slice keeps everything
        yield from _days(exact.keys)
        yield from _days(exact.items)
    else:
        yield from _days(values.flatten())


def encoder(sink: Any, schema: pa.Schema, options: SourceOptions) -> Encoder:
    """Return an encoder for the requested format."""
    if options.file_format == "orc":
        return OrcEncoder(sink, schema, options.compression)
    return ParquetEncoder(sink, schema, options.compression)


def footer(schema_json: str, spark_version: str) -> dict[bytes, bytes]:
    """Return the schema and writer as in the footers of Spark's files.

    From the version of the writer Spark knows that dates and times before 1582 are in the calendar
    that it uses today.
    """
    return {SCHEMA_KEY: schema_json.encode(), VERSION_KEY: spark_version.encode()}

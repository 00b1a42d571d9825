"""Files of each format, one row group (or stripe) at a time; pyarrow does the work."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from asynccommit.spark.source.options import SourceOptions

SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
VERSION_KEY = b"org.apache.spark.version"


class Encoder(Protocol):
    """Writes one file of a format."""

    def write(self, table: pa.Table) -> None:
        """Write rows, as one group of their own."""
        ...

    def close(self) -> None:
        """Write what ends the file; its sink stays open."""
        ...

    def forget(self) -> None:
        """Write nothing any more."""
        ...


class ParquetEncoder:
    """A Parquet file that Spark's reader takes for one of Spark's own.

    Args:
        sink: takes the bytes.
        schema: of the rows, with what ``footer`` gave.
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

    def write(self, table: pa.Table) -> None:
        """See ``Encoder.write``."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        """See ``Encoder.close``."""
        self._writer.close()

    def forget(self) -> None:
        """See ``Encoder.forget``."""
        self._writer.is_open = False  # else its finalizer would write to what is closed


class OrcEncoder:
    """An ORC file.

    Args:
        sink: takes the bytes.
        codec: its name among our options.
    """

    def __init__(self, sink: Any, codec: str) -> None:
        compression = "uncompressed" if codec == "none" else codec
        self._writer = pyarrow.orc.ORCWriter(sink, compression=compression)

    def write(self, table: pa.Table) -> None:
        """See ``Encoder.write``."""
        self._writer.write(table)

    def close(self) -> None:
        """See ``Encoder.close``."""
        self._writer.close()

    def forget(self) -> None:
        """See ``Encoder.forget``."""
        self._writer.is_open = False


def encoder(sink: Any, schema: pa.Schema, options: SourceOptions) -> Encoder:
    """Return what writes a file of the wanted format."""
    if options.file_format == "orc":
        return OrcEncoder(sink, options.compression)
    return ParquetEncoder(sink, schema, options.compression)


def footer(schema_json: str, spark_version: str) -> dict[bytes, bytes]:
    """Return what Spark's own files say in their footers: the schema, and who wrote the rows.

    By the version Spark knows that days and times of before 1582 are of the calendar that it uses
    today.
    """
    return {SCHEMA_KEY: schema_json.encode(), VERSION_KEY: spark_version.encode()}

"""Create files without rows for Hive's empty buckets.

They have the format of the neighbouring files.

A bucket without a file is an error for readers that take the n-th file for the n-th bucket. The
columns of an empty ORC or Parquet file are those of a neighbouring file.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import Any

from asynccommit.errors import ManifestError, UnsupportedError

MOST = 256 << 20
"""Maximum number of bytes read from a neighbouring file to learn its format and columns."""


class Format(Enum):
    """The file formats of a table."""

    TEXT = "text"
    ORC = "orc"
    PARQUET = "parquet"


_REFUSED = {
    "RCFile": "this package cannot write or verify one",
    "SequenceFile": "its header names Java classes of the table, and this package cannot write one",
    "Avro": "its header holds the schema and codec of the table, which Hive must choose",
}
# RCFiles of Hive before 0.9 are SequenceFiles whose key class tells that.
_MAGIC = ((b"RCF", "RCFile"), (b"SEQ", "SequenceFile"), (b"Obj\x01", "Avro"))
_EMPTY: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "deflate": zlib.compress,
}
_COMPRESSED = frozenset({"lz4", "lzo", "lzo_deflate", "snappy", "zst"})


def empty_file(path: str, beside: bytes, format: Format | None = None) -> bytes:
    """Return a file without rows.

    Args:
        path: future path; its extension gives the compression of text.
        beside: content of a whole file of the table; empty if the format is text.
        format: format of the table; ``None`` to detect it from the neighbouring file.

    Raises:
        ManifestError: the neighbouring file cannot be read, or its format is not supported.
        UnsupportedError: pyarrow is not installed.
    """
    found = format or recognise(path, beside)
    if found is Format.TEXT:
        return _empty_text(path)
    try:
        return _EMPTY_COLUMNS[found](beside)
    except ImportError as error:
        raise UnsupportedError(
            f"an empty {found.value} file needs pyarrow: pip install pyarrow"
        ) from error
    except Exception as error:  # of any kind: the input may be anything
        raise ManifestError(
            path, f"the neighboring file is not a {found.value} file: {error}"
        ) from error


def recognise(path: str, beside: bytes) -> Format:
    """Detect the format of a file by its first bytes.

    Raises ``ManifestError``.

    The error means an unsupported format.

    Args:
        path: path for the error message.
        beside: content of the file.
    """
    for magic, name in _MAGIC:
        if beside.startswith(magic):
            if name == "SequenceFile" and b"RCFile$KeyBuffer" in beside[:200]:
                name = "RCFile"
            raise ManifestError(
                path, f"an empty {name} cannot be made: {_REFUSED[name]}; let Hive write the bucket"
            )
    if beside.startswith(b"PAR1"):
        return Format.PARQUET
    return Format.ORC if beside.startswith(b"ORC") else Format.TEXT


def _empty_text(path: str) -> bytes:
    name = path.rpartition("/")[2]
    extension = name.rpartition(".")[2] if "." in name else ""
    if extension in _COMPRESSED:
        raise ManifestError(
            path, f"an empty .{extension} file cannot be made here; let Hive write the bucket"
        )
    compress = _EMPTY.get(extension)
    # A reader of compressed text treats a file of zero bytes as truncated.
    return compress(b"") if compress else b""


def _empty_parquet(beside: bytes) -> bytes:
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    file = pq.ParquetFile(pa.BufferReader(beside))
    int96 = any(
        file.schema.column(number).physical_type == "INT96" for number in range(len(file.schema))
    )
    # Metadata that pandas or Arrow stored about a file's rows do not apply to another file.
    schema = file.schema_arrow.remove_metadata()
    sink = pa.BufferOutputStream()
    # A table of no rows would be written as one empty row group, which older Java readers reject.
    pq.ParquetWriter(
        sink, schema, use_deprecated_int96_timestamps=int96, store_schema=False
    ).close()
    return _bytes_of(sink)


def _empty_orc(beside: bytes) -> bytes:
    pa, orc = import_module("pyarrow"), import_module("pyarrow.orc")
    table = orc.ORCFile(pa.BufferReader(beside)).schema.empty_table()
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink)
    return _bytes_of(sink)


def _bytes_of(sink: Any) -> bytes:
    return bytes(sink.getvalue().to_pybytes())


_EMPTY_COLUMNS = {Format.PARQUET: _empty_parquet, Format.ORC: _empty_orc}

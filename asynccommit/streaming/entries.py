"""Encode and decode files of Spark's streaming sink log.

The file starts with ``v1``; each following line is one JSON object for a file that the batch added.
The last line has no line end. Spark ignores unknown keys: the first entry of a batch may name the
query that wrote it, and Spark's own compaction removes that key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from asynccommit.errors import ManifestError, SinkLogCorruptError
from asynccommit.formats.fields import MAX_LONG, JsonFields, kind_of
from asynccommit.stores.urls import Address, encode_path

FOLDER = "_spark_metadata"
"""Name of the log's directory in the table's directory."""
HEADER = b"v1"
NOTE = "asynccommit"
"""This package's key in the first entry of a batch."""
MAX_BYTES = 256 << 20
"""Default maximum size of a log file in bytes: about a million entries."""
QUERY = 200
"""Maximum number of characters in the name of a query."""

_INT = 2**31 - 1
_LINE = 1 << 20  # maximum number of bytes of an entry
_ENTRIES = 5_000_000  # maximum number of entries of one file


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A file of a table, as its sink log describes it.

    Attributes:
        path: encoded absolute URI, as Spark writes it: see ``sink_uri``.
        size: size in bytes.
        modified: milliseconds since the epoch.
        is_dir: always false in logs that Spark writes.
        replication: replication of HDFS; 1 elsewhere.
        block_size: block size in bytes, as the reader's filesystem would report it.
        action: always ``add``.
    """

    path: str
    size: int
    modified: int
    is_dir: bool = False
    replication: int = 1
    block_size: int = 32 << 20
    action: str = "add"


class Wrote(NamedTuple):
    """The writer of a batch, as the file of the batch names it."""

    batch: int
    query: str


def sink_uri(place: Address) -> str:
    """Return the URI of a file as Spark writes it to a log.

    It always has two slashes after the scheme.

    Raises:
        UrlError: the location cannot be encoded.
    """
    return f"{place.scheme}://{place.authority}{encode_path(place.path)}"


# --- writing ---------------------------------------------------------------------------------


def encode_entry(file: SinkFile, wrote: Wrote | None = None) -> bytes:
    """Return one line, without its end."""
    value: dict[str, Any] = {
        "path": file.path,
        "size": file.size,
        "isDir": file.is_dir,
        "modificationTime": file.modified,
        "blockReplication": file.replication,
        "blockSize": file.block_size,
        "action": file.action,
    }
    if wrote is not None:
        value[NOTE] = wrote._asdict()
    return orjson.dumps(value)


class LogFileWriter:
    """A builder for a log file, entry by entry.

    Args:
        wrote: writer of the batch, recorded in the next entry.
    """

    def __init__(self, wrote: Wrote | None = None) -> None:
        self.wrote = wrote
        self._data = bytearray(HEADER)

    def add(self, file: SinkFile) -> None:
        """Add an entry."""
        self._data += b"\n"
        self._data += encode_entry(file, self.wrote)
        self.wrote = None

    def add_all(self, files: Iterable[SinkFile]) -> LogFileWriter:
        """Add entries; return the builder."""
        for file in files:
            self.add(file)
        return self

    def data(self) -> bytes:
        """Return the content of the file."""
        return bytes(self._data)


# --- reading ---------------------------------------------------------------------------------


def decode_batch(data: bytes, path: str) -> Iterator[tuple[SinkFile, Wrote | None]]:
    """Yield the entries of a log file, in order.

    Args:
        data: content of the file.
        path: path of the file, for messages.

    Raises:
        SinkLogCorruptError: the content is not as Spark writes it, or Spark's reader would
            interpret it differently.
    """
    for number, line in lines_of(data, path):
        yield decode_entry(line, path, number)


def lines_of(data: bytes, path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a log file after the first, with numbers from 2.

    Raises ``SinkLogCorruptError`` for an invalid first line, and for a line that is too long.
    """
    start = _after_header(data, path)
    number = 1
    while start < len(data):
        number += 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end - start > _LINE or number > _ENTRIES:
            raise _corrupt(path, f"line {number} exceeds the number of lines that Spark writes")
        yield number, data[start:end]
        start = end + 1


def _after_header(data: bytes, path: str) -> int:
    if not data:
        raise _corrupt(path, "it is empty: its write did not finish")
    line, _, _ = data[:64].partition(b"\n")
    header = line.rstrip(b"\r")
    if header != HEADER:
        shown = header[:20].decode("utf-8", "replace")
        if header[:1] == b"v" and header[1:].isdigit() and int(header[1:]) > 1:
            raise _corrupt(
                path, f"its version is {shown}: expected v1, the only version of Spark up to 4.3"
            )
        raise _corrupt(path, f"it begins with {shown!r}, not with v1")
    return len(line) + 1


def decode_entry(line: bytes, path: str, number: int) -> tuple[SinkFile, Wrote | None]:
    """Parse one line. Raises ``SinkLogCorruptError``."""
    if not line.strip():
        raise _corrupt(path, f"line {number} is blank")
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _corrupt(path, f"line {number} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise _corrupt(path, f"line {number} is {kind_of(value)}, not an object")
    try:
        file = _quick(value) or _file(JsonFields(value, path, f"line {number}: "))
        return file, _note(value.get(NOTE))
    except ManifestError as error:
        raise _corrupt(path, error.reason) from None


def _quick(value: dict[str, Any]) -> SinkFile | None:
    """Return an entry in Spark's exact form.

    ``None`` if it needs full parsing.

    A fast path: a log has as many entries as its table has files.
    """
    try:
        path, is_dir, action = value["path"], value["isDir"], value["action"]
        size, modified = value["size"], value["modificationTime"]
        replication, block = value["blockReplication"], value["blockSize"]
    except KeyError:
        return None
    if not type(size) is type(modified) is type(replication) is type(block) is int:
        return None
    if not (0 <= size <= MAX_LONG and 0 <= modified <= MAX_LONG and 0 <= block <= MAX_LONG):
        return None
    if not (type(path) is str and path and "\0" not in path and 0 <= replication <= _INT):
        return None
    if is_dir is not False or action != "add":
        return None
    return SinkFile(path, size, modified, False, replication, block)


def _file(fields: JsonFields) -> SinkFile:
    action = fields.text("action")
    if action == "delete":
        problem = "is 'delete', which readers since Spark 3 treat as 'add'"
        raise fields.wrong("action", problem)
    if action != "add":
        raise fields.wrong("action", f"is {action[:40]!r}, not 'add'")
    return SinkFile(
        path=fields.text("path"),
        size=fields.count("size"),
        modified=fields.count("modificationTime"),
        is_dir=fields.boolean("isDir"),
        replication=fields.count("blockReplication", maximum=_INT),
        block_size=fields.count("blockSize"),
    )


def _note(value: object) -> Wrote | None:
    """Parse the writer of an entry; ignore unknown values under this key."""
    if not isinstance(value, dict):
        return None
    batch, query = value.get("batch"), value.get("query")
    if type(batch) is not int or not isinstance(query, str):
        return None
    return Wrote(batch, query) if query and len(query) <= QUERY else None


def _corrupt(path: str, problem: str) -> SinkLogCorruptError:
    return SinkLogCorruptError(path, problem)

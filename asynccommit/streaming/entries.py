"""One file of a streaming sink log, as Spark's file sink writes it to ``_spark_metadata``.

``v1``, then for each file that the batch added a line with one JSON object. Nothing ends the last
line. Spark passes over keys that it does not know: the first entry of a batch may name the query
that wrote it, and Spark's own compaction drops that again.
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
"""The directory of the log, in that of the table."""
HEADER = b"v1"
NOTE = "asynccommit"
"""The key of our own in the first entry of a batch."""
MAX_BYTES = 256 << 20
"""Bytes of one file of a log at most, unless said otherwise: about a million entries."""
QUERY = 200
"""Characters of the name of a query at most."""

_INT = 2**31 - 1
_LINE = 1 << 20  # bytes of an entry at most
_ENTRIES = 5_000_000  # entries of one file at most


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A file of a table, as its sink log says.

    Attributes:
        path: encoded absolute URI, as Spark writes it: see ``sink_uri``.
        size: bytes.
        modified: milliseconds since the epoch.
        is_dir: always false in what Spark writes.
        replication: of HDFS; 1 elsewhere.
        block_size: bytes of a block, as the reader's filesystem would say.
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
    """Who wrote a batch, as the file of that batch says."""

    batch: int
    query: str


def sink_uri(place: Address) -> str:
    """Return the place of a file as Spark writes it to a log: with two slashes, always.

    Raises:
        UrlError: it cannot be encoded.
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
    """Puts a file of the log together, entry by entry.

    Args:
        wrote: who writes it: the next entry says it.
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
        """Add entries; returns itself."""
        for file in files:
            self.add(file)
        return self

    def data(self) -> bytes:
        """Return the file."""
        return bytes(self._data)


# --- reading ---------------------------------------------------------------------------------


def decode_batch(data: bytes, path: str) -> Iterator[tuple[SinkFile, Wrote | None]]:
    """Yield the entries of a file of the log, in order.

    Args:
        data: its content.
        path: of the file, for messages.

    Raises:
        SinkLogCorruptError: it is anything that Spark does not write, or that its reader takes for
            something else than it says.
    """
    for number, line in lines_of(data, path):
        yield decode_entry(line, path, number)


def lines_of(data: bytes, path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file of the log after the first, each with its number, from 2.

    Raises ``SinkLogCorruptError`` for another first line, and for one that is too long.
    """
    start = _after_header(data, path)
    number = 1
    while start < len(data):
        number += 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end - start > _LINE or number > _ENTRIES:
            raise _corrupt(path, f"line {number} is more than Spark writes")
        yield number, data[start:end]
        start = end + 1


def _after_header(data: bytes, path: str) -> int:
    if not data:
        raise _corrupt(path, "it is empty, as a write that was cut short leaves it")
    line, _, _ = data[:64].partition(b"\n")
    header = line.rstrip(b"\r")
    if header != HEADER:
        shown = header[:20].decode("utf-8", "replace")
        if header[:1] == b"v" and header[1:].isdigit() and int(header[1:]) > 1:
            raise _corrupt(path, f"its version is {shown}: only v1 can be read, by Spark 4.3 too")
        raise _corrupt(path, f"it begins with {shown!r}, not with v1")
    return len(line) + 1


def decode_entry(line: bytes, path: str, number: int) -> tuple[SinkFile, Wrote | None]:
    """Return what one line says. Raises ``SinkLogCorruptError``."""
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
    """Return an entry as Spark writes it, ``None`` for one that has to be looked at closely.

    A log has as many as its table has files.
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
        problem = "is 'delete', which readers since Spark 3 take for 'add'"
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
    """Read what is said of the writer; whatever else others may have put there is nothing."""
    if not isinstance(value, dict):
        return None
    batch, query = value.get("batch"), value.get("query")
    if type(batch) is not int or not isinstance(query, str):
        return None
    return Wrote(batch, query) if query and len(query) <= QUERY else None


def _corrupt(path: str, problem: str) -> SinkLogCorruptError:
    return SinkLogCorruptError(path, problem)

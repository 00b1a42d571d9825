"""The options of the Data Source, as ``df.write.option(...)`` gives them.

Spark hands over every name in lower case, so ours are read without regard to case and
underscores: ``partition_by`` and ``partitionBy`` are one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any

import orjson

from asynccommit.errors import OptionError
from asynccommit.options import values
from asynccommit.options.checked import PATH, Within, check_fields
from asynccommit.options.job import Options, bare
from asynccommit.runtime.terminal import plain
from asynccommit.streaming import settings as sink
from asynccommit.streaming.settings import SinkLogSettings

STORAGE = "storage."
"""Prefix of the store options under fsspec's names."""

FORMATS: Mapping[str, Mapping[str, str]] = {
    "parquet": {
        "none": "",
        "uncompressed": "",
        "snappy": ".snappy",
        "gzip": ".gz",
        "zstd": ".zstd",
        "lz4_raw": ".lz4raw",
    },
    "orc": {"none": "", "uncompressed": "", "snappy": ".snappy", "zlib": ".zlib", "zstd": ".zstd"},
}
"""Format -> codec -> the text that Spark puts into the name of a file for it."""

_COMMIT = ("asynccommit.", "mapreduce.", "fs.s3a.committer.")
_STORES = ("fs.azure.", "fs.gs.", "fs.s3a.", "google.cloud.")
COMMITTER = "fs.s3a.committer.name"
_SINK = {
    name.lower(): name
    for name in (
        sink.INTERVAL,
        sink.DELETION,
        sink.DELAY,
        sink.KEEP,
        sink.RETENTION,
        sink.ADOPT,
        sink.ANYWHERE,
    )
}
# Keys that Spark itself adds to a stream's options.
_OF_SPARK = frozenset({"queryname", "outputmode"})


_ROWS = Within(1, 1 << 62, "rows")
_BYTES = Within(1, 1 << 50, "bytes")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a write.

    Attributes:
        path: the URL of the table, or an absolute path.
        file_format: ``parquet`` or ``orc``.
        partition_by: columns whose values become directories.
        compression: codec of the files.
        row_group_rows: maximum number of rows of a row group.
        row_group_bytes: maximum size of a row group in memory, before it is encoded.
        file_rows: maximum number of rows of a file, ``None`` for no limit.
        file_bytes: size from which a file is closed.
        open_files: maximum number of files that one task has open at a time.
        memory: bytes that one task keeps of rows that are not written yet.
        replace_partitions: whether an overwrite replaces only the partitions that are written to.
        fail_if_exists: whether a destination that is not empty is refused.
        conf: options of the commit under Hadoop's names.
        storage: options of the store, under fsspec's names or Hadoop's; never shown.
        sink: options of a stream's log, under Spark's names.
        checkpoint: where a stream keeps its progress, if that option was given.
    """

    path: Annotated[str, PATH]
    file_format: str = "parquet"
    partition_by: tuple[str, ...] = ()
    compression: str = "snappy"
    row_group_rows: Annotated[int, _ROWS] = 1_000_000
    row_group_bytes: Annotated[int, _BYTES] = 64 << 20
    file_rows: Annotated[int | None, _ROWS] = None
    file_bytes: Annotated[int, _BYTES] = 1 << 30
    open_files: Annotated[int, Within(1, 65_536)] = 100
    memory: Annotated[int, _BYTES] = 128 << 20
    replace_partitions: bool = False
    fail_if_exists: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    sink: Mapping[str, str] = field(default_factory=dict)
    checkpoint: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def ending(self) -> str:
        """The suffix of file names: ``.snappy.parquet``."""
        return f"{FORMATS[self.file_format][self.compression]}.{self.file_format}"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        """Read the options of a write.

        Raises ``OptionError`` for an option that is missing, unknown or invalid; no message
        contains a value of a store's options.
        """
        read = _Read()
        for key, value in given.items():
            read.take(key.lower(), value)
        _check(read.found)
        Options.from_conf(read.conf)
        SinkLogSettings.from_conf(read.sink)
        return cls(**read.found, conf=read.conf, storage=read.storage, sink=read.sink)


@dataclass(slots=True)
class _Read:
    """The options read so far, by their destination."""

    found: dict[str, Any] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict, repr=False)
    sink: dict[str, str] = field(default_factory=dict)

    def take(self, key: str, value: str) -> None:
        name, own = bare(key), key.replace("_", "")
        if own in _KNOWN:
            attribute, read = _KNOWN[own]
            self.found[attribute] = read(key, value)
        elif key.startswith(STORAGE):
            self.storage[key.removeprefix(STORAGE)] = value
        elif key in _SINK or name in _SINK:
            self.sink[_SINK.get(key) or _SINK[name]] = value
        elif name == COMMITTER:
            _check_committer(value)
        elif name.startswith(_COMMIT):
            self.conf[name] = value
        elif name.startswith(_STORES):
            self.storage[name] = value
        elif key == "checkpointlocation":
            self.found["checkpoint"] = value
        elif key not in _OF_SPARK:
            raise OptionError(_unknown(key))


def _check_committer(value: str) -> None:
    if value.strip().lower() not in ("magic", ""):
        raise OptionError(
            f"{COMMITTER} is {plain(value)[:100]!r}: this data source writes to S3 by uploads that "
            "the job completes, as 'magic' does; leave the option out"
        )


def _unknown(key: str) -> str:
    shown = plain(key)[:100]
    close = get_close_matches(key.replace("_", ""), _KNOWN, 1, 0.6)
    if close:
        return f"{shown!r} is not an option of this data source: did you mean {_NAMES[close[0]]!r}?"
    return (
        f"{shown!r} is not an option of this data source: options of a store begin with "
        f"{STORAGE!r}, or are Hadoop's ({', '.join(f'{name}*' for name in _STORES)}); its own "
        f"are {', '.join(_NAMES.values())}"
    )


def _check(found: dict[str, Any]) -> None:
    if not found.get("path"):
        raise OptionError(
            "no path is given: use df.write.format('asynccommit').save(path). Spark hands over no "
            "options for INSERT INTO and saveAsTable, so this source cannot serve them"
        )
    chosen = found.setdefault("file_format", "parquet")
    codecs = FORMATS[chosen]
    if found.setdefault("compression", "snappy") not in codecs:
        raise OptionError(
            f"compression is {found['compression']!r}: for {chosen} expected one of "
            f"{', '.join(codecs)}"
        )


# --- reading values -----------------------------------------------------------------------------


def _path(key: str, value: str) -> str:
    """Read a URL, or a path relative to the driver's working directory."""
    text = value.strip()
    return text if not text or ":" in text.partition("/")[0] else os.path.abspath(text)


def _format(key: str, value: str) -> str:
    text = value.strip().lower()
    if text not in FORMATS:
        raise OptionError(f"{key} is {plain(value)[:100]!r}: expected one of {', '.join(FORMATS)}")
    return text


def _codec(key: str, value: str) -> str:
    return value.strip().lower()[:40]


def _columns(key: str, value: str) -> tuple[str, ...]:
    """Read comma-separated names, or a JSON list if names contain commas."""
    if not value.strip().startswith("["):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    try:
        read = orjson.loads(value)
    except orjson.JSONDecodeError:
        read = None
    if not isinstance(read, list) or not all(isinstance(name, str) for name in read):
        raise OptionError(
            f"{key} is {plain(value)[:100]!r}: expected day,hour or ['day', 'hour'] as JSON"
        )
    return tuple(read)


def _dynamic(key: str, value: str) -> bool:
    text = value.strip().lower()
    if text not in ("static", "dynamic"):
        raise OptionError(f"{key} is {plain(value)[:100]!r}: expected static or dynamic")
    return text == "dynamic"


def _fails(key: str, value: str) -> bool:
    text = value.strip().lower()
    if text not in ("append", "fail"):
        raise OptionError(f"{key} is {plain(value)[:100]!r}: expected append or fail")
    return text == "fail"


def _rows(key: str, value: str) -> int | None:
    return values.workers(key, value)  # as in Spark: below 1 is no bound


_NAMES = {
    "path": "path",
    "fileformat": "file_format",
    "partitionby": "partition_by",
    "compression": "compression",
    "rowgrouprows": "row_group_rows",
    "rowgroupbytes": "row_group_bytes",
    "maxrecordsperfile": "maxRecordsPerFile",
    "filebytes": "file_bytes",
    "openfiles": "open_files",
    "memory": "memory",
    "partitionoverwritemode": "partitionOverwriteMode",
    "ifexists": "if_exists",
}
"""Normalised option name -> its spelling in documentation."""

_KNOWN: Mapping[str, tuple[str, values.Reader]] = {
    "path": ("path", _path),
    "fileformat": ("file_format", _format),
    "partitionby": ("partition_by", _columns),
    "compression": ("compression", _codec),
    "rowgrouprows": ("row_group_rows", values.count),
    "rowgroupbytes": ("row_group_bytes", values.size),
    "maxrecordsperfile": ("file_rows", _rows),
    "filebytes": ("file_bytes", values.size),
    "openfiles": ("open_files", values.count),
    "memory": ("memory", values.size),
    "partitionoverwritemode": ("replace_partitions", _dynamic),
    "ifexists": ("fail_if_exists", _fails),
}
"""Normalised option name -> attribute, and the function that reads its value."""

"""Names of partition directories and of files, as Spark gives them.

Sources: ``ExternalCatalogUtils`` of Spark for what is escaped, ``FileFormatDataWriter`` for the
names of files; tests compare them with what Spark writes.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from decimal import Decimal

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value in a directory's name that stands for a null and for an empty text."""

_ESCAPED = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def escape(text: str) -> str:
    """Escape ``text`` for the name of a partition directory."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def partition_value(value: object) -> str:
    """Return the unescaped text of a value, as Spark casts it to string.

    Args:
        value: the value as Arrow gives it to Python: text, number, bool, date, time or ``None``.
    """
    if value is None or value == "":
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return _moment(value)
    if isinstance(value, dt.date):
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _moment(value: dt.datetime) -> str:
    text = f"{value.year:04d}-{value:%m-%d %H:%M:%S}"
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def directory(columns: Iterable[str], values: Iterable[object]) -> str:
    """Return the path of a partition below its table: ``day=1/hour=2``."""
    pairs = zip(columns, values, strict=True)
    return "/".join(f"{escape(name)}={escape(partition_value(value))}" for name, value in pairs)


def file_name(task: int, tag: str, number: int, ending: str, *, partitioned: bool) -> str:
    """Return the name of a data file.

    An example is ``part-00000-<tag>-c000.snappy.parquet``.

    Args:
        task: the number of the task.
        tag: part of the name of every file of the job.
        number: the number of the file among those that the task writes to one directory.
        ending: the suffix for codec and format, with a leading dot.
        partitioned: whether the table has partitions; Spark then puts a dot before the number.
    """
    mark = "." if partitioned else "-"
    return f"part-{task:05d}-{tag}{mark}c{number:03d}{ending}"

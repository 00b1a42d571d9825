"""Names of partition directories and of files, as Spark gives them.

Sources: ``ExternalCatalogUtils`` of Spark for what is escaped, ``FileFormatDataWriter`` for the
names of files; tests compare them with what Spark writes.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import inf
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from asynccommit.errors import OptionError

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value in a directory's name that stands for a null and for an empty text."""

_ESCAPED = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def escape(text: str) -> str:
    """Escape ``text`` for the name of a partition directory."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


class Single(float):
    """A float of 32 bits, whose text has fewer digits."""


def partition_value(value: object) -> str:
    """Return the unescaped text of a value, as Spark casts it to string.

    Args:
        value: the value as Arrow gives it to Python: text, bytes, number, bool, date, time or
            ``None``; a float of 32 bits as ``Single``.

    Raises ``OptionError`` for a value that its text would not lead back to, so that no two values
    have one directory; but for a null and an empty text, which Spark has in one.
    """
    if value is None or value in ("", b""):
        return NULL
    for kinds, text in _TEXTS:
        if isinstance(value, kinds):
            return text(value)
    raise _unnamed(value, f"values of type {type(value).__name__} have none: cast it to string")


def moment_of(nanoseconds: int, zone: str | None = None) -> dt.datetime:
    """Return a time of Arrow, in its zone if it has one.

    Args:
        nanoseconds: since 1970.
        zone: as Arrow has it.

    Raises ``OptionError`` for parts of a microsecond, which Spark has not, for a year that Python
    has not, and for an unknown zone.
    """
    if nanoseconds % 1000:
        text = f"{nanoseconds} ns since 1970"
        raise _unnamed(text, "it has parts of a microsecond: round it to microseconds")
    try:
        moment = _EPOCH + dt.timedelta(microseconds=nanoseconds // 1000)
        return moment.replace(tzinfo=None) if zone is None else moment.astimezone(_zone(zone))
    except (OverflowError, ValueError, LookupError, OSError) as error:
        text = f"{nanoseconds} ns since 1970 in zone {zone}"
        raise _unnamed(text, f"{error}: cast it to string") from error


def _zone(name: str) -> dt.tzinfo:
    found = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if found is None:
        return ZoneInfo(name)
    offset = dt.timedelta(hours=int(found[2]), minutes=int(found[3]))
    return dt.timezone(-offset if found[1] == "-" else offset)


def _unnamed(value: object, why: str) -> OptionError:
    text = value if isinstance(value, str) else repr(value)[:100]
    return OptionError(f"the partition value {text} cannot name a directory: {why}")


def _bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _unnamed(value, "it is not UTF-8: cast it to hexadecimal text") from None


def _float(value: float) -> str:
    """Return a number as ``toString`` of Java does."""
    if value != value or value in (inf, -inf):
        return {inf: "Infinity", -inf: "-Infinity"}.get(value, "NaN")
    if not value:
        return repr(float(value))
    shortest = _single(value) if isinstance(value, Single) else repr(float(value))
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    if len(digits) == 1:  # Java has two digits at least, and then the nearest two
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    minus, text = "-" * sign, "".join(map(str, digits))
    point = len(text) + int(exponent)
    if -3 < point <= 7:
        text = text.rjust(len(text) - min(point - 1, 0), "0").ljust(point, "0")
        whole = max(point, 1)
        return f"{minus}{text[:whole]}.{_fraction(text[whole:])}"
    return f"{minus}{text[0]}.{_fraction(text[1:])}E{point - 1}"


def _fraction(digits: str) -> str:
    return digits.rstrip("0") or "0"


def _single(value: float) -> str:
    """Return the fewest digits that lead to a float of 32 bits."""
    texts = (f"{value:.{digits}e}" for digits in range(9))
    return next(text for text in texts if _stored(float(text)) == value)


def _stored(value: float) -> float:
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:  # rounded up beyond the largest
        return inf
    return found


def _moment(value: dt.datetime) -> str:
    if getattr(value, "nanosecond", 0):  # of pandas
        raise _unnamed(value, "it has parts of a microsecond: round it to microseconds")
    if _comes_again(value):
        why = "its hour comes twice in that zone, and this is the second: convert it to UTC"
        raise _unnamed(value, why)
    return _fractional(value, f"{value.year:04d}-{value:%m-%d %H:%M:%S}")


def _comes_again(value: dt.datetime) -> bool:
    """Return whether clocks put back make a time the second of its text."""
    zone = value.tzinfo
    name = getattr(zone, "key", getattr(zone, "zone", None))  # of zoneinfo, of pytz
    if not isinstance(name, str):
        return False
    try:
        first = value.replace(tzinfo=ZoneInfo(name), fold=0)
    except (OSError, LookupError, ValueError):
        return False
    return first.utcoffset() != value.utcoffset()


def _time(value: dt.time) -> str:
    return _fractional(value, f"{value:%H:%M:%S}")


def _fractional(value: dt.datetime | dt.time, text: str) -> str:
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def _date(value: dt.date) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TEXTS: Sequence[tuple[Any, Callable[[Any], str]]] = (
    (bool, lambda value: "true" if value else "false"),
    ((str, int, UUID), str),
    (bytes, _bytes),
    (float, _float),
    (Decimal, lambda value: f"{value:f}"),
    (dt.datetime, _moment),
    (dt.date, _date),
    (dt.time, _time),
)
"""The text of a value by its type, the first that it is of."""


def directory(columns: Iterable[str], values: Iterable[object]) -> str:
    """Return the path of a partition below its table: ``day=1/hour=2``.

    Raises what ``partition_value`` does.
    """
    pairs = zip(columns, values, strict=True)
    return "/".join(f"{escape(name)}={escape(partition_value(value))}" for name, value in pairs)


def file_name(task: int, tag: str, number: int, ending: str, *, partitioned: bool) -> str:
    """Return the name of a data file, such as ``part-00000-<tag>-c000.snappy.parquet``.

    Args:
        task: the number of the task.
        tag: part of the name of every file of the job.
        number: the number of the file among those that the task writes to one directory.
        ending: the suffix for codec and format, with a leading dot.
        partitioned: whether the table has partitions; Spark then puts a dot before the number.
    """
    mark = "." if partitioned else "-"
    return f"part-{task:05d}-{tag}{mark}c{number:03d}{ending}"

"""Partition rows by the values of columns."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from asynccommit.errors import UnsupportedError
from asynccommit.runtime.terminal import plain

_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?:([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?)?|Z", re.ASCII
).fullmatch
"""A time zone of Java that is not a place."""


def part_rows(
    table: pa.Table, columns: Sequence[str]
) -> Iterator[tuple[tuple[object, ...], pa.Table]]:
    """Yield each combination of values and its rows, without those columns.

    The rows keep their order and are copies, so that keeping one partition does not keep all of
    ``table``.

    Args:
        table: at least one row.
        columns: names of columns in it.

    Raises:
        UnsupportedError: a date or time has a year of other than four digits, or an unknown zone.
    """
    keys = [table.column(name).combine_chunks() for name in columns]
    rest = table.drop_columns(list(columns))
    codes = _codes(keys)
    order = pc.sort_indices(codes)
    ends = pc.run_end_encode(codes.take(order)).run_ends.to_pylist()
    start = 0
    for end in ends:
        rows = order.slice(start, end - start)
        first = rows[0].as_py()
        values = tuple(_value(key[first], name) for key, name in zip(keys, columns, strict=True))
        yield values, (rest if len(ends) == 1 else rest.take(rows))
        start = end


def _value(scalar: Any, column: str) -> object:
    zone = scalar.type.tz if pa.types.is_timestamp(scalar.type) else None
    try:
        if zone is None or not scalar.is_valid:
            return scalar.as_py()
        moment: dt.datetime = scalar.cast(pa.timestamp("us", "UTC")).as_py()
        return moment.astimezone(_zone(zone, column))
    except (OverflowError, ValueError):  # of Python's dates and times
        raise UnsupportedError(
            f"partition column {plain(column)!r} has a value outside the years 1 to 9999, which "
            "cannot name a directory: cast it to string"
        ) from None


def _zone(name: str, column: str) -> dt.tzinfo:
    """Return the zone of the session; Java has more names for zones."""
    found = _OFFSET(name)
    if found is None:
        try:
            return ZoneInfo(name)
        except (OSError, LookupError, ValueError):
            raise UnsupportedError(
                f"partition column {plain(column)!r} has times in the zone {plain(name)!r}, "
                "which Python does not know: set spark.sql.session.timeZone to one like "
                "Europe/Paris"
            ) from None
    hours, minutes, seconds = (int(found[group] or 0) for group in (2, 3, 4))
    offset = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return dt.timezone(-offset if found[1] == "-" else offset)


def _codes(keys: Sequence[Any]) -> Any:
    """Return for each row a number that identifies its values."""
    codes: Any = None
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        indices = pc.cast(encoded.indices, pa.int64())
        if codes is not None:
            # The numbers are compacted each time, so that many columns cannot overflow them.
            indices = pc.add(pc.multiply(codes, len(encoded.dictionary)), indices)
            indices = pc.cast(indices.dictionary_encode().indices, pa.int64())
        codes = indices
    return codes

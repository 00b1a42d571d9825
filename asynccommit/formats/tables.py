"""Read and check JSON tables of millions of rows by column.

A table is a list of rows and a row is a list of fields; a table of one column is a list of its
values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import MAX_LONG, JsonFields, are_paths, kind_of

_NO_WORD = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        name: name of the column, for messages.
        good: returns whether all given values are valid.
        what: description of a valid value, for messages.
    """

    name: str
    good: Callable[[Sequence[Any]], bool]
    what: str


def are_sizes(values: Sequence[Any]) -> bool:
    """Return whether all are non-negative integers of a Java ``long``."""
    return {*map(type, values)} <= {int} and min(values) >= 0 and max(values) <= MAX_LONG


def are_etags(values: Sequence[Any]) -> bool:
    """Return whether all are non-empty strings or ``None``."""
    return {*map(type, values)} <= {str, type(None)} and "" not in values


def are_words(values: Sequence[Any]) -> bool:
    """Return whether all are non-empty strings without control characters."""
    plain = {*map(type, values)} <= {str} and "" not in values
    return plain and not _NO_WORD.search("".join(values))


def are_names(values: Sequence[Any]) -> bool:
    """Return whether all are valid as names of files."""
    return are_words(values) and are_paths(values) and "/" not in "".join(values)


def check_head(fields: JsonFields, kind: str, plan_id: str, index: int) -> None:
    """Raise ``ManifestError`` unless the file is this chunk of this plan.

    Args:
        fields: the chunk.
        kind: the type that it must have.
        plan_id: the plan that it must belong to.
        index: the number that this part must have.
    """
    fields.is_type(kind)
    if (found := fields.name("plan")) != plan_id:
        raise fields.wrong("plan", f"is {found[:100]!r}, not {plan_id!r}")
    if (number := fields.count("index")) != index:
        raise fields.wrong("index", f"is {number}, not {index}")


def check_table(
    fields: JsonFields, name: str, columns: Sequence[Column], row: type[Any] = list
) -> list[Any]:
    """Return a table with checked rows; rows of several columns are tuples.

    Rows are examined one by one only if a column check fails, to find the invalid one.

    Args:
        fields: the object that contains the table.
        name: name of its field, which is required.
        columns: the columns of the table.
        row: type of a row: ``list`` when reading, ``tuple`` when writing.

    Raises ``ManifestError`` that names the row and the field that is invalid.
    """
    rows = fields.rows(name)
    if not rows:
        return rows
    if len(columns) == 1:
        if not columns[0].good(rows):
            raise _wrong_value(fields, name, columns, 0, rows)
        return rows
    if {*map(type, rows)} != {row} or {*map(len, rows)} != {len(columns)}:
        raise _wrong_row(fields, name, len(columns), row, rows)
    table = list(zip(*rows, strict=True))
    for at, values in enumerate(table):
        if not columns[at].good(values):
            raise _wrong_value(fields, name, columns, at, values)
    return rows if row is tuple else list(zip(*table, strict=True))


def _wrong_row(
    fields: JsonFields, name: str, width: int, row: type[Any], rows: Sequence[Any]
) -> ManifestError:
    good = [type(value) is row and len(value) == width for value in rows]
    return fields.wrong(f"{name}[{good.index(False)}]", f"is not a row of {width} fields")


def _wrong_value(
    fields: JsonFields, name: str, columns: Sequence[Column], at: int, values: Sequence[Any]
) -> ManifestError:
    column = columns[at]
    index = next(index for index, value in enumerate(values) if not column.good([value]))
    where = f"{name}[{index}]" if len(columns) == 1 else f"{name}[{index}].{column.name}"
    return fields.wrong(where, f"is {kind_of(values[index])}, not {column.what}")

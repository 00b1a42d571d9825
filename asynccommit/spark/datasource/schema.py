"""Check that all columns can be written, before a task runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.runtime.terminal import plain

_EXACT = (
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_ATOMS = (*_EXACT, BinaryType, DoubleType, FloatType)
_REMEDIES = {
    "VariantType": "write to_json(column)",
    "DayTimeIntervalType": "write its seconds as a number",
    "YearMonthIntervalType": "write its months as a number",
    "CalendarIntervalType": "write it as text",
    "NullType": "cast it to the intended type",
    "TimeType": "cast it to string",
}
_SHOWN = 5


def check_schema(schema: StructType, partition_by: Sequence[str], file_format: str) -> None:
    """Refuse columns that the format or Spark's readers cannot handle.

    Raises:
        UnsupportedError: columns have types that cannot be written; names each, and its type.
        OptionError: column names are duplicates, or partition columns are invalid.
    """
    _refuse_double(schema, "")
    problems = list(_unfit(schema, ""))
    if file_format == "orc":
        problems += _unfit_for_orc(schema, "")
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if problems[_SHOWN:] else ""
        text = "; ".join(problems[:_SHOWN])
        raise UnsupportedError(f"{file_format} files cannot hold {text}{more}")
    _check_partitions(schema, partition_by)


def partition_columns(schema: StructType, partition_by: Sequence[str]) -> tuple[str, ...]:
    """Return the columns as the schema spells them.

    Raises ``OptionError`` for a column that is not in the schema.
    """
    spelled = {name.lower(): name for name in schema.fieldNames()}
    for name in partition_by:
        if name.lower() not in spelled:
            known = ", ".join(schema.fieldNames()[:20])
            raise OptionError(f"partition_by names {plain(name)!r}; the columns are {plain(known)}")
    return tuple(spelled[name.lower()] for name in partition_by)


def _refuse_double(kind: DataType, place: str) -> None:
    if isinstance(kind, StructType):
        seen = dict[str, str]()
        for field in kind.fields:
            whole = f"{place}.{field.name}" if place else field.name
            if other := seen.get(field.name.lower()):
                raise OptionError(
                    f"columns {plain(other)!r} and {plain(whole)!r} have the same name, so Spark "
                    "could not read them: rename one"
                )
            seen[field.name.lower()] = whole
            _refuse_double(field.dataType, whole)
    elif isinstance(kind, ArrayType):
        _refuse_double(kind.elementType, f"{place}.element")
    elif isinstance(kind, MapType):
        _refuse_double(kind.keyType, f"{place}.key")
        _refuse_double(kind.valueType, f"{place}.value")


def _unfit(kind: DataType, place: str) -> Iterator[str]:
    if isinstance(kind, StructType):
        if not kind.fields:
            yield f"{_column(place)}, which is a struct without fields"
        for field in kind.fields:
            yield from _unfit(field.dataType, f"{place}.{field.name}" if place else field.name)
    elif isinstance(kind, ArrayType):
        yield from _unfit(kind.elementType, f"{place}.element")
    elif isinstance(kind, MapType):
        yield from _unfit(kind.keyType, f"{place}.key")
        yield from _unfit(kind.valueType, f"{place}.value")
    elif type(kind) not in _KINDS:
        yield f"{_column(place)} of type {plain(_type_name(kind))}{_remedy(kind)}"


def _unfit_for_orc(kind: DataType, place: str) -> Iterator[str]:
    """Yield timestamps, as Spark misreads those that Arrow writes to ORC."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _unfit_for_orc(field.dataType, f"{place}.{field.name}".lstrip("."))
    elif isinstance(kind, ArrayType):
        yield from _unfit_for_orc(kind.elementType, f"{place}.element")
    elif isinstance(kind, MapType):
        yield from _unfit_for_orc(kind.keyType, f"{place}.key")
        yield from _unfit_for_orc(kind.valueType, f"{place}.value")
    elif isinstance(kind, (TimestampType, TimestampNTZType)):
        yield f"{_column(place)} of type {kind.simpleString()} (write parquet)"


def _check_partitions(schema: StructType, partition_by: Sequence[str]) -> None:
    names = partition_columns(schema, partition_by)
    if len(set(names)) < len(names):
        raise OptionError(f"partition_by names a column twice: {plain(', '.join(names))}")
    if names and len(names) == len(schema.fields):
        raise OptionError("partition_by names every column, which leaves none for the files")
    for name in names:
        kind = schema[name].dataType
        if type(kind) not in _PARTITIONS:
            raise OptionError(
                f"partition_by names column {plain(name)!r} of type {plain(_type_name(kind))}, "
                "which has no unambiguous text: cast it to string"
            )


def _column(place: str) -> str:
    return f"column {plain(place)!r}" if place else "the table"


def _type_name(kind: DataType) -> str:
    try:
        return str(kind.simpleString())
    except Exception:  # a user's type may raise anything
        return type(kind).__name__


def _remedy(kind: Any) -> str:
    text = _REMEDIES.get(type(kind).__name__)
    return f" ({text})" if text else ""


def _with_texts(kinds: Sequence[type]) -> frozenset[type]:
    """Return ``kinds`` and the bounded text types that PySpark has."""
    from pyspark.sql import types

    texts = [getattr(types, name, StringType) for name in ("CharType", "VarcharType")]
    return frozenset((*kinds, *texts))


_KINDS = _with_texts(_ATOMS)
_PARTITIONS = _with_texts(_EXACT)

"""Read Parquet, and write results of queries as Arrow, by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import Any

from asynccommit.testing.models.adls.refusals import refusal
from asynccommit.testing.models.adls.select import Row

_READ: Mapping[str, Callable[[str], Any]] = {
    "int64": int,
    "bool": lambda text: text.lower() == "true",
    "double": float,
    "string": str,
    "decimal": Decimal,
    "timestamp[ms]": lambda text: datetime.fromisoformat(text).astimezone(UTC),
}


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        text = "Arrow and Parquet need pyarrow in the emulator's environment: install it."
        raise refusal("InvalidInput", text) from None


def read_parquet(content: bytes) -> Sequence[Row]:
    """Return the records of a file.

    Raises ``Refusal`` if it is invalid, or pyarrow is not installed.
    """
    pa, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    try:
        found: Sequence[Row] = parquet.read_table(pa.BufferReader(content)).to_pylist()
    except pa.ArrowException as error:
        raise refusal("InvalidInput", f"The content is not Parquet: {error}") from None
    return found


def write_arrow(schema: Sequence[Mapping[str, str]], rows: Sequence[Row]) -> bytes:
    """Return a stream with the columns of ``rows`` in the types of ``schema``.

    Raises ``Refusal`` if a value is not of its type, or pyarrow is not installed.
    """
    pa = _pyarrow("pyarrow")
    if any(len(row) != len(schema) for row in rows):
        raise refusal("InvalidInput", "The schema has another number of columns than the result.")
    columns = zip(*(row.values() for row in rows), strict=True) if rows else [[] for _ in schema]
    arrays = [_array(pa, field, values) for field, values in zip(schema, columns, strict=True)]
    names = [field.get("Name", "") for field in schema]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _scaled(value: Any, scale: int) -> Any:
    """Return a decimal.

    A whole number counts its last digits, as in a test of Azure's SDK.
    """
    whole = value is not None and value == value.to_integral_value()
    return value.scaleb(-scale) if whole else value


def _array(pa: Any, field: Mapping[str, str], values: Sequence[Any]) -> Any:
    kind = field.get("Type", "")
    if kind not in _READ:
        raise refusal("InvalidInput", f"The type {kind[:100]!r} of Arrow is not known.")
    types = {
        "int64": pa.int64,
        "bool": pa.bool_,
        "double": pa.float64,
        "string": pa.string,
        "timestamp[ms]": lambda: pa.timestamp("ms"),
        "decimal": lambda: pa.decimal128(int(field["Precision"]), int(field["Scale"])),
    }
    try:
        read = [None if value in (None, "") else _READ[kind](str(value)) for value in values]
        if kind == "decimal":
            read = [_scaled(value, int(field["Scale"])) for value in read]
        return pa.array(read, types[kind]())
    except (ValueError, KeyError, InvalidOperation, pa.ArrowException) as error:
        raise refusal("InvalidInput", f"A value is no {kind}: {error}") from None

"""Write Avro files: records of a union, without compression.

Source: https://avro.apache.org/docs/1.11.1/specification/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = Sequence[Mapping[str, Any]]
"""The record types of a union."""

_MAGIC, _SYNC = b"Obj\x01", b"asynccommit-sync"


def write_avro(schema: Schema, records: Iterable[tuple[int, Sequence[Any]]]) -> bytes:
    """Return a file.

    Each record is the number of its type, and its values in order. Values may be whole numbers,
    booleans, text and bytes.
    """
    meta = {"avro.codec": b"null", "avro.schema": json.dumps(schema).encode()}
    parts = [_MAGIC, _long(len(meta))]
    parts += [_bytes(name.encode()) + _bytes(value) for name, value in meta.items()]
    parts += [_long(0), _SYNC]
    for kind, values in records:
        record = _long(kind) + b"".join(map(_value, values))
        parts += [_long(1), _long(len(record)), record, _SYNC]
    return b"".join(parts)


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\1" if value else b"\0"
    if isinstance(value, int):
        return _long(value)
    return _bytes(value.encode() if isinstance(value, str) else value)


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(value: int) -> bytes:
    """Return a number in zigzag coding, seven bits a byte."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)

"""Schemas of JSON, made from types of Python and put together by hand."""

from __future__ import annotations

import collections.abc
import types
import typing
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

Schema = dict[str, Any]
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def of(kind: Any) -> Schema:
    """Return the schema of a type of Python."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [of(one) for one in inner]}
    if kind is type(None):
        return {"type": "null"}
    if origin is tuple and Ellipsis not in inner:
        return {"type": "array", "prefixItems": [of(one) for one in inner]}
    if origin in (collections.abc.Sequence, tuple):
        return {"type": "array", "items": of(inner[0])}
    if origin is collections.abc.Mapping:
        return {"type": "object", "additionalProperties": of(inner[1])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return record(kind)
    return {}


def record(kind: Any, **more: Schema | None) -> Schema:
    """Return the schema of a record, with further fields; a field of ``None`` is left out."""
    hints = typing.get_type_hints(kind)
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else list(kind._fields)
    properties: dict[str, Schema | None] = {name: of(hints[name]) for name in names}
    properties |= more
    return obj(**properties)


def obj(**properties: Schema | None) -> Schema:
    """Return the schema of an object that has all of these."""
    kept = {name: schema for name, schema in properties.items() if schema is not None}
    return {"type": "object", "required": sorted(kept), "properties": kept}


def rows(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def either(*schemas: Schema) -> Schema:
    """Return the schema of what fits one of these."""
    return {"anyOf": [*schemas]}


def partly(required: Schema, **optional: Schema) -> Schema:
    """Return the schema of an object with further fields that may be missing."""
    return {**required, "properties": {**required["properties"], **optional}}


NULL: Schema = {"type": "null"}
TEXT, WHOLE, REAL, YES = of(str), of(int), of(float), of(bool)
TEXTS = rows(TEXT)
DEPRECATED: Schema = {"deprecated": True}

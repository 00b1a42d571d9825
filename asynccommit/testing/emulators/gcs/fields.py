"""Apply the parameter ``fields``, which selects members of a response.

``items(name,size),nextPageToken`` and ``items/name,nextPageToken`` are supported, and ``*`` for
all; a mask applies to each element of a list, so ``items`` needs no index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from asynccommit.testing.emulators.gcs.wire import bad_parameter
from asynccommit.testing.models.gcs.refusals import GcsRefusal

Mask: TypeAlias = Mapping[str, "Mask | None"]
"""Member -> mask of its value; ``None`` selects all."""

_TOKEN = re.compile(r"[^,/()]+|[,/()]")
_DEPTH = 20


@lru_cache(maxsize=512)
def read_mask(text: str) -> Mask:
    """Parse a mask. Raises ``GcsRefusal`` if it is invalid."""
    tokens = iter([*_TOKEN.findall(text), ""])
    mask, end = _read(tokens, 0)
    if end:
        raise _bad(text)
    return mask


def _bad(text: str) -> GcsRefusal:
    return bad_parameter("fields", f"Invalid field selection {text[:100]}")


def _read(tokens: Iterator[str], depth: int) -> tuple[Mask, str]:
    """Parse members up to the end or a bracket; return them and the delimiter."""
    found: dict[str, Mask | None] = {}
    while True:
        name = next(tokens, "")
        if not name or name in ",/()" or depth > _DEPTH:
            raise _bad(name)
        inner, end = _read_one(tokens, depth)
        found[name] = _merged(found[name], inner) if name in found else inner
        if end != ",":
            return found, end


def _read_one(tokens: Iterator[str], depth: int) -> tuple[Mask | None, str]:
    """Parse the mask after a name; return it and the next token."""
    token = next(tokens, "")
    if token == "(":
        inner, end = _read(tokens, depth + 1)
        if end != ")":
            raise _bad(end)
        return inner, next(tokens, "")
    if token == "/":
        name = next(tokens, "")
        if not name or name in ",/()" or depth > _DEPTH:
            raise _bad(name)
        below, end = _read_one(tokens, depth + 1)
        return {name: below}, end
    return None, token


def _merged(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return None
    both = dict(one)
    for name, inner in other.items():
        both[name] = _merged(both[name], inner) if name in both else inner
    return both


def select(value: Any, mask: Mask | None) -> Any:
    """Return the part of ``value`` that the mask selects."""
    if mask is None or "*" in mask:
        return value
    if isinstance(value, list):
        return [select(item, mask) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: select(value[name], inner) for name, inner in mask.items() if name in value}

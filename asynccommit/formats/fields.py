"""Reads JSON objects that others wrote, field by field, and names what is wrong."""

from __future__ import annotations

import re
from typing import Any

import orjson

from asynccommit.errors import ManifestError

MAX_LONG = 2**63 - 1
_QUOTED_INTEGER = re.compile(r"\s*(-?[0-9]{1,19})\s*", re.ASCII)
_NO_NAME = re.compile("[\x00-\x1f/\x7f\ud800-\udfff]")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def as_integer(value: object) -> int | None:
    """Return a JSON value as a Java ``long``, or ``None`` if it is none.

    An integer in a quoted string is one, as for Jackson; a boolean or a float is not.
    """
    if isinstance(value, str):
        found = _QUOTED_INTEGER.fullmatch(value)
        value = int(found[1]) if found else None
    if type(value) is not int or not -MAX_LONG - 1 <= value <= MAX_LONG:
        return None
    return value


def load_object(data: bytes, path: str) -> Fields:
    """Read a JSON object. Raises ``ManifestError`` if ``data`` is anything else."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ManifestError(path, f"not valid JSON: {error}") from None
    return Fields(value, path)


class Fields:
    """One JSON object of the file ``path``.

    Every method raises ``ManifestError`` if the field holds what it must not. A ``null`` is
    wrong everywhere, except where Jackson reads it as the default: in ``integer``.

    Args:
        value: what should be an object.
        path: the file, for messages.
        where: the place in the file, for messages: ``"files[3]."``.
    """

    def __init__(self, value: object, path: str, where: str = "") -> None:
        self.path = path
        self.where = where
        if not isinstance(value, dict):
            what = where.rstrip(".") or "the content"
            raise ManifestError(path, f"{what} is {_kind(value)}, not an object")
        self._value: dict[str, Any] = value

    def wrong(self, key: str, problem: str) -> ManifestError:
        """Return an error that names the field."""
        return ManifestError(self.path, f"{self.where}{key} {problem}")

    def get(self, key: str, default: object = None) -> Any:
        """Return whatever is there."""
        return self._value.get(key, default)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string without NUL; one that is not empty if there is no default."""
        value = self._value.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"is {_kind(value)}, not a string")
        if not value and default is None:
            raise self.wrong(key, "is empty")
        if _NO_TEXT.search(value):
            raise self.wrong(key, "holds NUL or a lone surrogate")
        return value

    def optional(self, key: str) -> str | None:
        """Return a string, or ``None`` if it is missing, null or empty."""
        if self._value.get(key) is None:
            return None
        return self.text(key, "") or None

    def name(self, key: str) -> str:
        """Return a string that can be the name of a file."""
        value = self.text(key)
        if value in (".", "..") or _NO_NAME.search(value):
            raise self.wrong(key, f"is {value[:100]!r}, not a plain name")
        return value

    def integer(self, key: str, default: int = 0, minimum: int = -MAX_LONG - 1) -> int:
        """Return an integer that a Java ``long`` can hold."""
        value = self._value.get(key)
        number = default if value is None else as_integer(value)
        if number is None:
            raise self.wrong(key, f"is {_kind(value)}, not an integer")
        if number < minimum:
            raise self.wrong(key, f"is {number}, less than {minimum}")
        return number

    def boolean(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._value.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"is {_kind(value)}, not true or false")
        return value

    def items(self, key: str) -> list[Any]:
        """Return a list; an empty one if the field is missing."""
        value = self._value.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, f"is {_kind(value)}, not a list")
        return value

    def object(self, key: str) -> dict[str, Any]:
        """Return an object; an empty one if the field is missing."""
        value = self._value.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"is {_kind(value)}, not an object")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """Return an object whose values are strings."""
        value = self.object(key)
        for name, text in value.items():
            if not isinstance(text, str):
                raise self.wrong(f"{key}.{name[:100]!r}", f"is {_kind(text)}, not a string")
        return value


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a float", str: "a string"}
    kinds |= {list: "a list", dict: "an object", type(None): "null or missing"}
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    return kinds.get(type(value), "unknown")

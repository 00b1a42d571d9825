"""Read JSON objects of other writers; errors name the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NoReturn

import orjson

from asynccommit.errors import ManifestError

MAX_LONG = 2**63 - 1
MAX_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999, the maximum of many programs."""
_QUOTED_INTEGER = re.compile(r"\s*(-?[0-9]{1,19})\s*", re.ASCII)
_NO_NAME = re.compile("[\x00-\x1f/\x7f\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def as_integer(value: object) -> int | None:
    """Return a JSON value as a Java ``long``, or ``None`` if it is not one.

    An integer in a quoted string counts, as it does for Jackson; a boolean or a float does not.
    """
    if isinstance(value, str):
        found = _QUOTED_INTEGER.fullmatch(value)
        value = int(found[1]) if found else None
    if type(value) is not int or not -MAX_LONG - 1 <= value <= MAX_LONG:
        return None
    return value


def are_paths(values: Iterable[Any], absolute: bool = False) -> bool:
    """Return whether all are safe paths: no ``..``, no empty segment, no NUL.

    A segment ``.`` is refused too.

    The check is one operation in C, because a job has millions of paths. Lone surrogates are
    allowed, because file names may contain them.

    Args:
        values: any JSON values.
        absolute: whether a path may also begin with a slash.
    """
    values = list(values)
    if not {*map(type, values)} <= {str}:
        return False
    text = "\0".join(("", *values, ""))
    if text.count("\0") != len(values) + 1:
        return False
    names = (text.replace("\0/", "\0") if absolute else text).replace("/", "\0")
    if "\0\0" in names:
        return False
    return "\0." not in names or not ("\0.\0" in names or "\0..\0" in names)


def dump_object(value: Mapping[str, Any], path: str, indent: bool = True) -> bytes:
    """Return the JSON of an object, with lone surrogates escaped: they are not valid UTF-8.

    Args:
        value: the object to encode.
        path: path of the file, for messages.
        indent: whether to indent the JSON for people.

    Raises:
        ManifestError: the object would be read back as a different one.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    except orjson.JSONEncodeError:
        pass
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2 if indent else None)
    except (TypeError, ValueError) as error:
        raise ManifestError(path, f"cannot be written: {error}") from error
    if _HALVES.search(text):  # escaped, the two would be read as one character
        raise ManifestError(path, "cannot be written: it holds a surrogate pair as two characters")
    return text.encode("utf-8", "backslashreplace")


def load_object(data: bytes, path: str, *, surrogates: bool = False) -> JsonFields:
    """Read a JSON object.

    Args:
        data: the content.
        path: the file, for messages.
        surrogates: whether texts may contain lone surrogates, as file names that are not UTF-8 do.

    Raises:
        ManifestError: ``data`` is not a JSON object.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if not surrogates or b"\\ud" not in data.lower():
            raise ManifestError(path, f"not valid JSON: {error}") from None
        value = _load_surrogates(data, path)
    return JsonFields(value, path)


def check_size(data: bytes, path: str, limit: int) -> None:
    """Raise ``ManifestError`` for a file of more than ``limit`` bytes."""
    if len(data) > limit:
        raise ManifestError(path, f"holds {len(data)} bytes, more than {limit}")


def _load_surrogates(data: bytes, path: str) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ManifestError(path, f"not valid JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


class JsonFields:
    """One JSON object of the file ``path``.

    Every method raises ``ManifestError`` if the field is invalid. A ``null`` is invalid everywhere
    except in ``integer``, where Jackson reads it as the default.

    Args:
        value: the value that should be an object.
        path: the file, for messages.
        where: position in the file, for messages, such as ``"files[3]."``.
    """

    def __init__(self, value: object, path: str, where: str = "") -> None:
        self.path = path
        self.where = where
        if not isinstance(value, dict):
            what = where.rstrip(".") or "the content"
            raise ManifestError(path, f"{what} is {kind_of(value)}, not an object")
        self._value: dict[str, Any] = value

    def wrong(self, key: str, problem: str) -> ManifestError:
        """Return an error that names the field."""
        return ManifestError(self.path, f"{self.where}{key} {problem}")

    def get(self, key: str, default: object = None) -> Any:
        """Return the value of a field, whatever its type."""
        return self._value.get(key, default)

    def is_type(self, name: str) -> None:
        """Raise ``ManifestError`` unless the file is of this type."""
        if self.text("type") != name:
            raise self.wrong("type", f"is {self._value['type'][:200]!r}, not {name!r}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string without NUL, and not empty if there is no default."""
        value = self._value.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"is {kind_of(value)}, not a string")
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

    def any_text(self, key: str) -> str:
        """Return a required string that may be empty."""
        return self.text(key, "" if key in self._value else None)

    def name(self, key: str) -> str:
        """Return a string that is valid as the name of a file."""
        value = self.text(key)
        if value in (".", "..") or _NO_NAME.search(value):
            raise self.wrong(key, f"is {value[:100]!r}, not a plain name")
        return value

    def integer(self, key: str, default: int = 0, minimum: int = -MAX_LONG - 1) -> int:
        """Return an integer in the range of a Java ``long``."""
        value = self._value.get(key)
        number = default if value is None else as_integer(value)
        if number is None:
            raise self.wrong(key, f"is {kind_of(value)}, not an integer")
        if number < minimum:
            raise self.wrong(key, f"is {number}, less than {minimum}")
        return number

    def count(self, key: str, minimum: int = 0, maximum: int = MAX_LONG) -> int:
        """Return a required integer within bounds."""
        value = self._value.get(key)
        if type(value) is not int:
            raise self.wrong(key, f"is {kind_of(value)}, not an integer")
        if not minimum <= value <= maximum:
            what = f"less than {minimum}" if value < minimum else f"more than {maximum}"
            raise self.wrong(key, f"is {what}")
        return value

    def seconds(self, key: str) -> float:
        """Return a required duration that is positive and finite."""
        value = self._value.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, f"is {kind_of(value)}, not a number")
        if not (0 < value <= MAX_LONG and isfinite(value)):
            raise self.wrong(key, "is not a duration")
        return float(value)

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """Return a boolean, which is required if there is no default."""
        value = self._value.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"is {kind_of(value)}, not true or false")
        return value

    def items(self, key: str) -> list[Any]:
        """Return a list; an empty one if the field is missing."""
        value = self._value.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, f"is {kind_of(value)}, not a list")
        return value

    def rows(self, key: str) -> list[Any]:
        """Return a required list."""
        if key not in self._value:
            raise self.wrong(key, "is missing")
        return self.items(key)

    def object(self, key: str) -> dict[str, Any]:
        """Return an object; an empty one if the field is missing."""
        value = self._value.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"is {kind_of(value)}, not an object")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """Return an object whose values are strings."""
        value = self.object(key)
        for name, text in value.items():
            if not isinstance(text, str):
                raise self.wrong(f"{key}.{name[:100]!r}", f"is {kind_of(text)}, not a string")
        return value

    def names(self, key: str) -> dict[str, str]:
        """Return a required object that maps plain names to plain names."""
        value = self.texts(key)
        if key not in self._value:
            raise self.wrong(key, "is missing")
        for name, text in value.items():
            for part in (name, text):
                if part in ("", ".", "..") or _NO_NAME.search(part):
                    problem = f"holds {part[:100]!r}, not a plain name"
                    raise self.wrong(f"{key}.{name[:100]!r}", problem)
        return value


def kind_of(value: object) -> str:
    """Return the name of a JSON value's type, for messages."""
    kinds = {bool: "a boolean", int: "a number", float: "a float", str: "a string"}
    kinds |= {list: "a list", dict: "an object", type(None): "null or missing"}
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    return kinds.get(type(value), "unknown")

"""Parse the values of options; the key is for the error message.

All raise ``OptionError`` that names key and value.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable
from enum import Enum

from asynccommit.errors import OptionError
from asynccommit.options.checked import bounds_of, check_field, show

OURS = "asynccommit."
"""How the keys begin that only this package has."""

Reader = Callable[[str, str], object]

_SIZE = re.compile(r"([0-9]{1,18})\s*([kmgtpKMGTP]?)[bB]?", re.ASCII)
_RUNNER = re.compile("auto|none|(processes|dask|ray|spark)(:([1-9]|[1-5][0-9]|6[0-4]))?", re.ASCII)
_UNITS = ("", "k", "m", "g", "t", "p")


class OptionWarning(UserWarning):
    """Warning about an unknown option, or one without effect."""


def within_bounds(kind: type, field_of: str, key: str, value: object) -> object:
    """Return the value of a key, checked and coerced for its field.

    A number above the maximum is lowered with an ``OptionWarning`` if the key belongs to another
    product, where a large number means "many". Raises ``OptionError`` that names the key.
    """
    bounds = bounds_of(kind, field_of)
    foreign = not key.startswith(OURS)
    if bounds is not None and foreign and isinstance(value, int | float) and value > bounds.high:
        most = type(value)(bounds.high)
        text = f"{key} is {show(value)}, above the maximum: {most:,} is used"
        warnings.warn(text, OptionWarning, 4)
        return most
    return check_field(kind, field_of, value, key)


def boolean(key: str, value: str) -> bool:
    """Read ``true`` or ``false``, in any case."""
    text = value.strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"{key} is {show(value)}: expected true or false")
    return text == "true"


def integer(key: str, value: str) -> int:
    """Read a whole number."""
    try:
        return int(value.strip())
    except ValueError:
        raise OptionError(f"{key} is {show(value)}: expected a whole number") from None


def count(key: str, value: str) -> int:
    """Read a whole number of at least 1."""
    number = integer(key, value)
    if number < 1:
        raise OptionError(f"{key} is {show(value)}: expected a number of at least 1")
    return number


def version(key: str, value: str) -> int:
    """Read a version of FileOutputCommitter: 1 or 2."""
    if value.strip() not in ("1", "2"):
        raise OptionError(f"{key} is {show(value)}: expected 1 or 2")
    return int(value)


def workers(key: str, value: str) -> int | None:
    """Read a number of workers; a number below one means the default."""
    number = integer(key, value)
    return number if number > 0 else None


def runner(key: str, value: str) -> str:
    """Read the processes that take part in a commit: ``dask:4``."""
    name = value.strip().lower()
    if not _RUNNER.fullmatch(name):
        text = (
            "expected auto, none, processes, dask, ray or spark; or processes:N with N from 1 to 64"
        )
        raise OptionError(f"{key} is {show(value)}: {text}")
    return name


def threads(key: str, value: str) -> int:
    """Read a thread count as the S3A committers do: 0 is one, -2 two per core."""
    number = integer(key, value)
    return max(1, number if number >= 0 else -number * (os.cpu_count() or 1))


def size(key: str, value: str) -> int:
    """Read a number of bytes such as ``67108864``, ``64M`` or ``1G``, in powers of 1024."""
    found = _SIZE.fullmatch(value.strip())
    number = 0 if found is None else int(found[1]) << (10 * _UNITS.index(found[2].lower()))
    if not 1 <= number < 1 << 63:
        raise OptionError(f"{key} is {show(value)}: expected a size such as 64M")
    return number


def rate(key: str, value: str) -> float | None:
    """Read a number of requests a second; 0 means no limit."""
    try:
        number = float(value)
    except ValueError:
        raise OptionError(
            f"{key} is {show(value)}: expected requests per second, or 0 for no limit"
        ) from None
    if not 0 <= number < math.inf:
        raise OptionError(
            f"{key} is {show(value)}: expected requests per second, or 0 for no limit"
        )
    return number or None


def text(key: str, value: str) -> str | None:
    """Read any text; an empty one is ``None``."""
    return value.strip() or None


def seconds(key: str, value: str) -> float:
    """Read a number of seconds, at most a day."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 86_400:
        raise OptionError(f"{key} is {show(value)}: expected seconds, from 1 to 86400")
    return number


def one_of(kind: type[Enum]) -> Reader:
    """Return a reader for the values of an enumeration, in any case."""

    def read(key: str, value: str) -> Enum:
        try:
            return kind(value.strip().lower())
        except ValueError:
            expected = ", ".join(choice.value for choice in kind)
            raise OptionError(f"{key} is {show(value)}: expected one of {expected}") from None

    return read

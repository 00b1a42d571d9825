"""Parse values of a store's options, which may be given as text."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from asynccommit.errors import OptionError
from asynccommit.options.checked import show
from asynccommit.options.job import OptionWarning

T = TypeVar("T", int, float)

CONNECTIONS = 4096
"""The maximum number of connections of a store."""
LONGEST = 1e6
"""The exclusive upper bound for seconds, and for requests a second."""
LARGEST = 5 << 30
"""The maximum number of bytes of one request."""

WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "1", "t", "yes"), True),
    **dict.fromkeys(("false", "0", "f", "no"), False),
}
"""The accepted spellings of true and false, in lower case."""


def flag(told: Mapping[str, Any], name: str) -> bool | None:
    """Return whether the option ``name`` is true; ``None`` if it is not given.

    Raises:
        OptionError: the value is neither true nor false.
    """
    if name not in told:
        return None
    found = WORDS.get(str(told[name]).strip().lower())
    if found is None:
        raise OptionError(f"{name} is {show(told[name])}: say true or false")
    return found


def count(told: Mapping[str, Any], name: str, most: int = (1 << 31) - 1) -> int | None:
    """Return the option ``name`` as a whole number; ``None`` if it is missing.

    Raises:
        OptionError: the value is not a whole number from 1 to ``most``.
    """
    if name not in told:
        return None
    value = told[name]
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        found = 0
    if isinstance(value, bool) or (isinstance(value, float) and value != found):
        found = 0
    if not 0 < found <= most:
        raise OptionError(f"{name} is {show(told[name])}: say a whole number from 1 to {most:,}")
    return found


def number(told: Mapping[str, Any], name: str, what: str) -> float | None:
    """Return the option ``name`` as a number above 0 and below a million.

    Returns ``None`` if the option is missing.

    Raises:
        OptionError: the value is invalid; the message says that ``what`` is expected.
    """
    if name not in told:
        return None
    try:
        found = float(told[name])
    except (TypeError, ValueError, OverflowError):
        found = 0.0
    if not 0.0 < found < LONGEST:
        text = f"say {what}, above 0 and below {LONGEST:,.0f}"
        raise OptionError(f"{name} is {show(told[name])}: {text}")
    return found


def at_most(key: str, found: T, most: T) -> T:
    """Return a Hadoop value; reduce it to ``most`` with an ``OptionWarning``.

    A configuration that works there is not refused for a number that only means "many".
    """
    if found <= most:
        return found
    text = f"{key} is {show(found)}, which is taken for {most:,}, the most that is possible"
    warnings.warn(text, OptionWarning, stacklevel=3)
    return most

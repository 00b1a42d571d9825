"""Values of a store's options, which may be given as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asynccommit.errors import OptionError

WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "1", "t", "yes"), True),
    **dict.fromkeys(("false", "0", "f", "no"), False),
}
"""What says yes or no, in lower case."""


def flag(told: Mapping[str, Any], name: str) -> bool | None:
    """Return whether the option ``name`` is true; ``None`` if it is not given.

    Raises:
        OptionError: it is neither true nor false.
    """
    if name not in told:
        return None
    found = WORDS.get(str(told[name]).strip().lower())
    if found is None:
        raise OptionError(f"{name} is {_show(told[name])}: say true or false")
    return found


def count(told: Mapping[str, Any], name: str) -> int | None:
    """Return the whole number that the option ``name`` says; ``None`` if it is not given.

    Raises:
        OptionError: it is no number of at least 1.
    """
    if name not in told:
        return None
    try:
        found = int(told[name])
    except (TypeError, ValueError, OverflowError):
        found = 0
    if not 0 < found < 1 << 31:
        raise OptionError(f"{name} is {_show(told[name])}: say a whole number of at least 1")
    return found


def number(told: Mapping[str, Any], name: str, what: str) -> float | None:
    """Return the number above 0 that the option ``name`` says; ``None`` if it is not given.

    Raises:
        OptionError: it is none; the message says that it is ``what``.
    """
    if name not in told:
        return None
    try:
        found = float(told[name])
    except (TypeError, ValueError, OverflowError):
        found = 0.0
    if not 0.0 < found < 1e6:
        raise OptionError(f"{name} is {_show(told[name])}: say {what}")
    return found


def _show(value: object) -> str:
    return repr(value)[:100]

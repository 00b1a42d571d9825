"""Read settings from JSON with validation; errors name the invalid field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from asynccommit.errors import OptionError

_MISSING = object()


class SettingsFields:
    """The fields of a JSON object; ``done`` rejects unread ones.

    Args:
        value: the supposed object.
        name: name of the object, for messages: ``faults[2]``.
    """

    def __init__(self, value: object, name: str) -> None:
        if not isinstance(value, Mapping):
            raise OptionError(f"{name} is {_show(value)}: expected an object")
        self.name = name
        self._left: dict[str, Any] = {str(key): item for key, item in value.items()}
        self._known: list[str] = []

    def done(self) -> None:
        """Reject unread fields."""
        for key in self._left:
            expected = ", ".join(sorted(self._known))
            raise OptionError(f"{self.name}.{key} is not a field; there are {expected}")

    def any(self, key: str, default: object = _MISSING) -> Any:
        """Return a field unchecked."""
        self._known.append(key)
        value = self._left.pop(key, None)
        if value is not None:
            return value
        if default is _MISSING:
            raise OptionError(f"{self.name}.{key} is missing")
        return default

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text."""
        value = self.any(key, _MISSING if default is None else default)
        if not isinstance(value, str):
            raise OptionError(f"{self.name}.{key} is {_show(value)}: expected a string")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """Return one of the given words."""
        value = self.text(key, default)
        if value not in choices:
            raise OptionError(
                f"{self.name}.{key} is {_show(value)}: expected one of {', '.join(choices)}"
            )
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a non-negative number."""
        value = self.any(key, _MISSING if default is None else default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise OptionError(f"{self.name}.{key} is {_show(value)}: expected a number")
        if not (math.isfinite(value) and value >= 0):
            raise OptionError(f"{self.name}.{key} is {value}: expected a number of at least 0")
        return float(value)

    def number_or_none(self, key: str) -> float | None:
        """Return a number, or ``None`` if missing."""
        return self.number(key) if self._left.get(key) is not None else self.any(key, None)

    def share(self, key: str, default: float | None = None) -> float:
        """Return a number from 0 to 1."""
        value = self.number(key, default)
        if value > 1:
            raise OptionError(f"{self.name}.{key} is {value}: expected a number from 0 to 1")
        return value

    def count(self, key: str, default: int, least: int = 0) -> int:
        """Return an integer."""
        value = self.number(key, default)
        if value != int(value) or value < least:
            raise OptionError(
                f"{self.name}.{key} is {value:g}: expected a whole number of at least {least}"
            )
        return int(value)

    def count_or_none(self, key: str) -> int | None:
        """Return an integer, or ``None`` if missing."""
        return self.count(key, 0) if self._left.get(key) is not None else self.any(key, None)

    def text_or_none(self, key: str) -> str | None:
        """Return a text, or ``None`` if missing."""
        return self.text(key) if self._left.get(key) is not None else self.any(key, None)

    def pattern(self, key: str) -> str:
        """Return a regular expression, ``""`` if missing."""
        value = self.text(key, "")
        try:
            re.compile(value)
        except re.error as error:
            raise OptionError(
                f"{self.name}.{key} is {_show(value)}, not a regular expression: {error}"
            ) from None
        return value

    def items(self, key: str) -> list[Any]:
        """Return a list, empty if missing."""
        value = self.any(key, [])
        if not isinstance(value, list):
            raise OptionError(f"{self.name}.{key} is {_show(value)}: expected a list")
        return value

    def inner(self, key: str) -> SettingsFields | None:
        """Return the fields of a nested object, or ``None`` if missing."""
        value = self.any(key, None)
        return None if value is None else SettingsFields(value, f"{self.name}.{key}")


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

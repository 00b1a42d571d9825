"""Checks of the arguments that functions of engines pass on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from asynccommit.errors import OptionError


def refuse(given: Iterable[str], remedies: Mapping[str, str]) -> None:
    """Raise ``OptionError`` for an argument of the engine that a job sets.

    Args:
        given: the names of the arguments.
        remedies: name of such an argument -> what the caller can do instead.
    """
    for name in sorted(given):
        if name in remedies:
            raise OptionError(f"{name} is not an argument here: {remedies[name]}")

"""What the tables of scenarios are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """One scenario.

    Attributes:
        what: what is given, and what comes of it.
        tests: file below ``tests/`` -> names of the tests in it; none with a reason in ``but``.
        but: what is otherwise here, or why there is no test.
    """

    what: str
    tests: Mapping[str, str] = {}
    but: str = ""


class Section(NamedTuple):
    """Scenarios of one source.

    Attributes:
        word: what docstrings call one of them.
        numbers: the first and the last.
        rows: number -> scenario.
    """

    word: str
    numbers: tuple[int, int]
    rows: Mapping[int, Row]

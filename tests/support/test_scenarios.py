"""Scenarios that committers of others are tested with, and the tests that show them here.

``Scenario 9`` or ``Scenarios 9, 10 and 12`` in a test's docstring says what it shows. The tables in
``tests/support/scenarios_*.py`` name the same tests by number, so that one finds them and none gets
lost. One section more is a table and an entry in ``SECTIONS``.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.support.scenarios import Section
from tests.support.scenarios_others import OTHERS
from tests.support.scenarios_s3a import S3A
from tests.support.scenarios_source import SURPRISES

TESTS = Path(__file__).parents[1]

SECTIONS = {"s3a": S3A, "others": OTHERS, "surprises": SURPRISES}


@cache
def said(word: str) -> Mapping[int, set[tuple[str, str]]]:
    """Return the tests whose docstrings name a number after ``word``: number -> file and test."""
    named = re.compile(rf"\b{word}s? (\d+(?:(?:, | and )\d+)*)\b")
    found: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if word in text else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                numbers = " ".join(named.findall(ast.get_docstring(node) or ""))
                for number in re.findall(r"\d+", numbers):
                    found[int(number)].add((path.relative_to(TESTS).as_posix(), node.name))
    return found


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_every_scenario_has_a_row(section: Section) -> None:
    """No number is left out, and each has a test or a reason."""
    first, last = section.numbers

    assert [*section.rows] == [*range(first, last + 1)]
    assert [number for number, row in section.rows.items() if not (row.tests or row.but)] == []


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_rows_and_docstrings_name_the_same_tests(section: Section) -> None:
    """Each test of a row is there and says its number, and each that says one is in its row."""
    rows = {
        number: {(file, name) for file, names in row.tests.items() for name in names.split()}
        for number, row in section.rows.items()
    }

    assert rows == {number: said(section.word).get(number, set()) for number in rows}

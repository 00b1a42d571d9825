"""Tables of many rows: columns that are checked at once, and the row that a message names."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.errors import ManifestError
from asynccommit.formats.fields import MAX_LONG, JsonFields
from asynccommit.formats.tables import (
    Column,
    are_etags,
    are_names,
    are_sizes,
    are_words,
    check_head,
    check_table,
)

WORD, SIZE = Column("word", are_words, "a word"), Column("size", are_sizes, "a size")


@pytest.mark.parametrize(
    "check,good,bad",
    [
        (are_sizes, [0, MAX_LONG], [-1, MAX_LONG + 1, True, 1.0, "1", None]),
        (are_etags, ["a", None, '"x"', "a b"], ["", 1, ["a"]]),
        (are_words, ["a", " ", "é 日", "a/b"], ["", "a\nb", "\x7f", "a\0", "\ud800", 1, None]),
        (are_names, ["a", "a b", "..."], ["", ".", "..", "a/b", "/", "a\n", "\ud800", 1, None]),
    ],
)
def test_checks(check: Any, good: list[Any], bad: list[Any]) -> None:
    """A check takes what is good, and sees one that is not, wherever it is."""
    assert check(good)
    for value in bad:
        assert not check([value])
        assert not check([*good, value])
        assert not check([value, *good])


def test_rows() -> None:
    """Rows come back as tuples, a table of one column as its values."""
    fields = JsonFields({"t": [["a", 1], ["b", 2]], "w": ["a", "b"], "none": []}, "x")

    assert check_table(fields, "t", [WORD, SIZE]) == [("a", 1), ("b", 2)]
    assert check_table(fields, "w", [WORD]) == ["a", "b"]
    assert check_table(fields, "none", [WORD, SIZE]) == []


def test_rows_to_be_written() -> None:
    """Rows that are to be written are tuples, and are not copied."""
    rows = [("a", 1), ("b", 2)]

    assert check_table(JsonFields({"t": rows}, "x"), "t", [WORD, SIZE], tuple) is rows


@pytest.mark.parametrize(
    "rows,reason",
    [
        ([["a", 1], ["", 2]], "t[1].word is the string '', not a word"),
        ([["a", 1], ["b", -2]], "t[1].size is a number, not a size"),
        ([["a", 1], ["b"]], "t[1] is not a row of 2 fields"),
        ([["a", 1], "bc"], "t[1] is not a row of 2 fields"),
        ([["a", 1], None], "t[1] is not a row of 2 fields"),
        ([None, ["a", 1]], "t[0] is not a row of 2 fields"),
        ({}, "t is an object, not a list"),
    ],
)
def test_a_wrong_row_is_named(rows: Any, reason: str) -> None:
    """A message names the first row that is wrong, and the field where there is one."""
    with pytest.raises(ManifestError) as caught:
        check_table(JsonFields({"t": rows}, "x"), "t", [WORD, SIZE])
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", ["t", "none"])
def test_a_missing_table(name: str) -> None:
    """A table that is not there is not an empty one."""
    with pytest.raises(ManifestError, match=f"{name} is missing"):
        check_table(JsonFields({}, "x"), name, [WORD])


@pytest.mark.parametrize(
    "change,reason",
    [
        ({"type": "other"}, "type is 'other', not 'kind'"),
        ({"plan": "q"}, "plan is 'q', not 'p'"),
        ({"plan": "../p"}, "plan is '../p', not a plain name"),
        ({"index": 4}, "index is 4, not 3"),
        ({"index": "3"}, "index is the string '3', not an integer"),
    ],
)
def test_head(change: dict[str, Any], reason: str) -> None:
    """A chunk is of one type, one plan and one place in it."""
    good = {"type": "kind", "plan": "p", "index": 3}
    check_head(JsonFields(good, "x"), "kind", "p", 3)
    with pytest.raises(ManifestError) as caught:
        check_head(JsonFields(good | change, "x"), "kind", "p", 3)
    assert caught.value.reason == reason

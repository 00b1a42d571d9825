"""Values of options, which may be given as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.stores.values import count, flag, number


@pytest.mark.parametrize(
    "value, expected",
    [(True, True), ("True", True), (" yes", True), (1, True), (False, False), ("f", False)],
)
def test_a_flag_is_read(value: Any, expected: bool) -> None:
    """Python's, and what a command line or a file of settings has."""
    assert flag({"name": value}, "name") is expected


def test_what_is_not_given_is_none() -> None:
    """So that the caller tells it from every value."""
    assert (flag({}, "x"), count({}, "x"), number({}, "x", "it")) == (None, None, None)


@pytest.mark.parametrize("value", ["perhaps", 2, [True], b"true", ""])
def test_what_is_no_flag_is_named(value: Any) -> None:
    """The message has option and value."""
    with pytest.raises(OptionError, match=r"name is .*: say true or false"):
        flag({"name": value}, "name")


@pytest.mark.parametrize("value", [0, -1, "many", [3], "1.5", float("inf"), 1 << 31, "9" * 400])
def test_what_is_no_count_is_named(value: Any) -> None:
    """A number of something begins with one, and ends somewhere."""
    with pytest.raises(OptionError, match=r"name is .*: say a whole number") as caught:
        count({"name": value}, "name")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [0, -1, "soon", [3], "nan", float("inf"), 1e6, "9" * 400])
def test_what_is_no_number_is_named(value: Any) -> None:
    """Neither nothing nor without end."""
    with pytest.raises(OptionError, match=r"name is .*: say a number of seconds"):
        number({"name": value}, "name", "a number of seconds")


@given(st.integers(1, 10**6 - 1))
def test_numbers_are_read_as_text_too(value: int) -> None:
    """Whatever the command line made of them."""
    assert count({"name": str(value)}, "name") == count({"name": value}, "name") == value
    assert number({"name": str(value)}, "name", "it") == float(value)

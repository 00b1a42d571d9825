"""Values of options, which may be given as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.stores.http.options import CONNECTIONS, at_most, count, flag, number


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
    with pytest.raises(OptionError, match=r"name is .*: expected true or false"):
        flag({"name": value}, "name")


@pytest.mark.parametrize(
    "value", [0, -1, "many", [3], "1.5", 1.5, True, float("inf"), 1 << 31, "9" * 400]
)
def test_what_is_no_count_is_named(value: Any) -> None:
    """A number of something begins with one, and ends somewhere."""
    with pytest.raises(OptionError, match=r"name is .*: expected a whole number") as caught:
        count({"name": value}, "name")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", [0, -1, "soon", [3], "nan", float("inf"), 1e6, "9" * 400])
def test_what_is_no_number_is_named(value: Any) -> None:
    """Neither nothing nor without end."""
    with pytest.raises(OptionError, match=r"name is .*: expected a number of seconds"):
        number({"name": value}, "name", "a number of seconds")


def test_credentials_in_a_value_are_not_shown() -> None:
    """A connection string given for a number, say."""
    for read in (flag, count):
        with pytest.raises(
            OptionError, match=r"name is 'AccountName=a;AccountKey=\*\*\*': expected"
        ):
            read({"name": "AccountName=a;AccountKey=" + "YWJj" * 40}, "name")


@given(st.integers(1, 10**6 - 1))
def test_numbers_are_read_as_text_too(value: int) -> None:
    """Whatever the command line made of them."""
    assert count({"name": str(value)}, "name") == count({"name": value}, "name") == value
    assert number({"name": str(value)}, "name", "it") == float(value)


def test_more_than_a_store_takes_is_refused() -> None:
    """The message has the bound."""
    with pytest.raises(OptionError, match=r"max_concurrency is 5000: .* from 1 to 4,096"):
        count({"max_concurrency": 5000}, "max_concurrency", CONNECTIONS)


def test_hadoop_s_number_is_lowered() -> None:
    """What a cluster's configuration says for "many" is taken for the most, with a warning."""
    assert at_most("fs.s3a.connection.maximum", 1000, CONNECTIONS) == 1000
    with pytest.warns(OptionWarning, match=r"fs\.s3a\.connection\.maximum is 5000"):
        assert at_most("fs.s3a.connection.maximum", 5000, CONNECTIONS) == CONNECTIONS

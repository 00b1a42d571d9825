"""Names of the Data Source: those that Spark gives."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from asynccommit.formats.partition_names import directory, escape, file_name, partition_value


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "__HIVE_DEFAULT_PARTITION__"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        (" ", " "),
        (True, "true"),
        (-7, "-7"),
        (dt.date(987, 6, 5), "0987-06-05"),
        (dt.datetime(2026, 7, 31, 1, 2, 3), "2026-07-31 01:02:03"),
        (dt.datetime(2026, 7, 31, 1, 2, 3, 450_000), "2026-07-31 01:02:03.45"),
        (Decimal("1E+2"), "100"),
        (Decimal("0.000000001"), "0.000000001"),
    ],
)
def test_value_of_a_partition(value: object, text: str) -> None:
    """A value has the text that Spark's cast to string gives it."""
    assert partition_value(value) == text


def test_what_is_escaped() -> None:
    """What Spark escapes is escaped, and nothing else."""
    plain = "abcXYZ019 -_.,;!@$&()+<>|~`}é中"

    assert escape(plain) == plain
    assert escape("a/b=c%d:e\x01\x7f") == "a%2Fb%3Dc%25d%3Ae%01%7F"
    assert escape("\"#'*?\\{[]^") == "%22%23%27%2A%3F%5C%7B%5B%5D%5E"


def test_directory_of_two_columns() -> None:
    """Names of columns are escaped as values are."""
    assert directory(("a b", "c/d"), (1, "x=y")) == "a b=1/c%2Fd=x%3Dy"


@pytest.mark.parametrize("value", [".", "..", "../x", "/etc"])
def test_value_leads_nowhere(value: str) -> None:
    """A value is never a directory of its own, whatever it says."""
    assert directory(("p",), (value,)).count("/") == 0
    assert directory(("p",), (value,)).startswith("p=")


def test_name_of_a_file() -> None:
    """A file has Spark's name, with a dot before its number in a partition."""
    given = (3, "tag", 12, ".snappy.parquet")

    assert file_name(*given, partitioned=False) == "part-00003-tag-c012.snappy.parquet"
    assert file_name(*given, partitioned=True) == "part-00003-tag.c012.snappy.parquet"

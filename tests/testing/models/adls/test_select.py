"""The language of queries of content."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.select import NoColumnError, read_statement
from tests.testing.models.adls.model import refused

ROW = {"a": "10", "b b": "x", "_3": None, "d": 4}


@pytest.mark.parametrize(
    "condition,selected",
    [
        ("a = 10", True),
        ("a = '10'", True),
        ("a < 9", False),  # as numbers, not as text
        ("a < '9'", True),
        ("_1 >= 10 AND d <> 5", True),
        ("a = 1 OR \"b b\" = 'x'", True),
        ("NOT (a = 1 or a = 10)", False),
        ("_3 IS NULL and a is not null", True),
        ("_3 = 1", False),
        ("\"b b\" = 'it''s'", False),
        ('"b b" > 1', False),
        ("d != -4.5", True),
    ],
)
def test_condition(condition: str, selected: bool) -> None:
    """Numbers are compared as numbers, nothing equals null, NOT binds before AND before OR."""
    statement = read_statement(f"select * from BlobStorage where {condition};")

    assert statement.where is not None
    assert bool(statement.where(ROW)) == selected


def test_columns_and_limit() -> None:
    """Columns are names or positions; a sparse record may lack one."""
    statement = read_statement('SELECT "b b", _1 FROM any LIMIT 3')

    assert statement.select(ROW) == {"b b": "x", "_1": "10"}
    assert statement.limit == 3
    assert read_statement("SELECT a, z FROM x").select({"a": 1}, sparse=True) == {"a": 1}
    with pytest.raises(NoColumnError, match="'_9'"):
        read_statement("SELECT _9 FROM x").select(ROW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT",
        "SELECT * FROM",
        "DELETE FROM x",
        "SELECT COUNT(*) FROM x",
        "SELECT a FROM x[*].y",
        "SELECT a FROM x WHERE",
        "SELECT a FROM x WHERE a",
        "SELECT a FROM x WHERE a LIKE 'b'",
        "SELECT a FROM x LIMIT -1",
        "SELECT a FROM x WHERE (a = 1",
        "SELECT a FROM x; SELECT",
        "SELECT from FROM x",
        "SELECT a b FROM x",
    ],
)
def test_what_is_not_supported_is_refused(text: str) -> None:
    """Functions, paths and anything else that is not known."""
    with refused(400, "InvalidInput"):
        read_statement(text)


def test_query_that_is_too_long() -> None:
    """The service takes 256 KiB."""
    with refused(400, "InvalidInput"):
        read_statement(f"SELECT {'a' * 300_000} FROM x")

"""Read queries of content: ``SELECT a FROM any WHERE b LIMIT n``.

This is the part of "Query acceleration SQL language reference" without functions, aggregates, casts
and paths into JSON, which are refused.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from asynccommit.testing.models.adls.refusals import Refusal, refusal

Row = Mapping[str, Any]
"""The values of a record by column, in their order."""

Condition = Callable[[Row], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"[^"]+")|(?P<number>-?\d+(?:\.\d+)?)
    |(?P<name>[A-Za-z_]\w*)|(?P<sign><=|>=|<>|!=|[=<>(),*;]))""",
    re.VERBOSE,
)
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_POSITION = re.compile(r"_[1-9]\d*").fullmatch
_WORDS = {"select", "from", "where", "limit", "and", "or", "not", "is", "null"}
_LONGEST = 256 * 1024


class NoColumnError(Exception):
    """Raised when a record has no column of a name or a position."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no column {name!r}.")
        self.by_name = not _POSITION(name)


class Statement(NamedTuple):
    """A query.

    Attributes:
        columns: names or positions (``_1``) of the columns; ``None`` for all.
        where: returns whether a record is selected.
        limit: number of records at most; ``None`` for all.
    """

    columns: Sequence[str] | None
    where: Condition | None
    limit: int | None

    def select(self, row: Row, *, sparse: bool = False) -> Row:
        """Return the chosen columns of a record.

        Raises ``NoColumnError``; a ``sparse`` record may lack any.
        """
        if self.columns is None:
            return row
        if sparse:
            return {name: row[name] for name in self.columns if name in row}
        return {name: value_of(row, name) for name in self.columns}


def value_of(row: Row, name: str) -> Any:
    """Return the value of a column. Raises ``NoColumnError``."""
    if name in row:
        return row[name]
    if _POSITION(name) and int(name[1:]) <= len(row):
        return list(row.values())[int(name[1:]) - 1]
    raise NoColumnError(name)


def read_statement(text: str) -> Statement:
    """Parse a query. Raises ``Refusal`` if it is invalid or not supported."""
    return _Parser(text).statement()


class _Parser:
    """A parser of one query, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def statement(self) -> Statement:
        self._need("select")
        columns = None if self._take("*") else self._columns()
        self._need("from")
        self._name()
        where = self._or() if self._take("where") else None
        limit = self._whole() if self._take("limit") else None
        self._take(";")
        if self._at != len(self._tokens):
            raise self._wrong()
        return Statement(columns, where, limit)

    def _columns(self) -> Sequence[str]:
        found = [self._name()]
        while self._take(","):
            found.append(self._name())
        return found

    def _or(self) -> Condition:
        found = self._and()
        while self._take("or"):
            found = _either(found, self._and())
        return found

    def _and(self) -> Condition:
        found = self._not()
        while self._take("and"):
            found = _both(found, self._not())
        return found

    def _not(self) -> Condition:
        if self._take("not"):
            negated = self._not()
            return lambda row: not negated(row)
        if self._take("("):
            found = self._or()
            self._need(")")
            return found
        return self._comparison()

    def _comparison(self) -> Condition:
        left = self._value()
        if self._take("is"):
            wanted = not self._take("not")
            self._need("null")
            return lambda row: (left(row) is None) == wanted
        _, sign = self._next()
        if sign not in _COMPARE:
            raise self._wrong()
        compare, right = _COMPARE[sign], self._value()
        return lambda row: _compared(compare, left(row), right(row))

    def _value(self) -> Condition:
        kind, text = self._next()
        if kind == "number":
            number = float(text)
            return lambda _: number
        if kind == "text":
            literal = text[1:-1].replace("''", "'")
            return lambda _: literal
        name = self._named(kind, text)
        return lambda row: value_of(row, name)

    def _name(self) -> str:
        return self._named(*self._next())

    def _named(self, kind: str, text: str) -> str:
        if kind == "quoted":
            return text[1:-1]
        if kind != "name" or text.lower() in _WORDS:
            raise self._wrong()
        return text

    def _whole(self) -> int:
        kind, text = self._next()
        if kind != "number" or not text.isdigit():
            raise self._wrong()
        return int(text)

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise self._wrong()
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][1].lower() == word:
            self._at += 1
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._wrong()

    def _wrong(self) -> Refusal:
        rest = " ".join(text for _, text in self._tokens[max(0, self._at - 1) :])
        return _unsupported(rest or "its end")


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > _LONGEST:
        raise refusal("InvalidInput", "The query has more than 256 KiB.")
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _unsupported(text[at:])
        found.append((token.lastgroup or "", token[token.lastgroup or 0]))
        at = token.end()
    return found


def _unsupported(where: str) -> Refusal:
    return refusal(
        "InvalidInput", f"The query is invalid, or not supported here, from {where[:100]!r} on."
    )


def _either(one: Condition, other: Condition) -> Condition:
    return lambda row: one(row) or other(row)


def _both(one: Condition, other: Condition) -> Condition:
    return lambda row: one(row) and other(row)


def _compared(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    """Compare as numbers if one side is one.

    Values that cannot be compared do not match.
    """
    if left is None or right is None:
        return False
    try:
        if isinstance(left, (int, float)) or isinstance(right, (int, float)):
            left, right = float(left), float(right)
        return bool(compare(left, right))
    except (TypeError, ValueError):
        return False

"""Serve queries of content (``comp=query``).

The content is CSV, JSON or Parquet, the result CSV, JSON or Arrow. The answer is an Avro file of
records: parts of the result, errors, progress, and the end. Formats and the texts of errors are
those that Azure's SDK and its tests know.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from asynccommit.testing.emulators.adls.avro import write_avro
from asynccommit.testing.emulators.adls.documents import parse_document
from asynccommit.testing.emulators.adls.query_arrow import read_parquet, write_arrow
from asynccommit.testing.models.adls.refusals import Refusal, refusal
from asynccommit.testing.models.adls.select import NoColumnError, Row, read_statement

_NAMES = "com.microsoft.azure.storage.queryBlobContents"
_SCHEMA = [
    {"type": "record", "name": f"{_NAMES}.{name}", "fields": fields}
    for name, fields in {
        "resultData": [{"name": "data", "type": "bytes"}],
        "error": [
            {"name": "fatal", "type": "boolean"},
            {"name": "name", "type": "string"},
            {"name": "description", "type": "string"},
            {"name": "position", "type": "long"},
        ],
        "progress": [
            {"name": "bytesScanned", "type": "long"},
            {"name": "totalBytes", "type": "long"},
        ],
        "end": [{"name": "totalBytes", "type": "long"}],
    }.items()
]
_DATA, _ERROR, _PROGRESS, _END = range(4)
_LINES = ("\n", "\r\n")


class RecordFormat(NamedTuple):
    """The format of records.

    Attributes:
        kind: ``delimited``, ``json``, ``arrow`` or ``parquet``.
        separator: ends a record.
        delimiter: between columns.
        quote: around a column.
        escape: before a quote in a quoted column; empty: it is doubled.
        header: whether the first record has the names of the columns.
        schema: of Arrow: name -> type, precision, scale.
    """

    kind: str = "delimited"
    separator: str = "\n"
    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    header: bool = False
    schema: Sequence[Mapping[str, str]] = ()


class QueryError(NamedTuple):
    """An error in the content; a fatal one ends the query."""

    fatal: bool
    name: str
    description: str
    position: int


def answer_query(body: bytes, content: bytes) -> bytes:
    """Return the answer to a query. Raises ``Refusal`` for an invalid query."""
    asked = parse_document(body, "QueryRequest")
    statement = read_statement(asked.findtext("Expression") or "")
    given = read_format(asked.find("InputSerialization/Format"), RecordFormat())
    plain = RecordFormat() if given.kind == "parquet" else given
    wanted = read_format(asked.find("OutputSerialization/Format"), plain)
    if given.kind == "arrow" or wanted.kind == "parquet":
        raise _unsupported("Arrow as an input, or Parquet as an output,")
    rows: list[Row] = []
    errors: list[QueryError] = []
    sparse = given.kind == "json"
    try:
        for position, row in enumerate(_rows(given, content)):
            if statement.limit is not None and len(rows) >= statement.limit:
                break
            try:
                if statement.where is None or statement.where(row):
                    rows.append(statement.select(row, sparse=sparse))
            except NoColumnError as error:
                name = "InvalidColumnName" if error.by_name else "InvalidColumnOrdinal"
                errors.append(QueryError(False, name, str(error), position))
    except _ParseError as error:
        errors.append(QueryError(True, "ParseError", str(error), error.position))
    total = len(content)
    records = [(_DATA, [_written(wanted, rows)]), *((_ERROR, error) for error in errors)]
    return write_avro(_SCHEMA, [*records, (_PROGRESS, [total, total]), (_END, [total])])


def read_format(given: Element | None, otherwise: RecordFormat) -> RecordFormat:
    """Return the format that a request names. Raises ``Refusal``."""
    if given is None:
        return otherwise
    kind = (given.findtext("Type") or "").lower()
    if kind == "delimited":
        text = given.find("DelimitedTextConfiguration")
        find = (lambda name, default: default) if text is None else _finder(text)
        return RecordFormat(
            kind,
            find("RecordSeparator", "\n"),
            find("ColumnSeparator", ","),
            find("FieldQuote", '"'),
            find("EscapeChar", ""),
            find("HasHeaders", "").lower() == "true",
        )
    if kind == "json":
        return RecordFormat(kind, given.findtext("JsonTextConfiguration/RecordSeparator") or "\n")
    if kind == "arrow":
        fields = given.iterfind("ArrowConfiguration/Schema/Field")
        return RecordFormat(kind, schema=[{_.tag: _.text or "" for _ in field} for field in fields])
    if kind == "parquet":
        return RecordFormat(kind)
    raise _unsupported(kind or "a format without a type")


def _finder(text: Element) -> Any:
    return lambda name, default: text.findtext(name) or default


def _unsupported(what: str) -> Refusal:
    return refusal("InvalidInput", f"Queries do not support {what} here.")


# --- records -----------------------------------------------------------------------------------


class _ParseError(Exception):
    """Raised for content that is not of its format."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def _rows(given: RecordFormat, content: bytes) -> Iterator[Row]:
    if given.kind == "parquet":
        return iter(read_parquet(content))
    text = content.decode("utf-8-sig", "replace")
    return _json_rows(text) if given.kind == "json" else _csv_rows(given, text)


def _json_rows(text: str) -> Iterator[Row]:
    """Yield objects that follow one another, whatever space is between them."""
    decoder, at = json.JSONDecoder(), 0
    while (at := len(text) - len(text[at:].lstrip())) < len(text):
        try:
            found, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise _ParseError(str(error), at) from error
        if not isinstance(found, dict):
            raise _ParseError("A record is no object.", at)
        yield found


def _csv_rows(given: RecordFormat, text: str) -> Iterator[Row]:
    if given.separator not in _LINES:
        raise _unsupported(f"records that end with {given.separator[:9]!r}, not with a line,")
    if len(given.delimiter) != 1 or len(given.quote) > 1 or len(given.escape) > 1:
        raise _unsupported("delimiters, quotes or escapes of several characters")
    lines = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=given.delimiter,
        quotechar=given.quote or None,
        escapechar=given.escape or None,
        quoting=csv.QUOTE_MINIMAL if given.quote else csv.QUOTE_NONE,
    )
    names: list[str] = []
    try:
        for values in filter(None, lines):
            if given.header and not names:
                names = [
                    name if name not in values[:at] else f"_{at + 1}"
                    for at, name in enumerate(values)
                ]
                continue
            yield _named(names, values)
    except csv.Error as error:
        raise _ParseError(str(error), lines.line_num) from error


def _named(names: Sequence[str], values: Sequence[str]) -> Row:
    """Return the values by name, or by position where there is no name."""
    more = range(len(names) + 1, len(values) + 1)
    return dict(zip([*names, *(f"_{number}" for number in more)], values, strict=False))


def _written(wanted: RecordFormat, rows: Sequence[Row]) -> bytes:
    if wanted.kind == "arrow":
        return write_arrow(wanted.schema, rows)
    if wanted.kind == "json":
        shown = (
            json.dumps(row, separators=(",", ":"), ensure_ascii=False, default=str) for row in rows
        )
        return "".join(f"{text}{wanted.separator}" for text in shown).encode()
    lines: list[Iterable[Any]] = [row.values() for row in rows]
    if wanted.header and rows:
        longest: Row = max(rows, key=lambda row: len(row))
        lines.insert(0, list(longest))
    return "".join(
        wanted.delimiter.join(_field(wanted, value) for value in line) + wanted.separator
        for line in lines
    ).encode()


def _field(wanted: RecordFormat, value: Any) -> str:
    """Return a column, quoted if it must be."""
    text = value if isinstance(value, str) else "" if value is None else _shown(value)
    special = (wanted.delimiter, wanted.quote, wanted.separator)
    if not wanted.quote or not any(part and part in text for part in special):
        return text
    escaped = text.replace(wanted.quote, (wanted.escape or wanted.quote) + wanted.quote)
    return f"{wanted.quote}{escaped}{wanted.quote}"


def _shown(value: Any) -> str:
    """Return what JSON has a form for as JSON, and other values as text."""
    plain = isinstance(value, (bool, int, float, list, dict))
    return json.dumps(value, default=str) if plain else str(value)

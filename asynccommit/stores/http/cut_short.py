"""Tell an answer that ends in the middle from one of another kind.

A proxy or a wrong Content-Length can cut a successful answer short without an error of the
connection. Such a read is sent again; an answer that is whole and not the service's is final.
"""

from __future__ import annotations

from xml.etree.ElementTree import ParseError
from xml.parsers.expat import errors

import orjson

_AT_THE_END = frozenset(
    errors.codes[name]
    for name in (
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_PARTIAL_CHAR,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
)
_HTML = (b"<!doctype", b"<html")


class CutShortError(ValueError):
    """Raised for an answer that ends in the middle."""


def unread_json(body: bytes, error: orjson.JSONDecodeError, what: str) -> ValueError:
    """Return the error for invalid JSON; its text begins with ``what``."""
    body = body.strip()
    at_the_end = body[-1:] != b"}" or error.pos >= len(error.doc.rstrip())
    cut = not body or (body[:1] == b"{" and at_the_end)
    return _unread(cut, f"{what} ({error})")


def unread_xml(body: bytes, error: ParseError, what: str) -> ValueError:
    """Return the error for invalid XML; its text begins with ``what``."""
    body = body.strip()
    html = body[:9].lower().startswith(_HTML)
    cut = not body or (body[:1] == b"<" and not html and error.code in _AT_THE_END)
    return _unread(cut, f"{what} ({error})")


def _unread(cut: bool, text: str) -> ValueError:
    return CutShortError(f"{text}; it is cut short") if cut else ValueError(text)

"""The XML of S3's answers, read as what it may be: a hostile text.

No answer of S3 declares a document type, so one that does is refused before it is parsed: without
it there are no entities that grow or lead elsewhere. The encoding is fixed, so that no other one
hides it. How much there is to parse is bounded by whoever receives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, ParseError, XMLParser

_TEXT = re.compile(r"[&<>\r\n\t\"]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MOST = 200_000  # tags: a page of 1,000 entries has a tenth, and more take seconds
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def parse(body: bytes, *names: str) -> Element:
    """Return the root of an answer.

    Args:
        body: of the answer; blanks may come before it, which keep a connection open.
        names: that the root may have.

    Raises:
        ValueError: it is no such answer.
    """
    body = body.strip()
    if b"<!" in body:
        raise ValueError("the answer is no XML of S3: it holds a declaration")
    if body.count(b"<") > _MOST:
        raise ValueError(f"the answer is no XML of S3: it has more than {_MOST:,} tags")
    parser = XMLParser(encoding="utf-8")
    try:
        parser.feed(body)
        root: Element = parser.close()
    except ParseError as error:
        raise ValueError(f"the answer is no XML ({error})") from None
    if names and tag(root) not in names:
        raise ValueError(f"the answer is no {' or '.join(names)}: it is {tag(root)[:80]!r}")
    return root


def tag(element: Element) -> str:
    """Return an element's name without the namespace that some servers omit."""
    return element.tag.rpartition("}")[2]


def values(element: Element) -> dict[str, str]:
    """Return the texts of the direct children by name; the last one counts."""
    return {child.tag.rpartition("}")[2]: child.text or "" for child in element}


def children(element: Element, name: str) -> Iterable[Element]:
    """Return the direct children of that name."""
    return (child for child in element if child.tag.rpartition("}")[2] == name)


def escape(text: str) -> str:
    """Return ``text`` as it stands in XML, so that it is read again as it is."""
    return _TEXT.sub(lambda found: _ESCAPES.get(found[0]) or f"&#{ord(found[0])};", text)


def can_say(text: str) -> bool:
    """Return whether XML can represent ``text``."""
    return _NOT_XML.search(text) is None

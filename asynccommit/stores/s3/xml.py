"""Parse the XML of S3's responses, which may be hostile.

No answer of S3 declares a document type, so one that does is refused before it is parsed: without
it there are no entities that grow or lead elsewhere. The encoding is fixed, so that no other one
hides it. The receiver limits the size of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, ParseError, XMLParser

from asynccommit.stores.http.errors import unread_xml

_TEXT = re.compile(r"[&<>\r\n\t\"]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MOST = 200_000  # tags: a page of 1,000 entries has a tenth, and more take seconds
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"

# What the service says of nearly every completion, and no more: ASCII, no element in another one,
# and one etag made of a digest. So the parser would read the same of all that matches.
_BLANKS = r"[ \t\r\n]*"
_TEXTS = r"(?:[ !#-%'-;=?-~]|&(?:quot|amp|lt|gt|apos|#34);)*"
_OTHERS = rf"(?:<(?!ETag>)([A-Za-z][A-Za-z0-9]*)>{_TEXTS}</\{{}}>{_BLANKS})*"  # its group's number
_QUOTE = r'(?:&quot;|&#34;|")'
_PARTS = (
    rf"{_BLANKS}(?:{re.escape(HEAD.strip())})?{_BLANKS}",
    rf'<CompleteMultipartUploadResult(?: xmlns="{re.escape(SPACE)}")?>{_BLANKS}',
    _OTHERS.format(1),
    rf"<ETag>{_QUOTE}([0-9a-f]{{32}}(?:-[0-9]+)?){_QUOTE}</ETag>{_BLANKS}",
    _OTHERS.format(3),
    rf"</CompleteMultipartUploadResult>{_BLANKS}",
)
_completed = re.compile("".join(_PARTS).encode()).fullmatch


def parse(body: bytes, *names: str) -> Element:
    """Return the root of an answer.

    Args:
        body: of the answer; blanks may come before it, which keep a connection open.
        names: that the root may have.

    Raises:
        ValueError: the response is invalid.
    """
    body = body.strip()
    if b"<!" in body:
        raise ValueError("the response is not XML of S3: it holds a declaration")
    if body.count(b"<") > _MOST:
        raise ValueError(f"the response is not XML of S3: it has more than {_MOST:,} tags")
    parser = XMLParser(encoding="utf-8")
    try:
        parser.feed(body)
        root: Element = parser.close()
    except ParseError as error:
        raise unread_xml(body, error, "the response is not XML") from None
    if names and tag(root) not in names:
        raise ValueError(f"the response is not {' or '.join(names)}: it is {tag(root)[:80]!r}")
    return root


def plain_etag(body: bytes) -> str:
    """Return the etag of a simple completion; "" if it must be parsed."""
    found = _completed(body)
    return found[2].decode() if found else ""


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

"""Parse multipart bodies with RFC 2046 line ends or line feeds.

The line end after the first boundary tells which of the two a client uses, so the last bytes of a
part are never mistaken for a line end.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]+)"|\'([^\']+)\'|([^\s;]+))', re.IGNORECASE)


class MultipartPart(NamedTuple):
    """A part: its headers by lower-case name, and its bytes."""

    headers: dict[str, str]
    body: bytes


@lru_cache(maxsize=256)
def boundary_of(content_type: str) -> bytes:
    """Return the boundary of the parts. Raises ``GcsRefusal`` if missing."""
    found = _BOUNDARY.search(content_type)
    if found is None or not content_type.lower().startswith("multipart/"):
        raise malformed("Missing or invalid boundary.")
    given: str = found[1] or found[2] or found[3]
    return given.encode("latin-1")


def malformed(detail: str) -> GcsRefusal:
    """Return the refusal of a body that cannot be parsed."""
    return refuse("badRequest", f"Failed to parse the parts of the request, error: {detail}")


def split(body: bytes, boundary: bytes) -> list[MultipartPart]:
    """Return the parts of ``body``. Raises ``GcsRefusal`` if it is malformed."""
    mark = b"--" + boundary
    start = 0 if body.startswith(mark) else body.find(b"\n" + mark) + 1
    if not body.startswith(mark, start):
        raise malformed("No part begins.")
    start += len(mark)
    end = b"\r\n" if body.startswith(b"\r\n", start) else b"\n"
    stop = end + mark
    parts: list[MultipartPart] = []
    while not body.startswith(b"--", start):
        begin = body.find(end, start) + len(end)
        after = _find_mark(body, stop, begin - len(end))
        if begin < len(end) or after < 0:
            raise malformed("A part does not end.")
        parts.append(read_part(body[begin : max(begin, after)]))
        start = after + len(stop)
    return parts


def _find_mark(body: bytes, stop: bytes, start: int) -> int:
    """Return the position of a boundary, or -1.

    The beginning of a longer line is not a boundary.
    """
    while (found := body.find(stop, start)) >= 0:
        behind = found + len(stop)
        if body[behind : behind + 2] == b"--" or body[behind : behind + 1] in b" \t\r\n":
            return found
        start = behind
    return -1


def read_part(data: bytes) -> MultipartPart:
    """Return headers and body of one part, separated by an empty line."""
    head, _, body = _cut(data)
    return MultipartPart(read_headers(head), body)


def _cut(data: bytes) -> tuple[bytes, bytes, bytes]:
    if data.startswith((b"\r\n", b"\n")):  # no headers
        return b"", b"", data[2 if data[0] == 13 else 1 :]
    strict, loose = data.find(b"\r\n\r\n"), data.find(b"\n\n")
    if strict >= 0 and (loose < 0 or strict < loose):
        return data[:strict], b"", data[strict + 4 :]
    return data.partition(b"\n\n")


def read_headers(head: bytes) -> dict[str, str]:
    """Return headers by lower-case name."""
    found: dict[str, str] = {}
    for line in head.decode("latin-1").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().lower()] = value.strip()
    return found

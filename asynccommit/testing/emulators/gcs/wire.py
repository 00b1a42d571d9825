"""Build the responses of the JSON API.

The format is the one that Google's clients read: 64-bit numbers and generations are strings, times
are RFC 3339 with milliseconds, an error is an object in an object. Errors of downloads are plain
text, all others JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

Headers = Mapping[str, str]

JSON: Headers = MappingProxyType({"Content-Type": "application/json; charset=UTF-8"})
XML: Headers = MappingProxyType({"Content-Type": "application/xml; charset=UTF-8"})
TEXT: Headers = MappingProxyType({"Content-Type": "text/html; charset=UTF-8"})
NONE: Headers = MappingProxyType({})

CANCELLED = 499
"""The status for a cancelled upload; not a status of the HTTP standard."""

PHRASES = {status.value: status.phrase for status in HTTPStatus} | {
    308: "Resume Incomplete",
    CANCELLED: "Client Closed Request",
}
"""Status -> reason phrase."""

_BODILESS = (204, 304)
_JSON_LINES = "Content-Type: application/json; charset=UTF-8\r\n"


class GcsResponse(NamedTuple):
    """A response, with header names as they are written on the wire."""

    status: int
    headers: Headers = NONE
    body: bytes = b""


def json_answer(value: Any, status: int = 200) -> GcsResponse:
    """Return a JSON response."""
    return GcsResponse(status, JSON, orjson.dumps(value))


NO_CONTENT = GcsResponse(204)


def error_answer(refusal: GcsRefusal, *, media: bool = False) -> GcsResponse:
    """Return an error response; ``media`` (a download) gets plain text."""
    if refusal.status in _BODILESS:
        return GcsResponse(refusal.status, refusal.headers)
    kind, body = (TEXT, refusal.message.encode()) if media else (JSON, error_body(refusal))
    if refusal.headers:
        return GcsResponse(refusal.status, {**kind, **refusal.headers}, body)
    return GcsResponse(refusal.status, kind, body)


def error_body(refusal: GcsRefusal) -> bytes:
    """Return the JSON of a refusal."""
    message = refusal.message
    error = {"message": message, "domain": refusal.domain, "reason": refusal.reason}
    if refusal.location:
        error |= {"locationType": refusal.location_type, "location": refusal.location}
    whole: Any = {"code": refusal.status, "message": message, "errors": [error]}
    return orjson.dumps({"error": whole})


def bad_parameter(name: str, message: str) -> GcsRefusal:
    """Return the refusal of an invalid query parameter."""
    return refuse("invalidParameter", message, location_type="parameter", location=name)


class GcsWire:
    """A response encoder with a clock and unique upload ids.

    ``now`` is the clock; ``run`` makes the ids unique.
    """

    def __init__(self, now: Callable[[], float], run: str) -> None:
        self._now = now
        self._run = run
        self._count = 0
        self._second = -1
        self._date = ""

    def write(
        self, answer: GcsResponse, *, bodiless: bool = False, keep_alive: bool = True
    ) -> bytes:
        """Return the bytes; ``bodiless`` omits the body (HEAD) but not its length."""
        status, headers, body = answer
        head = f"{self._head(status)}{_lines(headers)}"
        if not keep_alive:
            head += "Connection: close\r\n"
        if "Transfer-Encoding" in headers:
            body = chunked(body)
        elif status not in _BODILESS:
            head += f"Content-Length: {len(body)}\r\n"
        return f"{head}\r\n".encode("latin-1", "replace") + (b"" if bodiless else body)

    def _head(self, status: int) -> str:
        self._count += 1
        second = int(self._now())
        if second != self._second:
            self._second, self._date = second, formatdate(second, usegmt=True)
        return (
            f"{status_line(status)}X-GUploader-UploadID: {self._run}{self._count:x}\r\n"
            f"Date: {self._date}\r\nServer: asynccommit\r\n"
        )


def chunked(body: bytes) -> bytes:
    """Return a body as one chunk, for a response without a length."""
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"


@lru_cache(maxsize=128)
def status_line(status: int) -> str:
    """Return the status line of a response."""
    return f"HTTP/1.1 {status} {PHRASES.get(status, 'Unknown')}\r\n"


def _lines(headers: Headers) -> str:
    if headers is JSON:
        return _JSON_LINES
    return "".join([f"{name}: {_one_line(value)}\r\n" for name, value in headers.items()])


def _one_line(text: str) -> str:
    """Return ``text`` for a header; control characters become question marks."""
    return text if text.isprintable() else "".join(_ if _ >= " " else "?" for _ in text)


@lru_cache(maxsize=4096)
def _second_text(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


def rfc3339(moment: float) -> str:
    """Format seconds since the epoch as RFC 3339, to the millisecond."""
    # Computed in microseconds: as a float, .678 is slightly less than its value.
    second, rest = divmod(round(moment * 1_000_000), 1_000_000)
    return f"{_second_text(second)}.{rest // 1000:03d}Z"


@lru_cache(maxsize=4096)
def http_date(second: int) -> str:
    """Format a time for headers."""
    return formatdate(second, usegmt=True)

"""Parse a request to the JSON API: operation, names and parameters.

In a URL each name is a single segment: a slash within a name is percent-encoded. So the path is
split into segments before it is decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, unquote_to_bytes

import orjson

from asynccommit.testing.emulators.gcs.wire import GcsResponse, bad_parameter
from asynccommit.testing.models.gcs.preconditions import NO_PRECONDITIONS, Preconditions
from asynccommit.testing.models.gcs.refusals import GcsRefusal

Query: TypeAlias = dict[str, str]

# Parameter -> its field in ``Preconditions``.
_CONDITIONS = {
    "ifGenerationMatch": 0,
    "ifGenerationNotMatch": 1,
    "ifMetagenerationMatch": 2,
    "ifMetagenerationNotMatch": 3,
}
_SOURCE_CONDITIONS = {f"ifSource{name[2:]}": at for name, at in _CONDITIONS.items()}
_READS = ("get", "read", "list", "layout")
_LARGEST = 1 << 63
_MOST_JSON = 10_000_000  # bytes
_SHORT = 19  # Numbers with fewer digits are always below the limit.


class GcsRoute(NamedTuple):
    """One operation of the service.

    Attributes:
        op: name of the operation in faults and statistics.
        method: Google's name, such as ``storage.objects.move``.
        handler: function that executes the request.
        prepare: parses the body, before anything else happens.
        asks: indices of the ``GcsCall.names`` checked by the quotas first: the bucket that receives
            the request, and the objects that change.
        media: errors are returned as plain text.
        xml: the request is one of the XML API, and so are its errors.
    """

    op: str
    method: str
    handler: Callable[[GcsCall], GcsResponse]
    prepare: Callable[[GcsCall], None] | None = None
    asks: tuple[int, ...] = (0,)
    media: bool = False
    xml: bool = False


class GcsCall:
    """A parsed request.

    ``names`` are the decoded names in the URL: bucket, object or folder, and destination; ``parts``
    and ``read`` are the results of ``GcsRoute.prepare``.
    """

    __slots__ = (
        "body",
        "bucket",
        "headers",
        "method",
        "name",
        "names",
        "parts",
        "query",
        "read",
        "route",
    )

    def __init__(
        self,
        method: str,
        route: GcsRoute,
        names: tuple[str, ...],
        query: Query,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        self.method = method
        self.route = route
        self.names = names
        self.bucket = names[0] if names else ""
        self.name = names[1] if len(names) > 1 else ""
        self.query = query
        self.headers = headers
        self.body = body
        self.parts: list[Any] = []
        self.read: Any = None

    @property
    def place(self) -> str:
        """Bucket and name for fault rules; for a listing, its prefix."""
        name = self.name or (self.query.get("prefix", "") if self.query else "")
        return f"{self.bucket}/{name}" if name else self.bucket

    @property
    def writes(self) -> bool:
        """Return whether the request may change stored data."""
        return self.route.op not in _READS and self.method not in ("GET", "HEAD")

    @property
    def user_project(self) -> str:
        """The project billed for the request; empty if not named."""
        query = self.query.get("userProject", "") if self.query else ""
        return query or self.headers.get("x-goog-user-project", "")

    def origin(self, scheme: str = "http") -> str:
        """Return the URL of this service, as the client sees it."""
        return f"{scheme}://{self.headers.get('host', 'storage.googleapis.com')}"

    def conditions(self) -> Preconditions:
        """Return the preconditions on the object of the request."""
        return _conditions(self.query, _CONDITIONS)

    def source_conditions(self) -> Preconditions:
        """Return the preconditions on the source of a copy or move."""
        return _conditions(self.query, _SOURCE_CONDITIONS)

    def json(self) -> dict[str, Any]:
        """Return the body as an object; an empty body counts as an empty object.

        It may be compressed, as Google's Java clients send it. Raises ``GcsRefusal``.
        """
        return read_object(self.unpacked(_MOST_JSON)) if self.body else {}

    def unpacked(self, most: int) -> bytes:
        """Return the body, decompressed if it came as gzip.

        It is empty if it is invalid, or would have more than ``most`` bytes.
        """
        packed = self.headers.get("content-encoding", "").lower() == "gzip"
        return _gunzipped(self.body, most) if packed else self.body


def _gunzipped(body: bytes, most: int) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        data = stream.decompress(body, most)
    except zlib.error:
        return b""
    return data if stream.eof else b""


def read_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises ``GcsRefusal`` if it is not one."""
    if body.strip() == b"null":  # what Go's client sends for a resource that it leaves out
        return {}
    try:
        value = orjson.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise GcsRefusal(400, "parseError", "Parse Error")
    return value


def _conditions(query: Query, places: Mapping[str, int]) -> Preconditions:
    found: list[int | None] | None = None
    for key in query:
        if (at := places.get(key)) is not None:
            found = found or [None, None, None, None]
            found[at] = number(query, key)
    return NO_PRECONDITIONS if found is None else Preconditions(*found)


def parse_query(text: str) -> Query:
    """Return the decoded parameters.

    If a name is repeated the last value counts; of ``permissions`` all do.
    """
    found: Query = {}
    for pair in text.split("&"):
        key, _, value = pair.partition("=")
        if "%" in pair or "+" in pair:
            key, value = unquote(key.replace("+", " ")), unquote(value.replace("+", " "))
        if key == "permissions" and key in found:
            value = f"{found[key]},{value}"
        if key:
            found[key] = value
    return found


def decode(segment: str) -> str:
    """Decode a percent-encoded name. Raises ``GcsRefusal`` if not UTF-8."""
    if segment.isascii():
        text = segment.replace("%2F", "/").replace("%3D", "=")
        if "%" not in text:
            return text
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeError:
        raise GcsRefusal(400, "invalid", "The URL is not valid UTF-8.") from None


def number(query: Mapping[str, str], key: str, default: int | None = None) -> int | None:
    """Return a 64-bit integer parameter. Raises ``GcsRefusal`` if invalid."""
    value = query.get(key, "")
    if not value:
        return default
    if value.isdigit() and value.isascii() and len(value) < _SHORT:
        return int(value)
    try:
        found = int(value)
    except ValueError:
        found = _LARGEST
    if not -_LARGEST <= found < _LARGEST or not value.isascii() or "_" in value:
        raise bad_parameter(key, f"Expected a 64-bit number, got '{value[:100]}'.")
    return found


def flag(query: Mapping[str, str], key: str) -> bool:
    """Return a boolean parameter. Raises ``GcsRefusal`` if invalid."""
    value = query.get(key, "").lower()
    if value not in ("", "true", "false"):
        raise bad_parameter(key, f"Expected true or false, got '{value[:100]}'.")
    return value == "true"

"""Forward a request and its response byte for byte.

A signature covers the method, the target and headers such as ``Host``, so none of them is changed;
a chunked body is joined into one chunk. Each request uses a new connection.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.server import ServerRequest

_READ = 1 << 18
_PORTS = {"http": 80, "https": 443}
_BODILESS = (204, 304)


class ProxyTarget(NamedTuple):
    """A server that requests are forwarded to.

    Attributes:
        host: host name or address.
        port: port.
        tls: use https.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """The URL of the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls is None else 'https'}://{host}:{self.port}"


class ForwardError(Exception):
    """Raised when a request got no response from the server.

    Args:
        reason: cause.
        reached: whether the server may have received the request.
    """

    def __init__(self, reason: str, *, reached: bool) -> None:
        self.reached = reached
        super().__init__(reason)


class ForwardedResponse(NamedTuple):
    """An unchanged response, and whether its connection stays open."""

    data: bytes
    keep_alive: bool


def read_target(url: str) -> ProxyTarget:
    """Parse ``http://host:port``. Raises ``OptionError`` if invalid."""
    parts, port = urlsplit(""), None
    with suppress(ValueError):
        parts = urlsplit(url)
        port = _PORTS.get(parts.scheme) and (parts.port or _PORTS[parts.scheme])
    if port is None or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise OptionError(
            f"target {url!r} is not a server: expected a URL such as http://127.0.0.1:9000"
        )
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    return ProxyTarget(parts.hostname, port, tls)


async def forward(target: ProxyTarget, request: ServerRequest, limit: int) -> ForwardedResponse:
    """Forward a request and return the response.

    Args:
        target: server to send to.
        request: request to send.
        limit: maximum size of the response in bytes.

    Raises:
        ForwardError: the server cannot be reached, or closes the connection before the end of the
            response.
    """
    try:
        reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.tls)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ForwardError(f"{target.url} cannot be reached: {reason}", reached=False) from error
    try:
        # Not drained: a response that arrives before the whole request is read must be received.
        writer.write(written(request))
        return await _Reading(request.method, limit).read(reader)
    except (OSError, asyncio.IncompleteReadError) as error:
        raise ForwardError(f"{target.url} ended the connection", reached=True) from error
    except httptools.HttpParserError as error:
        raise ForwardError(f"{target.url} does not speak HTTP/1.1", reached=True) from error
    finally:
        writer.close()


def written(request: ServerRequest) -> bytes:
    """Return the bytes of a request."""
    parts = [request.method.encode("latin-1"), b" ", request.target, b" HTTP/1.1\r\n"]
    for name, value in request.raw:
        parts += [name, b": ", value, b"\r\n"]
    parts.append(b"\r\n")
    body = request.body
    if "chunked" not in request.headers.get("transfer-encoding", "").lower():
        return b"".join([*parts, body])
    chunk = [b"%x\r\n" % len(body), body, b"\r\n"] if body else []
    return b"".join([*parts, *chunk, b"0\r\n\r\n"])


class _Reading:
    """A response while it is being read."""

    def __init__(self, method: str, limit: int) -> None:
        self._bodiless = method == "HEAD"
        self._limit = limit
        self._parser = httptools.HttpResponseParser(self)
        self._framed = False
        self._done = self._keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record whether the headers tell the end of the response."""
        self._framed = self._framed or name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        """End here if there is no body."""
        if self._bodiless or self._parser.get_status_code() in _BODILESS:
            self.on_message_complete()

    def on_message_complete(self) -> None:
        """Record the end of the message before the parser discards the state."""
        if not self._done:
            self._done, self._keep_alive = True, self._parser.should_keep_alive()

    async def read(self, reader: asyncio.StreamReader) -> ForwardedResponse:
        """Read the response. Raises ``IncompleteReadError`` if it is cut off."""
        head = await _final_head(reader)
        found = [head]
        self._feed(head)
        size = len(head)
        while not self._done:
            data = await reader.read(_READ)
            if not data:
                break
            self._feed(data)
            found.append(data)
            size += len(data)
            if size > self._limit:
                text = f"the response has more than {self._limit:,} bytes"
                raise ForwardError(text, reached=True)
        if not self._done and self._framed:
            raise asyncio.IncompleteReadError(b"", None)
        return ForwardedResponse(b"".join(found), self._keep_alive)

    def _feed(self, data: bytes) -> None:
        if not self._done:
            self._parser.feed_data(data)


async def _final_head(reader: asyncio.StreamReader) -> bytes:
    """Return the final status line and headers, skipping 1xx responses."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise ForwardError("the head of the response is too long", reached=True) from error
        if head[9:10] != b"1":
            return head

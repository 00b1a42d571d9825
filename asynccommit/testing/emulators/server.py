"""Serve HTTP/1.1 for the emulators, without a framework.

An emulator is an ``App``: it is called with each whole ``ServerRequest`` and responds, at once or
later, through the ``Connection`` with bytes that it has built itself. Invalid HTTP is answered with
400 and the connection is closed; an internal error of the emulator is answered with 500 and logged.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, cast

import httptools

_log = logging.getLogger(__name__)

_QUEUED = 32  # maximum number of queued requests of a connection before reading pauses
_LINGER = 1.0  # seconds between the rejection of a connection and its end
_TURNS = 20  # loop iterations until cut connections have ended
_BEGINNING = 5  # loop iterations until an accepted connection begins
_NO_LINGER = struct.pack("ii", 1, 0)
_NAMES: dict[bytes, str] = {}  # header names as sent -> lower case
_REASONS = {400: "Bad Request", 413: "Request Entity Too Large", 431: "Headers Too Large"}


class ServerRequest:
    """A request: method and target as sent, lower-case headers, body.

    ``raw`` holds the headers as they were sent, in their order.
    """

    __slots__ = ("body", "headers", "keep_alive", "method", "raw", "target")

    def __init__(self) -> None:
        self.method = ""
        self.target = b""
        self.headers: dict[str, str] = {}
        self.raw: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.keep_alive = True


class App(Protocol):
    """The interface between an emulator and the server."""

    def __call__(self, request: ServerRequest, connection: Connection, /) -> None:
        """Respond with ``send``, ``cut``, ``reset`` or ``hang_up``, exactly once.

        This may happen at once or later.
        """
        ...


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The maximum size of a request.

    Attributes:
        head: bytes of request line and headers.
        body: bytes of the body.
    """

    head: int = 64 * 1024
    body: int = 128 * 1024 * 1024


class Connection(asyncio.Protocol):
    """A client connection; requests are answered in order, one at a time."""

    def __init__(self, app: App, limits: RequestLimits, open_ones: set[Connection]) -> None:
        self._app = app
        self._limits = limits
        self._open = open_ones
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._request = ServerRequest()  # the request being received
        self._current = self._request  # the request being answered
        self._body: list[bytes] = []
        self._size = 0  # bytes received of this request
        self._in_head = True
        self._refused = 0  # status of the error that ends this connection
        self._said = False
        self._busy = False
        self._blocked = False  # the client does not read what was written
        self._draining = False
        self._queue: deque[ServerRequest] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Initialize the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop unanswered requests; requests that have begun still take effect."""
        self._transport = None
        self._queue.clear()
        self._open.discard(self)

    def data_received(self, data: bytes) -> None:
        """Parse the data; complete requests are answered from within."""
        if self._refused:
            return
        self._size += len(data)
        self._feed(data)
        if self._in_head and self._size > self._limits.head:
            self._refused = 431
        elif self._size > self._limits.head + self._limits.body:
            self._refused = 413
        if self._refused and not (self._busy or self._queue):
            self._refuse()

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                # No upgrade is offered: such a request is answered like any other.
                self._parser = httptools.HttpRequestParser(self)
                data = data[upgrade.args[0] :]
            except httptools.HttpParserError:
                self._refused = self._refused or 400
                return

    def on_message_begin(self) -> None:
        """Start a request."""
        self._request = ServerRequest()
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Add a part of the target."""
        self._request.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; join the values of a repeated one in one line."""
        key = _NAMES.get(name) or _header_name(name)
        headers = self._request.headers
        if self._in_head:  # trailers after a body are ignored
            self._request.raw.append((name, value))
        text = value.decode("latin-1").strip()
        headers[key] = f"{headers[key]},{text}" if key in headers else text

    def on_headers_complete(self) -> None:
        """Send 100 Continue if it is expected and the body is not too large."""
        self._in_head = False
        request = self._request
        request.method = self._parser.get_method().decode("latin-1")
        if not request.target or self._parser.get_http_version() not in ("1.1", "1.0"):
            self._refused = 400
        elif int(request.headers.get("content-length") or 0) > self._limits.body:
            self._refused = 413
        elif "expect" in request.headers and _has_body(request.headers) and self._transport:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer the request, or queue it."""
        if self._refused:
            return
        request = self._request
        if self._body:
            request.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
        request.keep_alive = self._parser.should_keep_alive()
        self._in_head, self._size = True, 0
        if self._busy or self._blocked or self._queue:
            self._queue.append(request)
            if len(self._queue) >= _QUEUED and self._transport:
                self._transport.pause_reading()
        else:
            self._start(request)

    def _start(self, request: ServerRequest) -> None:
        self._busy = True
        self._current = request
        try:
            self._app(request, self)
        except Exception:
            _log.exception("%s %r", request.method, request.target[:200])
            request.keep_alive = False
            self.send(bare_answer(500, "Internal Server Error"))

    @property
    def closed(self) -> bool:
        """Return whether the client has disconnected."""
        return self._transport is None or self._transport.is_closing()

    def send(self, answer: bytes) -> None:
        """Send the whole response to the request that was started last."""
        self._busy = False
        transport = self._transport
        if transport is None:
            return
        transport.write(answer)
        if not self._current.keep_alive:
            transport.close()
        elif self._refused or self._queue:
            self._next()

    def begin(self, part: bytes) -> None:
        """Send the beginning of the response.

        ``send`` sends the rest; ``hang_up`` ends it without.
        """
        if self._transport is not None:
            self._transport.write(part)

    def hang_up(self) -> None:
        """Close the connection after the pending output is sent."""
        self._busy = False
        self._queue.clear()
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.cut()

    def cut(self) -> None:
        """Close the connection without a response; drop unsent output."""
        self._busy = False
        self._queue.clear()
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        """Answer queued requests, without recursion."""
        if self._draining:
            return
        self._draining = True
        while self._queue and not (self._busy or self._blocked or self.closed):
            self._start(self._queue.popleft())
        self._draining = False
        if self._transport and not self._queue:
            self._transport.resume_reading()
        if self._refused and not (self._busy or self._queue):
            self._refuse()

    def _refuse(self) -> None:
        """Send the error, and give the client time to read it before the reset.

        The reset would come at once if the connection closed while the client still sends.
        """
        transport = self._transport
        if transport is None or transport.is_closing() or self._said:
            return
        self._said = True
        transport.write(bare_answer(self._refused, _REASONS[self._refused]))
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER, transport.close)

    def pause_writing(self) -> None:
        """Stop answering until the client has read the pending output."""
        self._blocked = True

    def resume_writing(self) -> None:
        """Resume answering."""
        self._blocked = False
        self._next()


def _has_body(headers: dict[str, str]) -> bool:
    """Return whether a body follows: some clients fail on a 100 without one."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def bare_answer(status: int, reason: str) -> bytes:
    """Return a response without body that closes the connection."""
    line = f"HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    return line.encode("latin-1")


def _header_name(name: bytes) -> str:
    key = name.decode("latin-1").lower()
    if len(_NAMES) < 1000:
        _NAMES[name] = key
    return key


class Server:
    """An app that listens on a port.

    ``start`` raises ``OSError`` if the port is taken.
    """

    def __init__(self, app: App, limits: RequestLimits | None = None) -> None:
        self._app = app
        self._limits = limits or RequestLimits()
        self._open: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._open)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen; 0 means any free port, which ``port`` then tells."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._app, self._limits, self._open),
            host,
            port,
            ssl=tls,
            family=socket.AF_INET6 if ":" in host else socket.AF_INET,
            backlog=1024,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is None:
            return
        # An accepted connection that has not begun would never be closed: let it begin, but no
        # more.
        loop = asyncio.get_running_loop()
        for sock in self._server.sockets:
            loop.remove_reader(sock.fileno())
        for _ in range(_BEGINNING):
            await asyncio.sleep(0)
        self._server.close()
        for connection in list(self._open):
            connection.cut()
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await self._server.wait_closed()
        self._server = None
        # Connections end in the next loop iterations.
        for _ in range(_TURNS):
            if self._open:
                await asyncio.sleep(0)

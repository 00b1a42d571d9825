"""Small servers that speak raw TCP or TLS, for clients that are to meet more than HTTP allows."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True)
class Seen:
    """A request as it came, byte for byte; ``serial`` counts those of one connection from 0."""

    line: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    serial: int

    def header(self, name: bytes) -> list[bytes]:
        """Return all values of the header ``name``, which is in lower case."""
        return [value for key, value in self.headers if key.lower() == name]


Script = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawServer:
    """Reads requests, notes them, and lets ``script`` answer each as it likes.

    With ``reads`` false it takes connections and reads nothing of them.
    """

    script: Script
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    reads: bool = True
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _got: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    _gone: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def url(self, path: str = "/", host: str = "") -> str:
        """Return the URL of ``path`` on this server."""
        host = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    async def got(self, requests: int = 1) -> None:
        """Wait until so many more requests have come."""
        for _ in range(requests):
            await asyncio.wait_for(self._got.acquire(), 10)

    async def hung_up(self, connections: int = 1) -> None:
        """Wait until so many more connections have been closed."""
        for _ in range(connections):
            await asyncio.wait_for(self._gone.acquire(), 10)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        return _Protocol(asyncio.StreamReader(), self._serve, self._gone.release)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            # Cancelled by the server's end; asyncio's streams would call it an error.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer_all(reader, writer)
        finally:
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.reads:
            await asyncio.Event().wait()
        for serial in itertools.count():
            self.seen.append(seen := await _request(reader, serial))
            self._got.release()
            await self.script(seen, writer)
            if writer.is_closing():
                return
            await writer.drain()


class _Protocol(asyncio.StreamReaderProtocol):
    """Tells, once, that the other side has closed, also while nobody reads."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        ended: Callable[[], None],
    ) -> None:
        super().__init__(reader, serve)
        self._ended: Callable[[], None] | None = ended

    def eof_received(self) -> bool | None:
        self._end()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


async def _request(reader: asyncio.StreamReader, serial: int) -> Seen:
    head = await reader.readuntil(b"\r\n\r\n")
    line, *rest = head[:-4].split(b"\r\n")
    parts = [header.partition(b":") for header in rest]
    headers = [(name, value.strip()) for name, _, value in parts]
    length = next((value for name, value in headers if name.lower() == b"content-length"), b"0")
    return Seen(line, headers, await reader.readexactly(int(length)), serial)


def says(answer: bytes, *, close: bool = False) -> Script:
    """Return a script that writes ``answer`` to each request, and then closes if asked to."""

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        if close:
            writer.close()

    return script


def answer(
    status: str = "200 OK", body: bytes = b"", headers: Sequence[str] = (), *, length: bool = True
) -> bytes:
    """Return the bytes of an answer."""
    lines = [f"HTTP/1.1 {status}", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def reset(writer: asyncio.StreamWriter) -> None:
    """Cut the connection so that the other side sees a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def drip(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Answer a few bytes at a time, without end."""
    writer.write(answer(headers=["Content-Length: 100000"], length=False))
    for _ in itertools.count():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def silent(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def stuck(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Stop in the middle of the body."""
    writer.write(answer(headers=["Content-Length: 10"], length=False) + b"abc")
    await asyncio.Event().wait()


async def half(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Stop after many bytes of the body."""
    writer.write(answer(headers=["Content-Length: 900000"], length=False) + b"x" * 300_000)
    await asyncio.Event().wait()


@dataclass
class Proxy:
    """An HTTP proxy that connects every tunnel to one port of this machine.

    Requests for other than tunnels are answered with 200; ``refusal`` is answered to all.
    """

    port_behind: int = 0
    refusal: bytes = b""
    seen: list[Seen] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            seen = await _request(reader, 0)
            self.seen.append(seen)
            if self.refusal or not seen.line.startswith(b"CONNECT "):
                writer.write(self.refusal or answer(headers=["Connection: close"]))
            else:
                behind = await asyncio.open_connection("127.0.0.1", self.port_behind)
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await asyncio.gather(_pipe(reader, behind[1]), _pipe(behind[0], writer))
        writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()

"""A small HTTP server that keeps what comes to it, byte for byte: for what stands before it."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Server: behind\r\n\r\nok"


class Behind:
    """Answers every request with ``answer``, and then ends the connection if it says so.

    Attributes:
        answer: the bytes; none is an end without an answer.
        came: the requests, head and body, as they came.
        closes: whether a connection ends after its answer.
    """

    def __init__(self, answer: bytes = OK, *, closes: bool = False) -> None:
        self.answer = answer
        self.closes = closes
        self.came: list[bytes] = []
        self.changed = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def url(self) -> str:
        """Where it is."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.came.append(head + await _body(head, reader))
                self.changed.set()
                writer.write(self.answer)
                await writer.drain()
                if self.closes or not self.answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    lines = head.lower().split(b"\r\n")
    lengths = [line.partition(b":")[2] for line in lines if line.startswith(b"content-length:")]
    if lengths:
        return await reader.readexactly(int(lengths[0]))
    if b"transfer-encoding: chunked" in lines:
        return await reader.readuntil(b"0\r\n\r\n")
    return b""

"""A TCP proxy before a NameNode that loses responses: what was asked for has been done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CHUNK = 1 << 16


class LossyProxy:
    """Passes on what comes, until a request that holds certain bytes has its response.

    Attributes:
        port: where it listens on 127.0.0.1.
        lost: how many responses it has lost.
    """

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.lost = 0
        self._server_port = server_port
        self._needle: bytes | None = None
        self._times = 0
        self._awaited = b""
        self._came = asyncio.Event()

    async def asked(self, needle: bytes) -> None:
        """Wait for the next request that holds ``needle``."""
        self._awaited, self._came = needle, asyncio.Event()
        await self._came.wait()

    def lose(self, needle: bytes, times: int = 1) -> None:
        """Lose the responses to the next requests that hold ``needle``, with their connections."""
        self._needle, self._times, self.lost = needle, times, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on, until either side ends it."""
        server = await asyncio.open_connection("127.0.0.1", self._server_port)
        doomed = asyncio.Event()
        ways = [
            asyncio.ensure_future(self._ask(reader, server[1], doomed)),
            asyncio.ensure_future(self._answer(server[0], writer, doomed)),
        ]
        try:
            with suppress(asyncio.CancelledError):  # asyncio's streams log the cancelled task
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            writer.close()
            server[1].close()

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(_CHUNK):
            if self._awaited and self._awaited in data:
                self._came.set()
            if self._needle is not None and self._needle in data and self.lost < self._times:
                self.lost += 1
                doomed.set()
            writer.write(data)
            await writer.drain()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while data := await reader.read(_CHUNK):
            if doomed.is_set():
                return
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def lossy_proxy(server_port: int) -> AsyncIterator[LossyProxy]:
    """Run a proxy before a port of this machine."""
    proxy = LossyProxy(server_port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), 1)

"""One connection that sends bytes as they are and reads answers as they come."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import NamedTuple, Protocol, Self


class Listening(Protocol):
    """What has a port."""

    @property
    def port(self) -> int:
        """The port."""
        ...


class Reply(NamedTuple):
    """Status, headers with lower-case names, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Raw:
    """A client of one emulator, over one connection at a time."""

    def __init__(self, server: Listening) -> None:
        self._server = server
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def talk(self, data: bytes, *, bodiless: bool = False) -> Reply:
        """Send bytes and read one answer. Raises ``IncompleteReadError`` if it is cut."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._server.port
            )
        self._writer.write(data)
        return await self.read(bodiless=bodiless)

    async def read(self, *, bodiless: bool = False) -> Reply:
        """Read one answer; after an answer that ends the connection a new one is made."""
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            assert name.lower() not in headers, f"{name} comes twice"
            headers[name.lower()] = value.strip()
        status = int(first.split()[1])
        if status == 100:
            return await self.read(bodiless=bodiless)
        size = 0 if bodiless or status in (204, 304) else int(headers["content-length"])
        body = await self._reader.readexactly(size)
        if headers.get("connection") == "close":
            await self.close()
        return Reply(status, headers, body)

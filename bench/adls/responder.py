"""``python -m bench.adls.responder CERTIFICATE``: answers 201 to everything, where nginx is not."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from typing import cast

import httptools

from asynccommit.engine import submit

_ANSWER = (
    b"HTTP/1.1 201 Created\r\nx-ms-request-id: 5c4b33f1-c01f-0056-5d8a-000000000000\r\n"
    b"x-ms-version: 2024-11-04\r\nContent-Length: 0\r\n\r\n"
)


class Responder(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Read; ``on_message_complete`` is called from within."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Answer."""
        self._transport.write(_ANSWER)


async def start(certificate: str) -> list[int]:
    """Listen on two free ports, the second with TLS, and return them."""
    loop = asyncio.get_running_loop()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    servers = [
        await loop.create_server(Responder, "127.0.0.1", 0, ssl=context, backlog=1024)
        for context in (None, tls)
    ]
    return [server.sockets[0].getsockname()[1] for server in servers]


if __name__ == "__main__":
    print(json.dumps(submit(start(sys.argv[1]))), flush=True)
    sys.stdin.read()  # until the bench closes it

"""``python -m bench.responder CERTIFICATE ANSWER``: a null server, where nginx is not.

What it answers to everything is a ``bench.null.Says`` in JSON.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from functools import partial
from typing import cast

import httptools

from asynccommit.runtime.loop_thread import submit
from bench.null import Says


class Responder(asyncio.Protocol):
    """One connection, on which every request has the same answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Read; ``on_message_complete`` is called from within."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Answer."""
        self._transport.write(self._answer)


def answer_of(says: Says) -> bytes:
    """Return what stands on the wire."""
    headers = {
        "Content-Type": "application/json",
        **says.headers,
        "Content-Length": str(len(says.body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {says.status}\r\n{lines}\r\n{says.body}".encode()


async def start(certificate: str, answer: bytes) -> list[int]:
    """Listen on two free ports, the second with TLS, and return them."""
    loop = asyncio.get_running_loop()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    servers = [
        await loop.create_server(
            partial(Responder, answer), "127.0.0.1", 0, ssl=context, backlog=1024
        )
        for context in (None, tls)
    ]
    return [server.sockets[0].getsockname()[1] for server in servers]


if __name__ == "__main__":
    said = answer_of(Says(*json.loads(sys.argv[2])))
    print(json.dumps(submit(start(sys.argv[1], said))), flush=True)
    sys.stdin.read()  # until the bench closes it

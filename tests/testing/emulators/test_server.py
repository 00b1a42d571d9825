"""HTTP as such: what is refused, what is kept alive, what is bounded."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import ssl
from itertools import pairwise

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, running_emulator
from asynccommit.testing.emulators.server import Connection, RequestLimits, Server, ServerRequest
from tests.testing.emulators.adls.client import WireClient

HEAD = b"HEAD /devstoreaccount1/data?resource=filesystem HTTP/1.1\r\nHost: x\r\n"


async def test_connection_is_kept(wire: WireClient) -> None:
    """Many requests go over one connection."""
    for _ in range(3):
        await wire.make("a")

    assert wire.emulator.stats()["connections"] == 1


async def test_pipelined_requests_are_answered_in_order(wire: WireClient) -> None:
    """More than are let wait at once, some late, each in its turn."""
    wire.emulator.model.create_filesystem("last")
    others = [b"HEAD /none%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(100)]

    first = await wire.exchange(b"".join(others) + HEAD + b"\r\n", bodiless=True)
    rest = [await wire.next(bodiless=True) for _ in range(100)]

    assert {answer.status for answer in (first, *rest[:-1])} == {404}
    assert rest[-1].status == 401


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_no_http_is_refused(wire: WireClient, data: bytes) -> None:
    """It is answered 400, the connection ends, and the server goes on."""
    answer = await wire.exchange(data)

    assert answer.status == 400
    assert answer.headers["connection"] == "close"
    assert (await wire.ask("HEAD", "", "resource=filesystem")).status == 200


async def test_requests_before_a_bad_one_are_answered(wire: WireClient) -> None:
    """What came whole has its answer first."""
    first = await wire.exchange(HEAD + b"\r\nnonsense\r\n\r\n", bodiless=True)
    second = await wire.next()

    assert (first.status, second.status) == (401, 400)


async def test_head_is_bounded() -> None:
    """Headers without an end are refused once they are too many."""
    limits = RequestLimits(head=2000)
    async with AdlsEmulator(limits=limits) as emulator, WireClient(emulator) as wire:
        answer = await wire.exchange(HEAD + b"x-fill: " + b"x" * 2000)

    assert answer.status == 431


@pytest.mark.parametrize("chunked", [False, True])
async def test_body_is_bounded(chunked: bool) -> None:
    """A body that is too large is refused, before it is sent if it says its size."""
    limits = RequestLimits(head=500, body=1000)
    head = b"PUT /devstoreaccount1/data/a HTTP/1.1\r\nHost: x\r\n"
    data = head + b"Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n"
    if chunked:
        data = head + b"Transfer-Encoding: chunked\r\n\r\n800\r\n" + b"x" * 2048
    async with AdlsEmulator(limits=limits) as emulator, WireClient(emulator) as wire:
        answer = await wire.exchange(data)

    assert answer.status == 413


async def test_chunked_body_is_read(wire: WireClient) -> None:
    """A body of unknown size comes in chunks."""
    wire.emulator.keyring.tokens = None
    await wire.make("a")
    data = (
        b"PATCH /devstoreaccount1/data/a?action=append&position=0&flush=true HTTP/1.1\r\n"
        b"Host: x\r\nAuthorization: Bearer x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n"
    )

    answer = await wire.exchange(data)

    assert answer.status == 202
    assert (await wire.ask("GET", "a")).body == b"abcdefg"


async def test_client_that_waits_to_be_asked_is_asked(wire: WireClient) -> None:
    """Expect: 100-continue is answered before the body comes."""
    await wire.make("a")
    head = (
        b"PUT /devstoreaccount1/data/a?action=append&position=0 HTTP/1.1\r\nHost: x\r\n"
        b"X-HTTP-Method-Override: PATCH\r\nAuthorization: Bearer x\r\n"
        b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", wire.emulator.port)
    writer.write(head)

    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"

    writer.write(b"hi")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 202 ")
    writer.close()


async def test_client_that_has_no_body_to_send_is_not_asked(wire: WireClient) -> None:
    """A body of no bytes is complete: the answer comes at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", wire.emulator.port)
    writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n")

    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")
    writer.close()


@pytest.mark.parametrize(
    "data",
    [
        b"HEAD /devstoreaccount1/data HTTP/1.0\r\n\r\n",
        b"HEAD /devstoreaccount1/data HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ],
)
async def test_connection_ends_if_the_client_wants_it(wire: WireClient, data: bytes) -> None:
    """HTTP/1.0, or Connection: close."""
    answer = await wire.exchange(data, bodiless=True)

    assert answer.headers["connection"] == "close"


async def test_upgrades_are_not_offered(wire: WireClient) -> None:
    """A request that would speak another protocol is answered as any other."""
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"

    answer = await wire.exchange(HEAD + upgrade, bodiless=True)

    assert answer.status == 401
    assert (await wire.ask("HEAD", "", "resource=filesystem")).status == 200


async def test_client_that_leaves_at_once_harms_nobody(wire: WireClient) -> None:
    """Half a request and then nothing."""
    _, writer = await asyncio.open_connection("127.0.0.1", wire.emulator.port)
    writer.write(HEAD)
    writer.close()
    await writer.wait_closed()

    assert (await wire.ask("HEAD", "", "resource=filesystem")).status == 200


async def test_large_answers_do_not_pile_up(wire: WireClient) -> None:
    """A client that asks and does not read is not answered further until it does."""
    size = 3_000_000
    await wire.make("a", b"x" * size)
    get = b"GET /devstoreaccount1/data/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", wire.emulator.port)
    writer.write(get * 10)

    await reader.readuntil(b"\r\n\r\n")
    started = wire.emulator.weather.requests["read"]
    await reader.readexactly(size)
    for _ in range(9):
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(size)

    assert started < 10
    assert wire.emulator.weather.requests["read"] == 10
    writer.close()


async def test_error_in_the_emulator_is_a_500(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, the connection ends, and the next request is answered."""

    def broken(request: ServerRequest, connection: Connection) -> None:
        raise RuntimeError("broken")

    server = Server(broken)
    await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    with caplog.at_level(logging.CRITICAL, "asynccommit"):
        writer.write(HEAD + b"\r\n")
        answer = await reader.read()

    writer.close()
    await server.stop()
    assert answer.startswith(b"HTTP/1.1 500 ")


async def test_port_that_is_taken_is_named(wire: WireClient) -> None:
    """Two emulators cannot have one port."""
    second = AdlsEmulator(port=wire.emulator.port)

    with pytest.raises(OSError, match="in use"):
        await second.start()


async def test_stop_ends_connections(wire: WireClient) -> None:
    """Nobody keeps an emulator alive."""
    await wire.make("a")

    await wire.emulator.stop()

    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await wire.make("a")
    assert wire.emulator.stats()["connections"] == 0


async def test_emulator_speaks_tls() -> None:
    """With a context it serves https, and says so in its addresses."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async with AdlsEmulator(tls=tls) as emulator:
        reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port, ssl=trusting)
        writer.write(HEAD + b"Connection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert emulator.url.startswith("https://")
    assert "DefaultEndpointsProtocol=https" in emulator.connection_string


class _Written(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def is_closing(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _fed(pieces: list[bytes]) -> list[tuple[str, bytes, bytes]]:
    """Return the requests that a connection reads from these pieces."""
    seen = []

    def note(request: ServerRequest, connection: Connection) -> None:
        seen.append((request.method, request.target, request.body))
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    connection = Connection(note, RequestLimits(head=300, body=300), set())
    transport = _Written()
    connection.connection_made(transport)
    for piece in pieces:
        connection.data_received(piece)
    return seen


STREAM = (
    HEAD
    + b"\r\n"
    + b"PUT /a%20b?x=%2F HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    + b"PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    + b"GET /d HTTP/1.1\r\n\r\n"
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
async def test_requests_are_the_same_however_they_arrive(cuts: list[int]) -> None:
    """The network may cut the stream anywhere."""
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(places)]

    seen = await _fed(pieces)

    assert seen == [
        ("HEAD", b"/devstoreaccount1/data?resource=filesystem", b""),
        ("PUT", b"/a%20b?x=%2F", b"hello"),
        ("PUT", b"/c", b"abcde"),
        ("GET", b"/d", b""),
    ]


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [
                    *(b"GET / HTTP/1.1\r\n", b"\r\n", b"Host: x\r\n", b"PUT /a HTTP/1.0\r\n"),
                    *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"0\r\n"),
                    *(b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n"),
                    *(b"CONNECT a:1 HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\n", b"x" * 400),
                ]
            ),
        ),
        max_size=12,
    )
)
async def test_no_bytes_make_a_connection_fail(pieces: list[bytes]) -> None:
    """Whatever comes is read, refused or ignored; nothing is raised."""
    await _fed(pieces)


def test_connections_that_have_not_begun_are_closed_with_the_server() -> None:
    """Those too that were accepted in the very moment of its end: none is left to warn later."""
    for _ in range(10):
        with running_emulator() as emulator:
            sockets = [socket.create_connection(("127.0.0.1", emulator.port)) for _ in range(3)]
        for sock in sockets:
            sock.close()

    gc.collect()

"""What goes wrong over HTTP: the error tells what may have happened, and nothing is sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from asynccommit.stores.http.base import (
    HttpSettings,
    NoAnswerError,
    NotSentError,
    TooLargeError,
    Transport,
    TransportError,
    UntrustedError,
)
from asynccommit.stores.http.client import TRANSPORTS, open_transport
from tests.support.servers import RawServer, Script, Seen, answer, drip, reset, says, silent, stuck

LIMIT = 1 << 20
SHORT = 0.15  # seconds that are waited in vain
METHODS = ["PUT", "DELETE", "GET", "HEAD", "PATCH", "POST"]


@pytest.fixture(params=list(TRANSPORTS))
def library(request: pytest.FixtureRequest) -> str:
    """Name each library."""
    name: str = request.param
    return name


@pytest.fixture
async def transport(library: str) -> AsyncIterator[Transport]:
    """Give a transport of each library."""
    opened = open_transport(HttpSettings(proxy=""), prefer=library)
    yield opened
    await opened.aclose()


async def failure_of(
    transport: Transport, url: str, method: str = "PUT", limit: int = LIMIT
) -> TransportError:
    """Return the error of a request full of secrets, none of which it has."""
    headers = {"Authorization": "Bearer secret"}
    with pytest.raises(TransportError) as caught:
        await transport.send(method, f"{url}?sig=secret", headers, b"secret", limit=limit)
    error = caught.value
    assert error.__context__ is None
    assert "secret" not in repr(error)
    assert str(error) == error.detail
    assert error.detail.startswith(f"{method} {url.partition('://')[2]}: ")
    return error


# --- nothing is sent twice -------------------------------------------------------------------


def cut_second(how: str) -> Script:
    """Return a script that answers one request of a connection and takes another one in vain."""

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.serial == 0:
            writer.write(answer())
        elif how == "reset":
            reset(writer)
        elif how == "half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            writer.close()
        else:
            writer.close()

    return script


@pytest.mark.parametrize("how", ["closed", "reset", "half"])
@pytest.mark.parametrize("method", METHODS)
async def test_a_request_that_may_have_been_done_is_not_sent_again(
    transport: Transport, method: str, how: str
) -> None:
    """A server that reads a request on a used connection and cuts it has got it once."""
    async with RawServer(cut_second(how)) as server:
        await transport.send("GET", server.url("/first"), {}, limit=LIMIT)
        error = await failure_of(transport, server.url("/second"), method)
    assert type(error) is NoAnswerError
    assert server.connections == 1
    assert [seen.serial for seen in server.seen] == [0, 1]


@pytest.mark.parametrize("method", METHODS)
async def test_a_new_connection_that_is_cut_is_not_tried_again(
    transport: Transport, method: str
) -> None:
    """The same holds for the first request of a connection."""
    async with RawServer(says(b"", close=True)) as server:
        error = await failure_of(transport, server.url("/p"), method)
    assert type(error) is NoAnswerError
    assert len(server.seen) == 1


@pytest.mark.parametrize("how", ["closed", "reset"])
@pytest.mark.parametrize("pause", [0, 1, 3, 10])
async def test_an_idle_connection_that_ends_never_doubles_a_request(
    transport: Transport, pause: int, how: str
) -> None:
    """A request that meets the end of its connection succeeds or fails, and is read once."""

    async def leave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())
        if how == "reset":
            await writer.drain()
            asyncio.get_running_loop().call_soon(reset, writer)
        writer.close()

    done = 0
    async with RawServer(leave) as server:
        for number in range(100):
            try:
                await transport.send("PUT", server.url(f"/{number}"), {}, b"x", limit=LIMIT)
                done += 1
            except (NotSentError, NoAnswerError):
                pass
            for _ in range(pause):
                await asyncio.sleep(0)
    lines = [seen.line for seen in server.seen]
    assert len(set(lines)) == len(lines) >= done > 0


async def test_a_body_that_is_cut_short_is_not_sent_again(transport: Transport) -> None:
    """A connection that ends in the middle of a large body ends the request."""
    taken = 0

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        taken += 1
        await reader.readexactly(100_000)
        reset(writer)

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(NoAnswerError):
        await transport.send("PUT", f"http://127.0.0.1:{port}/", {}, b"x" * 9_000_000, limit=LIMIT)
    server.close()
    await server.wait_closed()
    assert taken == 1


# --- answers that are none -------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"secret garbage\r\n\r\n",
        b"\x16\x03\x01\x02\x00secret\r\n\r\n",
        b"HTTP/1.1 secret OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nsecret\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\nabc\r\n",
    ],
)
async def test_half_an_answer_is_no_answer(transport: Transport, reply: bytes) -> None:
    """What is not HTTP, or ends before its end, leaves open what happened."""
    async with RawServer(says(reply, close=True)) as server:
        error = await failure_of(transport, server.url("/p"))
        assert type(error) is NoAnswerError
        again = await failure_of(transport, server.url("/p"))
    assert type(again) is NoAnswerError
    assert len(server.seen) == 2


async def test_endless_headers_are_no_answer(transport: Transport) -> None:
    """Headers are not collected without bound."""

    async def endless(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-A: " + b"x" * 4000 + b"\r\n")
            await writer.drain()

    async with RawServer(endless) as server:
        assert type(await failure_of(transport, server.url("/p"))) is NoAnswerError


# --- large answers ---------------------------------------------------------------------------


def endless(framing: str) -> tuple[Script, list[int]]:
    """Return a script that answers 1 GB, and a list that gets the numbers of bytes written."""
    sent: list[int] = []
    chunked = framing == "Transfer-Encoding: chunked"

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(headers=[framing] if framing else [], length=False))
        piece = b"x" * 65_536
        for _ in range(16_384):
            writer.write(b"10000\r\n" + piece + b"\r\n" if chunked else piece)
            await writer.drain()
            sent.append(len(piece))

    return script, sent


@pytest.mark.parametrize(
    "framing", ["Content-Length: 1073741824", "Transfer-Encoding: chunked", ""]
)
async def test_a_large_answer_is_stopped(transport: Transport, framing: str) -> None:
    """Of 1 GB no more is taken than the limit and what is under way, and the connection ends."""
    script, sent = endless(framing)
    async with RawServer(script) as server:
        error = await failure_of(transport, server.url("/p"), "GET", limit=100_000)
        await server.hung_up()
    assert type(error) is TooLargeError
    assert sum(sent) < 32 << 20
    assert len(server.seen) == 1


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("limit", [999, 1000, 0])
async def test_the_limit_is_exact(transport: Transport, limit: int, chunked: bool) -> None:
    """An answer of as many bytes is returned, one of one byte more is not."""
    reply = answer(body=b"x" * 1000)
    if chunked:
        framing = ["Transfer-Encoding: chunked"]
        reply = answer(headers=framing, length=False) + b"3e8\r\n" + b"x" * 1000 + b"\r\n0\r\n\r\n"
    async with RawServer(says(reply)) as server:
        if limit < 1000:
            error = await failure_of(transport, server.url("/p"), "GET", limit=limit)
            assert type(error) is TooLargeError
        got = await transport.send("GET", server.url(), {}, limit=1000)
    assert got.body == b"x" * 1000


async def test_an_empty_answer_needs_no_limit(transport: Transport) -> None:
    """Nothing is not more than nothing."""
    async with RawServer(says(answer())) as server:
        assert (await transport.send("PUT", server.url(), {}, limit=0)).body == b""


# --- waiting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script, settings, text",
    [
        (silent, HttpSettings(proxy="", read_timeout=SHORT), "no response for 0.15 s"),
        (stuck, HttpSettings(proxy="", read_timeout=SHORT), "no response for 0.15 s"),
        (silent, HttpSettings(proxy="", total_timeout=SHORT), "not finished within 0.15 s"),
        (drip, HttpSettings(proxy="", total_timeout=SHORT), "not finished within 0.15 s"),
    ],
)
async def test_an_answer_is_not_waited_for_forever(
    library: str, script: Script, settings: HttpSettings, text: str
) -> None:
    """A request that was sent and not answered in time may have been done."""
    transport = open_transport(settings, prefer=library)
    async with RawServer(script) as server:
        error = await failure_of(transport, server.url("/p"))
        await server.hung_up()
    await transport.aclose()
    assert type(error) is NoAnswerError
    assert error.detail.endswith(text)


async def test_a_connection_is_not_waited_for_forever(library: str) -> None:
    """A server that takes the connection and never says hello has got nothing."""
    transport = open_transport(HttpSettings(proxy="", connect_timeout=SHORT), prefer=library)
    async with RawServer(silent, reads=False) as server:
        error = await failure_of(transport, server.url("/p").replace("http:", "https:"))
    await transport.aclose()
    assert type(error) is NotSentError
    assert error.detail.endswith("no connection within 0.15 s")


async def test_a_free_connection_is_not_waited_for_forever(library: str) -> None:
    """A request that found no free connection was not sent."""
    settings = HttpSettings(proxy="", connections=1, connect_timeout=0.5)
    transport = open_transport(settings, prefer=library)
    async with RawServer(silent) as server:
        first = asyncio.create_task(transport.send("PUT", server.url(), {}, limit=LIMIT))
        await server.got()
        error = await failure_of(transport, server.url("/p"))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    await transport.aclose()
    assert type(error) is NotSentError
    assert error.detail.endswith("no connection within 0.5 s")


# --- connecting ------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nosuch.invalid", "[::1]:1"])
async def test_what_cannot_be_connected_was_not_sent(transport: Transport, host: str) -> None:
    """A closed port and an unknown name say so."""
    error = await failure_of(transport, f"http://{host}/p")
    assert type(error) is NotSentError
    assert not isinstance(error, UntrustedError)
    assert "cannot connect: " in error.detail


async def test_a_closed_transport_sends_nothing(transport: Transport) -> None:
    """After ``aclose`` requests fail, and say that they were not sent."""
    async with RawServer(says(answer())) as server:
        await transport.send("PUT", server.url(), {}, limit=LIMIT)
        await transport.aclose()
        error = await failure_of(transport, server.url("/p"))
        await server.hung_up()
    assert type(error) is NotSentError
    assert "closed" in error.detail
    assert len(server.seen) == 1


async def test_closing_ends_requests_under_way(transport: Transport) -> None:
    """What waits for an answer learns that none will come."""
    async with RawServer(silent) as server, asyncio.TaskGroup() as group:
        task = group.create_task(failure_of(transport, server.url("/p")))
        await server.got()
        await transport.aclose()
    assert type(task.result()) is NoAnswerError

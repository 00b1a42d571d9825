"""Requests over HTTP that are cancelled: none is sent later, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from asynccommit.stores.http.base import HttpSettings, Transport
from asynccommit.stores.http.client import TRANSPORTS, open_transport
from tests.support.servers import RawServer, Script, Seen, answer, drip, half, says, silent, stuck

LIMIT = 1 << 20
SHORT = 0.15  # seconds that are waited in vain


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


async def cancel_five(transport: Transport, server: RawServer) -> None:
    """Cancel five requests that wait for ``server``."""
    url = server.url("/p")
    sends = (transport.send("PUT", url, {}, b"x", limit=LIMIT) for _ in range(5))
    tasks = [asyncio.create_task(send) for send in sends]
    await server.got(len(tasks))
    await asyncio.sleep(SHORT)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 5


@pytest.mark.parametrize("script", [silent, stuck, drip, half])
async def test_a_cancelled_request_leaves_nothing(library: str, script: Script) -> None:
    """Its connection is closed; at the latest when its time is up, for pyreqwest cannot stop it."""
    settings = HttpSettings(proxy="", total_timeout=3 if library == "pyreqwest" else 60)
    async with (
        RawServer(script) as server,
        RawServer(says(answer("201 Made"))) as other,
        aclosing(open_transport(settings, prefer=library)) as transport,
    ):
        await cancel_five(transport, server)
        assert (await transport.send("PUT", other.url(), {}, limit=LIMIT)).status == 201
        await server.hung_up(5)
    assert len(asyncio.all_tasks()) == 1


async def test_closing_waits_for_cancelled_requests(library: str) -> None:
    """After ``aclose`` nothing begins to be sent any more, and no task is left."""
    settings = HttpSettings(proxy="", connect_timeout=1)  # as long as the end waits for them
    async with RawServer(silent) as server:
        async with aclosing(open_transport(settings, prefer=library)) as transport:
            await cancel_five(transport, server)
        assert len(asyncio.all_tasks()) == 6
    assert len(server.seen) == 5


async def test_what_waits_for_a_connection_is_not_sent_once_cancelled(library: str) -> None:
    """A request that was cancelled in the queue never leaves it."""
    transport = open_transport(HttpSettings(proxy="", connections=1), prefer=library)
    held = asyncio.Event()

    async def hold(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await held.wait()
        writer.write(answer())

    async with RawServer(hold) as server:
        first = asyncio.create_task(transport.send("PUT", server.url("/1"), {}, limit=LIMIT))
        await server.got()
        second = asyncio.create_task(transport.send("PUT", server.url("/2"), {}, limit=LIMIT))
        await asyncio.sleep(SHORT)
        second.cancel()
        held.set()
        await asyncio.wait((first, second))
        await transport.send("PUT", server.url("/3"), {}, limit=LIMIT)
        await transport.aclose()
    lines = [seen.line for seen in server.seen]
    assert lines == [b"PUT /1 HTTP/1.1", b"PUT /3 HTTP/1.1"]


async def test_requests_can_be_cancelled_at_any_moment(transport: Transport) -> None:
    """Wherever a cancellation strikes, no request is doubled and none is left behind."""
    async with RawServer(says(answer(body=b"x"))) as server:
        for steps in range(60):
            url = server.url(f"/{steps}")
            task = asyncio.create_task(transport.send("PUT", url, {}, b"x", limit=LIMIT))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert (await transport.send("PUT", server.url("/end"), {}, limit=LIMIT)).status == 200
        await transport.aclose()
        gc.collect()
    lines = [seen.line for seen in server.seen]
    assert len(set(lines)) == len(lines)

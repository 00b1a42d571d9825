"""The proxy of S3: what goes on as it came, and what strikes it, each told by both sides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy, running_s3_proxy
from asynccommit.testing.emulators.server import RequestLimits
from asynccommit.testing.models.fault_rules import (
    AFTER,
    BEFORE,
    CUT,
    CUT_BEFORE,
    LATE,
    SLOW,
    Climate,
    Fault,
)
from asynccommit.testing.models.latency import Latency, RequestLimit
from asynccommit.testing.pytest_plugin import MakeProxy
from tests.testing.emulators.adls.raw import Raw, Reply
from tests.testing.emulators.behind import OK, Behind

HOST = b"Host: 127.0.0.1:9444\r\n"
GET = b"GET /data/a HTTP/1.1\r\n" + HOST + b"\r\n"
COMPLETE = b"POST /data/a?uploadId=u HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\n<x>"
SIGNED = (
    b"PUT /data/a%20b%2Bc?x-id=PutObject HTTP/1.1\r\nX-Amz-DATE: 20260101T000000Z\r\nHOST: h\r\n"
    b"authorization: AWS4-HMAC-SHA256 Credential=a/b\r\nx-amz-meta-a: 1\r\nx-amz-meta-a: 2\r\n"
    b"Content-Length: 0\r\n\r\n"
)


@pytest.fixture
async def behind() -> AsyncIterator[Behind]:
    """The server that is to answer."""
    async with Behind() as server:
        yield server


@pytest.fixture
async def proxy(behind: Behind, s3_proxy: MakeProxy) -> S3Proxy:
    """A proxy before it."""
    return await s3_proxy(behind.url)


@pytest.fixture
async def client(proxy: S3Proxy) -> AsyncIterator[Raw]:
    """A client of the proxy that sends bytes."""
    async with Raw(proxy) as raw:
        yield raw


async def _lost(client: Raw, request: bytes) -> bool:
    """Whether the connection ends without an answer."""
    try:
        await client.talk(request)
    except (asyncio.IncompleteReadError, ConnectionError):
        await client.close()
        return True
    return False


async def _control(proxy: S3Proxy, verb: str, name: str, given: Any = None) -> tuple[int, Any]:
    body = b"" if given is None else json.dumps(given).encode()
    head = f"{verb} /_emulator/{name} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    async with Raw(proxy) as raw:
        reply = await raw.talk(head.encode() + body)
    return reply.status, json.loads(reply.body)


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET,
        COMPLETE,
        SIGNED,
        b"PUT /data/c HTTP/1.1\r\n"
        + HOST
        + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"DELETE /data/a?uploadId=u HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
async def test_request_goes_on_as_it_came(
    client: Raw, behind: Behind, request_bytes: bytes
) -> None:
    """Method, target, the case and order of headers, repeated ones, the body."""
    reply = await client.talk(request_bytes)

    assert behind.came == [request_bytes]
    assert reply == Reply(200, {"content-length": "2", "x-server": "behind"}, b"ok")


async def test_chunks_of_a_body_become_one(client: Raw, behind: Behind) -> None:
    """Where they were cut means nothing."""
    head = b"PUT /data/c HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n"
    await client.talk(head + b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n")
    await client.talk(head + b"0\r\n\r\n")

    assert behind.came == [head + b"3\r\nabc\r\n0\r\n\r\n", head + b"0\r\n\r\n"]


async def test_client_that_waits_to_be_asked_for_the_body(proxy: S3Proxy, behind: Behind) -> None:
    """The proxy asks, and what the server says of going on is for the proxy alone."""
    behind.answer = b"HTTP/1.1 100 Continue\r\n\r\n" + OK
    head = b"PUT /data/a HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(head)
    asked = await reader.readuntil(b"\r\n\r\n")
    at_first = list(behind.came)
    writer.write(b"abc")
    answer = await reader.readexactly(len(OK))
    writer.close()

    assert asked == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert at_first == []
    assert answer == OK
    assert behind.came == [head + b"abc"]


@pytest.mark.parametrize(
    "method, answer",
    [
        (b"GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        (b"GET", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        (b"GET", b"HTTP/1.0 200 OK\r\n\r\nok"),
        (b"GET", b'HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\nETag: "x"\r\n\r\n<No/>'),
        (b"HEAD", b'HTTP/1.1 200 OK\r\nContent-Length: 4096\r\nETag: "x"\r\n\r\n'),
        (b"DELETE", b"HTTP/1.1 204 No Content\r\nx-amz-request-id: 1\r\n\r\n"),
        (b"GET", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'),
    ],
)
async def test_answer_comes_back_as_it_is(
    proxy: S3Proxy, behind: Behind, method: bytes, answer: bytes
) -> None:
    """However it is framed, and without waiting for what would follow it."""
    behind.answer, behind.closes = answer, b"Content" not in answer
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(method + b" /data/a HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
    found = await reader.read()
    writer.close()

    assert found == answer


async def test_connection_stays_for_the_next_request(client: Raw, proxy: S3Proxy) -> None:
    """As long as the server keeps its own."""
    for _ in range(3):
        await client.talk(GET)

    assert proxy.stats()["connections"] == 1
    assert proxy.stats()["statuses"] == {"200": 3}


async def test_large_bodies_pass(client: Raw, behind: Behind) -> None:
    """Those of requests and of answers."""
    body = bytes(range(256)) * 4096 * 8
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    behind.answer = b"HTTP/1.1 200 OK\r\n" + length + body
    request = b"PUT /data/a?partNumber=1&uploadId=u HTTP/1.1\r\n" + HOST + length + body
    reply = await client.talk(request)

    assert behind.came == [request]
    assert reply.body == body


async def test_bounds(behind: Behind, s3_proxy: MakeProxy) -> None:
    """A request that is too large is refused and not sent on; an answer is not brought back."""
    proxy = await s3_proxy(behind.url, limits=RequestLimits(head=1024, body=1024))
    async with Raw(proxy) as client:
        large = b"PUT /data/a HTTP/1.1\r\n" + HOST + b"Content-Length: 2000\r\n\r\n"
        refused = await client.talk(large)
        sent = len(behind.came)
        behind.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + bytes(9000)
        await client.close()

        assert refused.status == 413
        assert sent == 0
        assert await _lost(client, GET)


# --- what strikes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, status, words",
    [
        ("", 503, b"Please reduce your request rate."),
        ("InternalError", 500, b"We encountered an internal error."),
        ("RequestTimeout", 400, b"Your socket connection to the server"),
    ],
)
async def test_refused_before(
    client: Raw, proxy: S3Proxy, behind: Behind, code: str, status: int, words: bytes
) -> None:
    """In the service's form; nothing is sent on, and once is once."""
    proxy.weather.add(Fault(BEFORE, op="complete_upload", times=1, code=code, retry_after=3))
    refused = await client.talk(COMPLETE)
    at_first = list(behind.came)
    again = await client.talk(COMPLETE)

    assert refused.status == status
    assert f"<Error><Code>{code or 'SlowDown'}</Code>".encode() in refused.body
    assert words in refused.body
    assert b"<Resource>/data/a</Resource>" in refused.body
    assert refused.headers["retry-after"] == "3"
    assert refused.headers["x-amz-request-id"]
    assert (at_first, again.status) == ([], 200)
    assert proxy.stats()["forwarded"] == {"complete_upload": 1}


async def test_refused_before_has_no_body_for_head(client: Raw, proxy: S3Proxy) -> None:
    """As HTTP wants it."""
    proxy.weather.add(Fault(BEFORE, op="head", times=1))
    refused = await client.talk(GET.replace(b"GET", b"HEAD"), bodiless=True)

    assert refused.status == 503
    assert refused.headers["content-length"] == "0"


@pytest.mark.parametrize(
    "code, status", [("", 500), ("ServiceUnavailable", 503), ("InternalErrorInBody", 200)]
)
async def test_answered_no_after_the_effect(
    client: Raw, proxy: S3Proxy, behind: Behind, code: str, status: int
) -> None:
    """The server has done it, and an error is told, also under a status of success as S3 may."""
    proxy.weather.add(Fault(AFTER, op="complete_upload", times=1, code=code))
    refused = await client.talk(COMPLETE)

    assert behind.came == [COMPLETE]
    assert refused.status == status
    name = code.removesuffix("InBody") or "InternalError"
    assert f"<Code>{name}</Code>".encode() in refused.body


@pytest.mark.parametrize("kind, came", [(CUT, [COMPLETE]), (CUT_BEFORE, [])])
async def test_connection_is_cut(
    client: Raw, proxy: S3Proxy, behind: Behind, kind: str, came: list[bytes]
) -> None:
    """Without an answer: after the effect, or before it."""
    proxy.weather.add(Fault(kind, op="complete_upload", times=1))

    assert await _lost(client, COMPLETE)
    assert behind.came == came
    assert proxy.stats()["struck"] == {f"{kind} complete_upload": 1}


@pytest.mark.parametrize("reply", ["cut", "refusal", "never"])
async def test_effect_comes_late(client: Raw, proxy: S3Proxy, behind: Behind, reply: str) -> None:
    """The client has given up and gone, and then it happens."""
    delay = Latency.from_json({"seconds": 0.1})
    proxy.weather.add(Fault(LATE, op="complete_upload", times=1, delay=delay, reply=reply))
    with suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        async with asyncio.timeout(0.05):
            await client.talk(COMPLETE)
    await client.close()
    at_first = list(behind.came)
    await behind.changed.wait()

    assert at_first == []
    assert behind.came == [COMPLETE]


@pytest.mark.parametrize("kind", ["twice", "again"])
async def test_request_goes_on_twice(
    client: Raw, proxy: S3Proxy, behind: Behind, kind: str
) -> None:
    """One after the other before the response, or the second one later."""
    delay = Latency.from_json({"seconds": 0.1})
    proxy.weather.add(Fault(kind, op="complete_upload", times=1, delay=delay))
    reply = await client.talk(COMPLETE)
    at_first = list(behind.came)
    while len(behind.came) < 2:
        behind.changed.clear()
        await behind.changed.wait()

    assert reply.status == 200
    assert at_first == [COMPLETE] * (2 if kind == "twice" else 1)
    assert behind.came == [COMPLETE] * 2


async def test_what_is_late_dies_with_the_proxy(behind: Behind) -> None:
    """A proxy that has stopped sends nothing on any more."""
    async with S3Proxy(behind.url) as proxy, Raw(proxy) as client:
        proxy.weather.add(Fault(LATE, delay=Latency.from_json({"seconds": 0.05})))
        assert await _lost(client, COMPLETE)
    await asyncio.sleep(0.1)

    assert behind.came == []


async def test_client_that_goes_does_not_undo(proxy: S3Proxy, behind: Behind) -> None:
    """What has come whole is sent on, whether anybody waits for the answer or not."""
    proxy.weather.add(Fault(SLOW, times=1, delay=Latency.from_json({"seconds": 0.05})))
    proxy.weather.climate = Climate(latency=Latency.from_json({"seconds": 0.05}))
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(COMPLETE)
    await asyncio.sleep(0.01)
    writer.close()
    await behind.changed.wait()

    assert behind.came == [COMPLETE]


async def test_latency_and_limit(behind: Behind, s3_proxy: MakeProxy) -> None:
    """Answers take their time; what is too much is refused and not sent on."""
    climate = Climate(latency=Latency.from_json(0.02), limit=RequestLimit(rate=0.001, burst=2))
    proxy = await s3_proxy(behind.url, climate=climate)
    start = asyncio.get_running_loop().time()
    async with Raw(proxy) as client:
        statuses = [(await client.talk(GET)).status for _ in range(4)]

    assert statuses == [200, 200, 503, 503]
    assert len(behind.came) == 2
    assert asyncio.get_running_loop().time() - start >= 0.08


async def test_fault_is_for_paths_that_match(client: Raw, proxy: S3Proxy) -> None:
    """The rule's expression is searched for in bucket and key, decoded; of a list in its prefix."""
    proxy.weather.add(Fault(BEFORE, path="data/day=1/"))
    targets = ["/data/day%3D1/a", "/data/day=2/a", "/data?list-type=2&prefix=day%3D1%2F", "/data"]
    statuses = [
        (await client.talk(f"GET {target} HTTP/1.1\r\n\r\n".encode())).status for target in targets
    ]

    assert statuses == [503, 200, 503, 200]


# --- the server behind, and the proxy's own endpoint --------------------------------------------


async def test_server_that_is_not_there(s3_proxy: MakeProxy) -> None:
    """The answer says which; a server that cuts is one that cuts."""
    async with Behind() as behind:
        url = behind.url
        behind.answer = b""
        proxy = await s3_proxy(url)
        async with Raw(proxy) as client:
            assert await _lost(client, GET)
    async with Raw(proxy) as client:
        refused = await client.talk(GET)

    assert refused.status == 502
    assert f"{url} cannot be reached".encode() in refused.body


@pytest.mark.parametrize(
    "answer",
    [b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", b"HTTP/1.1 200 OK\r\nX:"],
)
async def test_answer_that_is_none(client: Raw, behind: Behind, answer: bytes) -> None:
    """What is no HTTP, or ends before its end, is not brought back."""
    behind.answer, behind.closes = answer, True

    assert await _lost(client, GET)


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:5000", "ftp://h:1", "http://", "http://h:x", "http://h/path", "http://a@h"],
)
def test_target_that_is_no_server(url: str) -> None:
    """It is named, with what to say instead."""
    with pytest.raises(OptionError, match="expected a URL such as http://"):
        S3Proxy(url)


async def test_faults_and_weather_are_set_over_http(proxy: S3Proxy) -> None:
    """In the service's words; what is the server's own is not there."""
    put = await _control(proxy, "PUT", "faults", [{"kind": "cut", "op": "complete_upload"}])
    wrong = await _control(proxy, "PUT", "faults", [{"kind": "cut", "op": "rename"}])
    pages = await _control(proxy, "GET", "pages")
    stats = await _control(proxy, "GET", "stats")

    assert put[1][0]["op"] == "complete_upload"
    assert (wrong[0], pages[0]) == (400, 404)
    assert stats[1]["forwarded"] == {}


async def test_reset_over_http(client: Raw, proxy: S3Proxy) -> None:
    """Nothing has been counted, and the weather is as at the start."""
    await client.talk(GET)
    await _control(proxy, "PUT", "faults", [{"kind": "before"}])
    await _control(proxy, "POST", "reset")

    assert proxy.stats()["requests"] == proxy.stats()["forwarded"] == {}
    assert (await client.talk(GET)).status == 200


async def test_same_seed_same_faults(behind: Behind, s3_proxy: MakeProxy) -> None:
    """Faults with a probability strike the same requests in every run of a seed."""
    climate = Climate(faults=(Fault(BEFORE, probability=0.5),))

    async def run(seed: int) -> list[int]:
        proxy = await s3_proxy(behind.url, climate=climate, seed=seed)
        async with Raw(proxy) as client:
            return [(await client.talk(GET)).status for _ in range(20)]

    assert await run(1) == await run(1) != await run(2)


async def test_thread(behind: Behind) -> None:
    """A proxy may have a thread of its own, for tests that block."""

    def ask(url: str) -> int:
        with running_s3_proxy(url, seed=3) as proxy:
            proxy.do(lambda it: it.weather.add(Fault(BEFORE, op="get", times=1)))
            return proxy.do(lambda it: len(it.weather.climate.faults))

    assert await asyncio.to_thread(ask, behind.url) == 1

"""The JSON API without sockets: the same answers, weather in virtual time, and a hook."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from asynccommit.stores.http.base import NoAnswerError, Response, TooLargeError
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.inprocess import InProcess
from asynccommit.testing.emulators.gcs.wire import GcsResponse
from asynccommit.testing.models.fault_rules import (
    AFTER,
    BEFORE,
    CUT,
    CUT_BEFORE,
    LATE,
    SLOW,
    Climate,
    Fault,
    FaultInjector,
)
from asynccommit.testing.models.gcs.model import GcsService
from asynccommit.testing.models.gcs.refusals import GCS
from asynccommit.testing.models.in_process import LostError
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual

HOST = "http://storage.test"
LIMIT = 1 << 20


def _service() -> GcsService:
    ids, ticks = itertools.count(1), itertools.count(1)
    service = GcsService(now=lambda: 1e9 + next(ticks), new_id=lambda: f"id-{next(ids)}")
    service.create_bucket("data")
    service.insert("data", "a", b"hello")
    return service


def _transport(*faults: Fault, latency: float = 0.0, patience: float = 0.0) -> InProcess:
    climate = Climate(faults, Latency.from_json(latency))
    loop = asyncio.get_running_loop()
    weather = FaultInjector(random.Random(1), loop.time, climate, GCS)
    return InProcess(GcsApp(_service()), weather, patience=patience)


def _names(transport: InProcess) -> list[str]:
    return [found.name for found in transport.app.service.list("data").items]


async def _move(transport: InProcess, source: str = "a", dest: str = "b") -> Response:
    url = f"{HOST}/storage/v1/b/data/o/{source}/moveTo/o/{dest}"
    return await transport.send("POST", url, {"Authorization": "Bearer x"}, limit=LIMIT)


Main = Callable[[], Coroutine[Any, Any, None]]


def virtual(main: Main) -> Callable[[], None]:
    """Return a test that runs on a loop with virtual time."""

    def test() -> None:
        run_virtual(main())

    test.__name__, test.__doc__ = main.__name__, main.__doc__
    return test


@virtual
async def test_answers_are_those_of_the_wire() -> None:
    """Header names in lower case; URLs lead back to where the request was sent."""
    transport = InProcess(GcsApp(_service()))
    got = await transport.send("GET", f"{HOST}/storage/v1/b/data/o/a", {}, limit=LIMIT)
    url = f"{HOST}/storage/v1/b/data/o/a?alt=media"
    media = await transport.send("GET", url, {}, limit=LIMIT)
    none = await transport.send("GET", f"{HOST}/elsewhere", {}, limit=LIMIT)

    assert got.status == 200
    assert got.headers["content-type"].startswith("application/json")
    assert f'"selfLink":"{HOST}/'.encode() in got.body
    assert (media.body, media.headers["x-goog-metageneration"]) == (b"hello", "1")
    assert none.status == 404
    assert all("x-guploader-uploadid" in one.headers for one in (got, media, none))


@virtual
async def test_answer_that_is_too_large() -> None:
    """As a transport over HTTP refuses it."""
    transport = InProcess(GcsApp(_service()))

    with pytest.raises(TooLargeError, match=r"GET storage\.test/storage/v1/b/data/o/a"):
        url = f"{HOST}/storage/v1/b/data/o/a?alt=media"
        await transport.send("GET", url, {}, limit=4)


@virtual
async def test_latency_takes_virtual_time() -> None:
    """Of each request."""
    transport = _transport(latency=30.0)
    answers = [await _move(transport, *names) for names in (("a", "b"), ("b", "c"))]

    assert [answer.status for answer in answers] == [200, 200]
    assert asyncio.get_running_loop().time() == pytest.approx(60.0)


@pytest.mark.parametrize(
    "kind, status, left", [(BEFORE, 429, ["a"]), (AFTER, 503, ["b"]), (SLOW, 200, ["b"])]
)
def test_faults_with_an_answer(kind: str, status: int, left: list[str]) -> None:
    """Refused before the effect, refused after it, slow."""

    async def main() -> None:
        transport = _transport(Fault(kind, op="move"))
        answer = await _move(transport)

        assert (answer.status, _names(transport)) == (status, left)

    run_virtual(main())


@pytest.mark.parametrize("kind, left", [(CUT_BEFORE, ["a"]), (CUT, ["b"])])
def test_faults_without_an_answer(kind: str, left: list[str]) -> None:
    """It may have happened: before the effect, or after it."""

    async def main() -> None:
        transport = _transport(Fault(kind, op="move"))
        with pytest.raises(NoAnswerError, match=r"POST storage\.test/.*: no response came"):
            await _move(transport)

        assert _names(transport) == left

    run_virtual(main())


@pytest.mark.parametrize("reply", ["cut", "never", "refusal"])
def test_late_effects_happen_in_the_background(reply: str) -> None:
    """``aclose`` waits for them; patience with an answer that never comes has an end."""

    async def main() -> None:
        delay = Latency.from_json({"seconds": 100.0})
        transport = _transport(Fault(LATE, op="move", delay=delay, reply=reply), patience=7.0)
        if reply == "refusal":
            assert (await _move(transport)).status == 503
        else:
            with pytest.raises(NoAnswerError):
                await _move(transport)
        at_once, waited = _names(transport), asyncio.get_running_loop().time()
        await transport.aclose()

        assert (at_once, waited) == (["a"], 7.0 if reply == "never" else 0.0)
        assert _names(transport) == ["b"]

    run_virtual(main())


@virtual
async def test_late_part_of_a_batch_happens_in_the_background() -> None:
    """While the batch is answered."""
    delay = Latency.from_json({"seconds": 100.0})
    transport = _transport(Fault(LATE, op="delete", delay=delay, reply="refusal"))
    part = "Content-Type: application/http\r\n\r\nDELETE /storage/v1/b/data/o/a HTTP/1.1"
    body = f"--b\r\n{part}\r\n\r\n\r\n--b--".encode()
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    url = f"{HOST}/batch/storage/v1"
    answer = await transport.send("POST", url, headers, body, limit=LIMIT)
    at_once = _names(transport)
    await transport.aclose()

    assert b"HTTP/1.1 503" in answer.body
    assert (at_once, _names(transport)) == (["a"], [])


@virtual
async def test_every_request_goes_through_one_hook() -> None:
    """Which may refuse, apply at another time, or not at all."""
    seen: list[tuple[str, str, bool]] = []

    class Watched(InProcess):
        async def exchange(self, call: GcsCall, apply: Callable[[], GcsResponse]) -> GcsResponse:
            seen.append((call.route.op, call.place, call.writes))
            if call.route.op == "move":
                apply()
                raise LostError
            return await super().exchange(call, apply)

    transport = Watched(GcsApp(_service()))
    await transport.send("GET", f"{HOST}/storage/v1/b/data/o?prefix=x", {}, limit=LIMIT)
    with pytest.raises(NoAnswerError):
        await _move(transport)

    assert seen == [("list", "data/x", False), ("move", "data/a", True)]
    assert _names(transport) == ["b"]


def test_two_runs_are_equal() -> None:
    """The same requests and seed give the same bytes, whatever the process."""

    async def run() -> list[Response]:
        transport = _transport(Fault(BEFORE, probability=0.5), latency=0.01)
        answers = [await _move(transport, *names) for names in [("a", "b"), ("b", "a")] * 10]
        url = f"{HOST}/storage/v1/b/data/o"
        return [*answers, await transport.send("GET", url, {}, limit=LIMIT)]

    assert run_virtual(run()) == run_virtual(run())

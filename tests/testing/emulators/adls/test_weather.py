"""What goes wrong on purpose: faults, latency, the limit, and the endpoint that sets them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.latency import Latency, RequestLimit
from tests.testing.emulators.adls.client import Answer, WireClient


async def _control(wire: WireClient, method: str, name: str, value: Any = None) -> Answer:
    body = b"" if value is None else json.dumps(value).encode()
    return await wire.send(method, f"/_emulator/{name}", body=body, signed=False)


async def _lost(wire: WireClient, source: str, dest: str) -> bool:
    """Rename, and return whether the connection was cut instead of an answer."""
    try:
        await wire.rename(source, dest)
    except (asyncio.IncompleteReadError, ConnectionError):
        await wire.close()
        return True
    return False


async def test_refused_before_the_effect(wire: WireClient) -> None:
    """503 with the service's message; nothing has happened, and once is once."""
    await wire.make("a")
    wire.emulator.weather.add(Fault("before", op="rename", times=1, retry_after=3))

    refused = await wire.rename("a", "b")
    again = await wire.rename("a", "b")

    assert refused.brief == (503, "ServerBusy")
    assert refused.headers["retry-after"] == "3"
    assert refused.json["error"]["message"].startswith("Operations per second is over the account")
    assert again.status == 201


async def test_answered_500_after_the_effect(wire: WireClient) -> None:
    """The service says that it took too long, and yet it is done."""
    await wire.make("a")
    wire.emulator.weather.add(Fault("after", op="rename", times=1))

    answer = await wire.rename("a", "b")

    assert answer.brief == (500, "OperationTimedOut")
    assert await wire.names() == ["b"]


@pytest.mark.parametrize("kind, status", [("twice", 404), ("again", 201)])
async def test_request_is_executed_twice(wire: WireClient, kind: str, status: int) -> None:
    """The response is that of the second execution, or of the first if the second comes later."""
    await wire.make("a")
    wire.emulator.weather.add(Fault(kind, op="rename", times=1, delay=Latency(first=0.0)))

    answer = await wire.rename("a", "b")

    assert answer.status == status
    assert await wire.names() == ["b"]


async def test_second_execution_comes_later(wire: WireClient) -> None:
    """What the client has moved meanwhile is there again."""
    delay = Latency(first=0.05)
    wire.emulator.weather.add(Fault("again", op="create", times=1, delay=delay))
    await wire.make("a")
    await wire.rename("a", "b")
    at_once = await wire.names()
    await asyncio.sleep(0.1)

    assert at_once == ["b"]
    assert await wire.names() == ["a", "b"]


@pytest.mark.parametrize("kind, left", [("cut", ["b"]), ("cut_before", ["a"])])
async def test_connection_is_cut(wire: WireClient, kind: str, left: list[str]) -> None:
    """Without an answer: after the effect, or before it."""
    await wire.make("a")
    wire.emulator.weather.add(Fault(kind, op="rename", times=1))

    assert await _lost(wire, "a", "b")

    assert await wire.names() == left
    assert wire.emulator.stats()["struck"] == {f"{kind} rename": 1}


async def test_effect_comes_late(wire: WireClient) -> None:
    """The client has given up, looks, finds nothing changed, and then it changes."""
    await wire.make("a")
    delay = Latency.from_json({"seconds": 0.2})
    wire.emulator.weather.add(Fault("late", op="rename", times=1, delay=delay))

    assert await _lost(wire, "a", "b")
    at_once = await wire.names()
    await asyncio.sleep(0.4)

    assert at_once == ["a"]
    assert await wire.names() == ["b"]


async def test_effect_outlives_the_client(wire: WireClient) -> None:
    """What was received is done, though the client left while it waited."""
    await wire.make("a")
    delay = Latency.from_json({"seconds": 0.1})
    wire.emulator.weather.add(Fault("slow", op="rename", times=1, delay=delay))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await wire.rename("a", "b")
    await wire.close()
    await asyncio.sleep(0.3)

    assert await wire.names() == ["b"]


async def test_fault_is_for_paths_that_match(wire: WireClient) -> None:
    """The rule's expression is searched for in filesystem and path."""
    wire.emulator.weather.add(Fault("before", path="data/part-.*1$"))

    answers = [await wire.ask("PUT", f"part-{n}", "resource=file") for n in (0, 1)]
    listing = await wire.ask("GET", "", "resource=filesystem&recursive=true&directory=part-1")

    assert [answer.status for answer in answers] == [201, 503]
    assert listing.status == 503


async def test_faults_of_the_blob_endpoint_are_its_own(wire: WireClient) -> None:
    """The same rule answers XML there."""
    wire.emulator.weather.add(Fault("before"))

    answer = await wire.ask("GET", "", "restype=container&comp=list")

    assert answer.brief == (503, "ServerBusy")
    assert b"<Code>ServerBusy</Code>" in answer.body


async def test_latency_delays_every_answer() -> None:
    """Each takes its time; many wait side by side."""
    climate = Climate(latency=Latency.from_json({"seconds": 0.05}))
    async with AdlsEmulator(climate=climate) as emulator:
        emulator.model.create_filesystem("data")
        clients = [WireClient(emulator) for _ in range(20)]
        start = asyncio.get_running_loop().time()
        answers = await asyncio.gather(*(c.ask("HEAD", "", "resource=filesystem") for c in clients))
        took = asyncio.get_running_loop().time() - start
        await asyncio.gather(*(client.close() for client in clients))

    assert {answer.status for answer in answers} == {200}
    assert took >= 0.05


async def test_limit_refuses_what_is_too_much() -> None:
    """The burst is let through, the rest is throttled with the service's answer."""
    climate = Climate(limit=RequestLimit(rate=0.001, burst=5))
    async with AdlsEmulator(climate=climate) as emulator, WireClient(emulator) as wire:
        answers = [await wire.ask("GET", None, "resource=account") for _ in range(8)]

        assert [answer.status for answer in answers] == [200] * 5 + [503] * 3
        assert answers[-1].code == "ServerBusy"
        assert emulator.stats()["statuses"] == {"200": 5, "503": 3}


async def test_faults_are_set_over_http(wire: WireClient) -> None:
    """A list replaces, POST adds, DELETE clears."""
    one = {"kind": "before", "op": "rename", "times": 1}
    two = {"kind": "cut", "op": "flush", "probability": 0.5}

    put = await _control(wire, "PUT", "faults", [one])
    post = await _control(wire, "POST", "faults", two)
    got = await _control(wire, "GET", "faults")
    deleted = await _control(wire, "DELETE", "faults")

    assert [fault["op"] for fault in put.json] == ["rename"]
    assert got.json == post.json
    assert [fault["op"] for fault in got.json] == ["rename", "flush"]
    assert got.json[1]["probability"] == 0.5
    assert deleted.json == []
    assert wire.emulator.weather.climate.faults == ()


async def test_weather_is_set_over_http(wire: WireClient) -> None:
    """What is given replaces, null clears, the rest stays."""
    await _control(wire, "PUT", "weather", {"latency": {"seconds": 0.001}, "limit": {"rate": 9}})
    both = await _control(wire, "GET", "weather")
    one = await _control(wire, "PUT", "weather", {"limit": None})

    assert both.json["limit"]["rate"] == 9
    assert one.json["limit"] is None
    assert one.json["latency"]["seconds"] == 0.001


async def test_statistics_over_http(wire: WireClient) -> None:
    """Requests by operation and answers by status; asking counts as nothing."""
    await wire.make("a")
    await wire.head("none")

    stats = (await _control(wire, "GET", "stats")).json
    cleared = (await _control(wire, "DELETE", "stats")).json

    assert stats["requests"] == {"create": 1, "head": 1}
    assert stats["statuses"] == {"201": 1, "404": 1}
    assert stats["connections"] == 1
    assert cleared["requests"] == cleared["statuses"] == {}


async def test_reset_over_http(wire: WireClient) -> None:
    """Everything is gone, and the weather is that of the start."""
    await wire.make("a")
    await _control(wire, "PUT", "faults", [{"kind": "before"}])

    assert (await _control(wire, "POST", "reset")).status == 200

    assert (await wire.head("a")).brief == (404, "FilesystemNotFound")
    assert wire.emulator.stats()["requests"] == {"head": 1}


async def test_tokens_over_http(wire: WireClient) -> None:
    """A token can be made to expire while a job runs."""
    before = await _control(wire, "GET", "tokens")
    await _control(wire, "PUT", "tokens", {"valid": ["new"], "expired": ["old"]})

    answer = await wire.ask("HEAD", "", signed=False, authorization="Bearer old")

    assert before.json == {"valid": None, "expired": []}
    assert answer.status == 401


async def test_pages_over_http(wire: WireClient) -> None:
    """How listings are split can be set."""
    for name in "abc":
        await wire.make(name)

    answer = await _control(wire, "PUT", "pages", {"page": 2})
    listing = await wire.ask("GET", "", "resource=filesystem&recursive=true")

    assert answer.json["page"] == 2
    assert len(listing.json["paths"]) == 2


@pytest.mark.parametrize(
    "method, name, value, status",
    [
        ("PUT", "faults", [{"kind": "quake"}], 400),
        ("PUT", "faults", [{"kind": "cut", "path": "("}], 400),
        ("PUT", "faults", 5, 400),
        ("PUT", "weather", {"limit": {"rate": -1}}, 400),
        ("PUT", "weather", [], 400),
        ("PUT", "tokens", {"valid": 5}, 400),
        ("PUT", "pages", {"leaf": 5}, 400),
        ("PUT", "pages", {"page": "x"}, 400),
        ("GET", "nothing", None, 404),
    ],
)
async def test_settings_that_are_none(
    wire: WireClient, method: str, name: str, value: Any, status: int
) -> None:
    """The answer says what is wrong, and nothing is changed."""
    answer = await _control(wire, method, name, value)

    assert answer.status == status
    assert answer.json["error"]
    assert wire.emulator.weather.climate == Climate()


async def test_settings_that_are_no_json(wire: WireClient) -> None:
    """A body that cannot be read is refused."""
    answer = await wire.send("PUT", "/_emulator/faults", body=b"{", signed=False)

    assert answer.status == 400


async def test_same_seed_same_faults() -> None:
    """Faults with a probability strike the same requests in every run of a seed."""

    async def run(seed: int) -> list[int]:
        climate = Climate(faults=(Fault("before", probability=0.5),))
        async with (
            AdlsEmulator(climate=climate, seed=seed) as emulator,
            WireClient(emulator) as wire,
        ):
            asked = [await wire.ask("GET", None, "resource=account") for _ in range(20)]
            return [answer.status for answer in asked]

    assert await run(1) == await run(1) != await run(2)


@pytest.mark.parametrize(
    "method, value, left", [("PUT", [{"kind": "cut"}], 1), ("DELETE", None, 0)]
)
async def test_faults_change_without_the_rest_of_the_weather(
    wire: WireClient, method: str, value: Any, left: int
) -> None:
    """Latency and limit stay as they were."""
    weather = {
        "latency": {"model": "fixed", "seconds": 0.001},
        "limit": {"rate": 100},
        "faults": [{"kind": "cut", "path": "never"}, {"kind": "after", "path": "never"}],
    }
    await _control(wire, "PUT", "weather", weather)
    before = wire.emulator.weather.climate
    await _control(wire, method, "faults", value)
    after = wire.emulator.weather.climate

    assert (after.latency, after.limit) == (before.latency, before.limit)
    assert len(after.faults) == left


async def test_a_web_page_may_not_change_the_weather(wire: WireClient) -> None:
    """A browser says where a request comes from; a page from elsewhere could do harm unseen."""
    headers = {"origin": "https://elsewhere.example"}
    answer = await wire.send("POST", "/_emulator/reset", headers=headers, signed=False)

    assert answer.status == 403
    assert wire.emulator.model.head_filesystem("data").name == "data"


async def test_settings_that_are_nested_too_deep(wire: WireClient) -> None:
    """They are refused like others that cannot be read."""
    body = b"[" * 100_000
    answer = await wire.send("PUT", "/_emulator/faults", body=body, signed=False)

    assert answer.status == 400

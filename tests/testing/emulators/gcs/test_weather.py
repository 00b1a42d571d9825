"""What goes wrong on purpose over the JSON API: faults, quotas, tokens, and what sets them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
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
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.models.gcs.quotas import Quotas
from asynccommit.testing.models.gcs.refusals import OPS
from asynccommit.testing.models.latency import Latency, RequestLimit
from tests.testing.emulators.gcs.client import Answer, GcsClient, segment


async def _control(gcs: GcsClient, method: str, name: str, value: Any = None) -> Answer:
    body = b"" if value is None else json.dumps(value).encode()
    return await gcs.send(method, f"/_emulator/{name}", body)


async def _lost(gcs: GcsClient, asking: Awaitable[Answer]) -> bool:
    """Return whether the connection was cut instead of an answer."""
    try:
        await asking
    except (asyncio.IncompleteReadError, ConnectionError):
        await gcs.close()
        return True
    return False


async def test_refused_before_the_effect(gcs: GcsClient) -> None:
    """429 in the service's form; nothing has happened, and once is once."""
    await gcs.make("a")
    gcs.emulator.weather.add(Fault(BEFORE, op="move", times=1, retry_after=3))
    refused = await gcs.move("a", "b")
    again = await gcs.move("a", "b")

    assert refused.brief == (429, "rateLimitExceeded")
    assert refused.headers["retry-after"] == "3"
    assert refused.json["error"]["errors"][0]["domain"] == "usageLimits"
    assert again.status == 200


async def test_answered_503_after_the_effect(gcs: GcsClient) -> None:
    """The service says that it failed, and yet it is done."""
    await gcs.make("a")
    gcs.emulator.weather.add(Fault(AFTER, op="move", times=1))

    assert (await gcs.move("a", "b")).brief == (503, "backendError")
    assert await gcs.names() == ["b"]


@pytest.mark.parametrize("kind, left", [(CUT, ["b"]), (CUT_BEFORE, ["a"])])
async def test_connection_is_cut(gcs: GcsClient, kind: str, left: list[str]) -> None:
    """Without an answer: after the effect, or before it."""
    await gcs.make("a")
    gcs.emulator.weather.add(Fault(kind, op="move", times=1))

    assert await _lost(gcs, gcs.move("a", "b"))

    assert await gcs.names() == left
    assert gcs.emulator.stats()["struck"] == {f"{kind} move": 1}


async def test_effect_comes_late(gcs: GcsClient) -> None:
    """The client has given up, looks, finds nothing changed, and then it changes."""
    await gcs.make("a")
    delay = Latency.from_json({"seconds": 0.1})
    gcs.emulator.weather.add(Fault(LATE, op="move", times=1, delay=delay))

    assert await _lost(gcs, gcs.move("a", "b"))
    at_once = await gcs.names()
    gcs.emulator.weather.add(Fault(SLOW, op="list", times=1, delay=Latency.from_json(0.3)))
    await gcs.names()

    assert at_once == ["a"]
    assert await gcs.names() == ["b"]


async def test_answer_that_never_comes(gcs: GcsClient) -> None:
    """The connection stays; the client must give up by itself."""
    gcs.emulator.weather.add(Fault(LATE, op="list", reply="never"))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await gcs.page()


@pytest.mark.parametrize("op", OPS)
async def test_every_operation_can_be_struck(hns: GcsClient, op: str) -> None:
    """Each by its own name, and only it."""
    await hns.make("a", b"x")
    await hns.ask("POST", "folders", {"name": "d/"})
    weather = hns.emulator.weather
    weather.add(Fault(BEFORE, op=op, code="backendError"))
    weather.requests.clear()
    renamed = f"folders/{segment('d/')}/renameTo/folders/{segment('e/')}"
    answers = {
        "get": await hns.get("a"),
        "read": await hns.media("a"),
        "list": await hns.page(),
        "patch": await hns.ask("PATCH", "o/a", {}),
        "insert": await hns.put("b"),
        "upload": await hns.send("POST", "/upload/storage/v1/b/data/o?uploadType=resumable&name=c"),
        "rewrite": await hns.ask("POST", "o/a/rewriteTo/b/data/o/d"),
        "compose": await hns.ask("POST", "o/e/compose", {"sourceObjects": [{"name": "a"}]}),
        "layout": await hns.ask("GET", "storageLayout"),
        "bucket": await hns.ask("GET", ""),
        "folder": await hns.ask("GET", "folders"),
        "rename_folder": await hns.ask("POST", renamed),
        "operation": await hns.ask("GET", "operations"),
        "batch": await hns.send_batch(["GET /storage/v1/b HTTP/1.1"]),
        "move": await hns.move("a", "f"),
        "delete": await hns.delete("f"),
    }
    struck = [name for name, answer in answers.items() if answer.status == 503]

    assert struck == [op]
    assert set(weather.requests) == set(OPS)


async def test_fault_is_for_paths_that_match(gcs: GcsClient) -> None:
    """The rule's expression is searched for in bucket and name; of a listing in its prefix."""
    gcs.emulator.weather.add(Fault(BEFORE, path="data/part-.*1$"))
    answers = [
        await gcs.put("part-0"),
        await gcs.put("part-1"),
        await gcs.upload({"name": "part-1"}, b""),
        await gcs.page(prefix="part-1"),
        await gcs.page(prefix="part-0"),
    ]

    assert [answer.status for answer in answers] == [200, 429, 429, 429, 200]


async def test_latency_delays_every_answer() -> None:
    """Each takes its time."""
    climate = Climate(latency=Latency.from_json({"seconds": 0.05}))
    async with (
        GcsEmulator(buckets=["data"], climate=climate) as emulator,
        GcsClient(emulator) as gcs,
    ):
        start = asyncio.get_running_loop().time()
        answer = await gcs.page()

        assert answer.status == 200
        assert asyncio.get_running_loop().time() - start >= 0.05


async def test_limit_refuses_what_is_too_much() -> None:
    """The burst is let through, the rest is throttled."""
    climate = Climate(limit=RequestLimit(rate=0.001, burst=5))
    async with (
        GcsEmulator(buckets=["data"], climate=climate) as emulator,
        GcsClient(emulator) as gcs,
    ):
        answers = [await gcs.page() for _ in range(8)]

        assert [answer.status for answer in answers] == [200] * 5 + [429] * 3
        assert emulator.stats()["statuses"] == {"200": 5, "429": 3}


async def test_quotas_of_a_bucket() -> None:
    """One object cannot be changed too often, whatever else is asked."""
    quotas = Quotas(name_interval=1000.0, name_burst=2.0)
    async with (
        GcsEmulator(buckets={"data": BucketOptions(quotas=quotas)}) as emulator,
        GcsClient(emulator) as gcs,
    ):
        hot = [(await gcs.put("a")).status for _ in range(3)]
        other = await gcs.put("b")
        refused = await gcs.delete("a")

    assert hot == [200, 200, 429]
    assert other.status == 200
    assert refused.brief == (429, "rateLimitExceeded")
    assert "a" in refused.json["error"]["message"]


async def test_faults_and_weather_are_set_over_http(gcs: GcsClient) -> None:
    """In the service's own words."""
    rule = {"kind": "before", "op": "rename_folder", "code": "rateLimitExceeded"}
    put = await _control(gcs, "PUT", "faults", [rule])
    wrong = await _control(gcs, "PUT", "faults", [{"kind": "before", "op": "rename"}])
    nor = await _control(gcs, "PUT", "weather", {"faults": [{"kind": "cut", "code": "ServerBusy"}]})

    assert [fault["op"] for fault in put.json] == ["rename_folder"]
    assert (wrong.status, nor.status) == (400, 400)
    assert len(gcs.emulator.weather.climate.faults) == 1


async def test_pages_over_http(gcs: GcsClient) -> None:
    """How listings and rewrites are split can be set."""
    for name in "abc":
        await gcs.make(name)
    answer = await _control(gcs, "PUT", "pages", {"page": 2, "rewrite_bytes": 5})
    wrong = await _control(gcs, "PUT", "pages", {"leaf": 5})

    assert answer.json == (await _control(gcs, "GET", "pages")).json
    assert (answer.json["page"], answer.json["rewrite_bytes"]) == (2, 5)
    assert wrong.status == 400
    assert len((await gcs.page()).json["items"]) == 2


async def test_buckets_over_http(gcs: GcsClient) -> None:
    """They are made and changed with options that clients cannot give."""
    given = {"data": {"moves": False, "quotas": "flat"}, "deep": {"hns": True}}
    answer = await _control(gcs, "PUT", "buckets", given)
    quotas = {"writes": 5, "name_interval": 1}
    again = await _control(gcs, "PUT", "buckets", {"data": {"quotas": quotas}})
    refused: list[Any] = [5, {"data": {"x": 1}}, {"data": {"hns": True}}, {"Data!": {}}]
    wrong = [await _control(gcs, "PUT", "buckets", value) for value in refused]

    assert answer.json["deep"]["hns"]
    assert answer.json["data"]["quotas"]["writes"] == 1000
    assert not again.json["data"]["moves"]
    assert again.json["data"]["quotas"]["writes"] == 5
    assert {one.status for one in wrong} == {400}
    assert again.json == (await _control(gcs, "GET", "buckets")).json


async def test_permissions_are_denied_over_http(gcs: GcsClient) -> None:
    """By their names; what sets buckets up is not denied anything."""
    await gcs.make("a")
    put = await _control(gcs, "PUT", "denied", ["storage.objects.delete", "storage.buckets.list"])
    wrong = await _control(gcs, "PUT", "denied", "storage.objects.delete")

    assert put.json == (await _control(gcs, "GET", "denied")).json
    assert (await gcs.delete("a")).status == 403
    assert (await _control(gcs, "GET", "buckets")).status == 200
    assert wrong.status == 400


async def test_tokens_over_http(gcs: GcsClient) -> None:
    """A token can be made to expire while a job runs."""
    await _control(gcs, "PUT", "tokens", {"valid": ["new"], "expired": ["old"]})
    answers = {
        token: await gcs.page_as(header)
        for token, header in {
            "new": "Bearer new",
            "old": "Bearer old",
            "basic": "Basic new",
            "none": "",
        }.items()
    }
    await _control(gcs, "PUT", "tokens", {"valid": None, "expired": ["old"]})

    assert answers["new"].status == 200
    assert answers["old"].brief == answers["basic"].brief == (401, "authError")
    assert answers["none"].brief == (401, "required")
    assert "Anonymous caller" in answers["none"].json["error"]["message"]
    assert answers["old"].headers["www-authenticate"].startswith("Bearer realm=")
    assert (await gcs.page_as("Bearer old")).status == 401
    assert (await gcs.page_as("Bearer any")).status == 200


async def test_reset_over_http() -> None:
    """Everything is gone but the buckets that were there at the start; the weather is fair."""
    async with GcsEmulator(buckets=["data"]) as emulator, GcsClient(emulator) as gcs:
        await gcs.make("a")
        await _control(gcs, "PUT", "buckets", {"other": {}})
        await _control(gcs, "PUT", "faults", [{"kind": "before"}])
        await _control(gcs, "POST", "reset")

        assert await gcs.names() == []
        assert list((await _control(gcs, "GET", "buckets")).json) == ["data"]
        assert emulator.stats()["requests"] == {"list": 1}
        assert (emulator.bucket, emulator.environ) == (
            "data",
            {"STORAGE_EMULATOR_HOST": emulator.endpoint},
        )


def test_bucket_that_cannot_be() -> None:
    """The emulator is not made, and the bucket is named."""
    with pytest.raises(OptionError, match="bucket 'No!'"):
        GcsEmulator(buckets=["No!"])


async def test_same_seed_same_faults() -> None:
    """Faults with a probability strike the same requests in every run of a seed."""

    async def run(seed: int) -> list[int]:
        climate = Climate(faults=(Fault(BEFORE, probability=0.5),))
        async with (
            GcsEmulator(buckets=["data"], climate=climate, seed=seed) as emulator,
            GcsClient(emulator) as gcs,
        ):
            return [(await gcs.page()).status for _ in range(20)]

    assert await run(1) == await run(1) != await run(2)

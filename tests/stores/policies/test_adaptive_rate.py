"""Adaptive asks an account at the rate that it takes, in virtual time, whoever else asks."""

from __future__ import annotations

import asyncio
import gc
import logging
import math

import pytest

from asynccommit.errors import (
    NotFoundError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Traits
from asynccommit.stores.policies.adaptive_rate import Adaptive
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.rate_queue import Ceilings
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.stores.policies.servers import LATENCY, Client, Server, share, together
from tests.support.stack import Answers, delete, head, put, rename


def of(account: str) -> Adaptive:
    """A policy for stores of an account."""
    return Adaptive(Traits("store", account=account))


@pytest.mark.sample(1)
@pytest.mark.parametrize("limit, seconds", [(1000, 20), (5000, 12)])
def test_the_limit_is_reached_and_not_exceeded(limit: int, seconds: int) -> None:
    """After four seconds 98% of the limit are used, and under 0.5% of the requests refused."""
    server = Server(limit)
    run_virtual(Client(server).run(seconds, workers=limit // 20))
    assert share(server.taken, 4, seconds) > 0.98 * limit
    assert server.refusals(4, seconds) < 0.005


@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_clients_share_the_limit(seed: int) -> None:
    """Two processes on one account get half each, within a tenth of it."""
    server = Server(2000, seed=seed)
    one, other = (Client(server, name) for name in ("one", "other"))
    run_virtual(together(one.run(25, 100), other.run(25, 100)))
    for client in (one, other):
        assert share(client.taken, 5, 25) == pytest.approx(1000, rel=0.1)
    assert share(server.taken, 5, 25) > 0.98 * 2000


def processes(server: Server, parts: int) -> list[Client]:
    """Return the processes of one job, each with a limiter of its own."""
    return [Client(server, f"process {number}", parts=parts) for number in range(parts)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("limit, parts", [(500, 4), (500, 2), (1000, 8)])
def test_processes_of_a_job_keep_to_a_low_limit(limit: int, parts: int) -> None:
    """They use all of it, and under 1% of their requests are refused."""
    server = Server(limit)
    run_virtual(together(*[each.run(20, 128) for each in processes(server, parts)]))
    assert share(server.taken, 4, 20) > 0.97 * limit
    assert server.refusals(4, 20) < 0.01


@pytest.mark.full
def test_processes_of_a_job_leave_others_a_share() -> None:
    """Four of them are nearly as one client to another job on the account."""
    server, seconds = Server(1000), 40
    other = Client(server, "other")
    jobs = [other, *processes(server, 4)]
    run_virtual(together(*[each.run(seconds, 128) for each in jobs]))
    assert share(other.taken, 20, seconds) > 0.33 * 1000


def test_a_late_comer_gets_its_share() -> None:
    """A client that begins while another has the whole limit comes near to half of it."""
    server = Server(2000)
    one, other = (Client(server, name) for name in ("one", "other"))

    async def late() -> None:
        await asyncio.sleep(5)
        await other.run(45, 100)

    run_virtual(together(one.run(45, 100), late()))
    assert share(other.taken, 10, 25) > 0.75 * 1000
    assert share(other.taken, 25, 45) > 0.9 * 1000


def test_a_limit_that_drops_is_settled_in_three_seconds() -> None:
    """From 5,000 to 1,000 a second: three seconds later hardly anything is refused."""
    server = Server(5000)

    async def drop() -> None:
        asyncio.get_running_loop().call_later(6, setattr, server, "limit", 1000)
        await Client(server).run(14, 250)

    run_virtual(drop())
    assert share(server.taken, 9, 14) > 0.95 * 1000
    assert server.refusals(9, 14) < 0.01


@pytest.mark.full
def test_a_limit_that_rises_is_settled_in_a_minute() -> None:
    """From 400 to 2,000 a second: after a minute the new limit is used."""
    server = Server(400)

    async def rise() -> None:
        asyncio.get_running_loop().call_later(5, setattr, server, "limit", 2000)
        await Client(server).run(70, 100)

    run_virtual(rise())
    assert share(server.taken, 65, 70) > 0.97 * 2000
    assert server.refusals(65, 70) < 0.01


def test_refusals_without_a_reason_do_not_stop_everything() -> None:
    """One in a hundred is refused at any rate: most of the limit is used all the same."""
    server = Server(2000, noise=0.01)
    run_virtual(Client(server).run(25, 100))
    assert share(server.taken, 5, 25) > 0.85 * 2000


def test_a_service_without_a_limit_is_asked_as_fast_as_it_responds() -> None:
    """No request waits for the rate, from the first one on."""
    server = Server(1e9)
    client = Client(server, unlimited=True)
    run_virtual(client.run(1, 200))
    assert share(server.taken, 0, 1) > 0.9 * 200 / LATENCY
    assert client.policy.waited["rate"] == 0.0
    assert client.policy.rate == math.inf


def test_a_service_that_begins_to_refuse_is_asked_at_what_it_takes() -> None:
    """Its refusals set a rate, which then follows the limit."""
    server = Server(2000)
    client = Client(server, unlimited=True)
    run_virtual(client.run(12, 200))
    assert share(server.taken, 6, 12) > 0.9 * 2000
    assert server.refusals(6, 12) < 0.05


def test_a_ceiling_holds() -> None:
    """A job that is told 300 a second asks no faster, whatever the account would take."""
    server = Server(2000)
    run_virtual(Client(server, ceilings=Ceilings(300)).run(5, 50))
    assert 290 <= share(server.taken, 1, 5) <= 301
    assert server.refused == []


async def test_stores_of_one_account_share_a_limiter_for_as_long_as_they_are_used() -> None:
    """Two stores on an account have one rate; it is forgotten with them, and differs by account."""
    one, two, other = of("a"), of("a"), of("b")
    for policy in (one, two, other):
        await policy.around(Answers())(head())
    assert one._limiter is two._limiter is not other._limiter
    assert one.rate == 1000
    identity = id(one._limiter)
    del one, two
    gc.collect()
    again, keep = of("a"), [object() for _ in range(100)]
    assert again.rate == 0
    await again.around(Answers())(head())
    assert again.rate == 1000
    assert again._limiter is not None
    del identity, keep


def test_loops_share_nothing() -> None:
    """Another event loop has timers of its own, so it has a limiter of its own."""
    policies = [of("a"), of("a")]
    for policy in policies:
        asyncio.run(_once(policy))
    assert policies[0]._limiter is not policies[1]._limiter


async def _once(policy: Adaptive) -> None:
    await policy.around(Answers())(head())


@pytest.mark.parametrize(
    "error, counts",
    [
        (ThrottledError("op", "/a"), True),
        (OutcomeUnknownError("op", "/a", busy=True), True),
        (OutcomeUnknownError("op", "/a"), False),
        (UnavailableError("op", "/a"), False),
        (NotFoundError("op", "/a"), False),
    ],
)
def test_what_counts_as_a_refusal(error: StoreError, counts: bool) -> None:
    """Throttled and busy answers lower the rate; other errors are answers like any other."""

    async def main() -> None:
        policy = of("a")
        call = policy.around(Answers(*[error] * 200))
        for _ in range(200):
            with pytest.raises(type(error)) as caught:
                await call(rename())
            assert caught.value is error
            await asyncio.sleep(0.005)
        assert policy.refused == (200 if counts else 0)
        assert (policy.rate < 1000) is counts

    run_virtual(main())


def test_the_waits_are_told_by_reason() -> None:
    """How long requests waited for the rate, and how long in a pause that the store asked for."""

    async def main() -> None:
        policy = of("a")
        call = policy.around(Answers(*[ThrottledError("op", "/a", "", 3.0)] * 400))
        for _ in range(10):
            await asyncio.gather(*[call(head()) for _ in range(40)], return_exceptions=True)
        assert policy.waited["rate"] > 0.1
        assert policy.waited["retry-after"] > 3

    run_virtual(main())


def test_a_call_pays_what_it_costs() -> None:
    """A put that the store makes of four requests takes four times the share of the rate."""

    async def main() -> None:
        policy = Adaptive(Traits("store", account="a", costs={"put": 4}), Ceilings(1000))
        call = policy.around(Answers())
        await asyncio.gather(*[call(put()) for _ in range(250)])
        assert asyncio.get_running_loop().time() == pytest.approx(1.0, abs=0.05)

    run_virtual(main())


def test_a_cost_may_become_known_later() -> None:
    """A store that finds out that its renames are two requests is believed from then on."""

    async def main() -> None:
        costs = {"rename": 1}
        policy = Adaptive(Traits("s", account="a"), Ceilings(1000), costs=lambda: dict(costs))
        call = policy.around(Answers())
        await asyncio.gather(*[call(rename()) for _ in range(500)])
        costs["rename"] = 2
        await call(rename())
        begin = asyncio.get_running_loop().time()
        assert begin == pytest.approx(0.5, abs=0.05)
        await asyncio.gather(*[call(rename()) for _ in range(2)])
        begin = asyncio.get_running_loop().time()
        await asyncio.gather(*[call(rename()) for _ in range(500)])
        assert asyncio.get_running_loop().time() - begin == pytest.approx(1.0, abs=0.05)

    run_virtual(main())


@pytest.mark.parametrize(
    "op, ceilings",
    [
        (Op("list_tree", ("/a", None), False, True), Ceilings(reads=100)),
        (Op("delete_many", ([None] * 10,), True, True), Ceilings(deletes=1000)),
        (Op("sync", ("/a",), True, True), Ceilings(writes=100)),
        (Op("completed", ("/a", ()), False, True), Ceilings(reads=100)),
        (Op("list_uploads", ("/a", None), False, True), Ceilings(reads=100)),
        (Op("list_parts", ("/a", "id", None), False, True), Ceilings(reads=100)),
        (Op("abort_upload", ("/a", "id"), True, True), Ceilings(deletes=100)),
        (Op("complete_upload", ("/a", "id", ()), True, False), Ceilings(writes=100)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_method_is_of_a_kind(op: Op, ceilings: Ceilings) -> None:
    """A tree is read page by page; each file of a batch is a delete, an aborted upload as well."""

    async def main() -> None:
        policy = Adaptive(Traits("store", account="a"), ceilings)
        call = policy.around(Answers(*[[None] * 10] * 100))
        await asyncio.gather(*[call(op) for _ in range(100)])
        assert asyncio.get_running_loop().time() == pytest.approx(1.0, abs=0.08)

    run_virtual(main())


def test_a_cleanup_does_not_hold_up_another_job() -> None:
    """Renames of one store pass the deletes of another on the same account."""

    async def main() -> None:
        cleaning, renaming = of("a").around(Answers()), of("a").around(Answers())
        deletes = asyncio.gather(*[cleaning(delete()) for _ in range(1000)])
        await asyncio.sleep(0.01)
        begin = asyncio.get_running_loop().time()
        await asyncio.gather(*[renaming(rename()) for _ in range(200)])
        assert asyncio.get_running_loop().time() - begin < 0.3
        await deletes

    run_virtual(main())


def test_a_ceiling_ends_with_its_store() -> None:
    """The more careful of two stores slows both down, until it is closed and gone."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        careful: list[Adaptive] = [Adaptive(Traits("s", account="a"), Ceilings(100))]
        await careful[0].around(Answers())(head())
        policy = of("a")
        call = policy.around(Answers())
        await asyncio.gather(*[call(head()) for _ in range(100)])
        assert loop.time() == pytest.approx(1, abs=0.05)
        careful.clear()
        await asyncio.gather(*[call(head()) for _ in range(1000)])
        assert loop.time() < 3

    run_virtual(main())


def test_it_says_what_it_is() -> None:
    """Its text names the account and the ceilings."""
    assert repr(of("a")).startswith("Adaptive('a', Ceilings(total=inf")


def test_refusals_and_changes_of_the_rate_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """DEBUG has a line for each refusal and for each change of the rate by a twentieth."""
    caplog.set_level(logging.DEBUG, "asynccommit")
    server = Server(1500)
    run_virtual(Client(server).run(3, workers=75))

    refused = [text for text in caplog.messages if " refused 1 requests: " in text]
    rates = [text for text in caplog.messages if text.startswith("rate: ")]
    assert len(refused) == len(server.refused) > 0
    assert rates[0].endswith("requests/s (was 1000)")
    assert 3 <= len(rates) <= 60

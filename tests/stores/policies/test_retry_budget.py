"""Budget bounds what is sent again, and Backoff waits for it and never fails for want of it."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError, UnavailableError
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.retry_budget import (
    RESERVE,
    SHARE,
    TRICKLE,
    Backoff,
    Budget,
    is_throttled,
    reason_of,
)
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.stack import Answers, Clock, Random, head, put

UNAVAILABLE = UnavailableError("op", "/a", "away")
BUSY = OutcomeUnknownError("op", "/a", "timed out", busy=True)
THROTTLED = ThrottledError("op", "/a", "busy")
LOST = OutcomeUnknownError("op", "/a", "reset")


@given(st.lists(st.integers(0, 30) | st.floats(0, 10), max_size=200))
def test_no_more_is_sent_again_than_a_tenth(steps: list[int | float]) -> None:
    """Of any mixture of traffic and time: a tenth of the requests, one a second, and a reserve."""
    budget, now, requests, again = Budget(), 0.0, 0, 0
    for step in steps:
        if isinstance(step, float):
            now += step
        else:
            budget.earn(step)
            requests += step
        while budget.spend(now):
            again += 1
        assert again <= RESERVE + SHARE * requests + TRICKLE * now + 1e-6


def test_a_quiet_hour_saves_up_a_hundred() -> None:
    """What was not needed is kept, but not for ever."""
    budget = Budget()
    budget.earn(1_000_000)
    spent = 0
    while budget.spend(0.0):
        spent += 1
    assert spent == 100
    assert repr(budget) == "Budget(0.0)"


@pytest.mark.parametrize(
    "error, throttled", [(THROTTLED, True), (BUSY, True), (LOST, False), (UNAVAILABLE, False)]
)
def test_what_is_for_the_rate(error: StoreError, throttled: bool) -> None:
    """A refusal for the rate, and an answer that the store was busy."""
    assert is_throttled(error) is throttled


def emptied(clock: Clock, budget: Budget) -> None:
    """Leave nothing in the budget."""
    while budget.spend(clock.now):
        pass


async def test_an_empty_budget_delays_and_does_not_fail(clock: Clock) -> None:
    """With nothing left a request waits for the second that brings leave, and is sent."""
    backoff = Backoff(Random(0.5), sleep=clock.sleep, clock=clock.time, base=0.1)
    emptied(clock, backoff._join())
    begin = clock.now
    assert await backoff.wait(UNAVAILABLE, 1, begin)
    assert clock.now - begin == pytest.approx(1, abs=0.5)
    assert backoff.waited["budget"] > 0.5
    assert backoff.waited["backoff"] == 0.05


@pytest.mark.parametrize("error", [THROTTLED, BUSY])
async def test_throttled_answers_spend_nothing(clock: Clock, error: StoreError) -> None:
    """An empty budget holds up nothing that was refused for the rate, and is not asked."""
    backoff = Backoff(Random(0.5), sleep=clock.sleep, clock=clock.time, base=0.1)
    budget = backoff._join()
    emptied(clock, budget)
    assert await backoff.wait(error, 1, clock.now)
    assert backoff.waited["budget"] == 0
    budget.earn(20)
    assert await backoff.wait(error, 1, clock.now)
    assert budget.left == pytest.approx(2)


async def test_the_deadline_ends_the_wait_for_a_budget(clock: Clock) -> None:
    """Only time fails a request: ten minutes, also while it waits for the budget."""
    budget = Budget()
    backoff = Backoff(Random(0.5), sleep=clock.sleep, clock=clock.time, deadline=600)
    backoff._budget = budget
    begin = clock.now

    async def greedy(seconds: float) -> None:
        await clock.sleep(seconds)
        emptied(clock, budget)  # Others take whatever comes.

    backoff._sleep = greedy
    assert not await backoff.wait(UNAVAILABLE, 1, begin)
    assert 599 < clock.now - begin <= 600


async def test_the_waits_are_told_by_reason(clock: Clock) -> None:
    """What the store asked for and what was drawn are counted apart."""
    backoff = Backoff(Random(0.5), sleep=clock.sleep, clock=clock.time, base=1.0)
    assert await backoff.wait(ThrottledError("op", "/a", "", 7.0), 1, clock.now)
    assert backoff.waited == {"backoff": 0.5, "retry-after": 7.0, "budget": 0.0}
    assert clock.slept == [7.5]


async def test_policies_of_one_account_share_a_budget() -> None:
    """Requests through one store earn what another store on the account may spend."""
    policies = [Retry(random.Random(1), account=name) for name in ("a", "a", "b")]
    for _ in range(50):
        await policies[0].around(Answers())(head())
    budgets = [policy._backoff._join() for policy in policies]
    assert budgets[0] is budgets[1] is not budgets[2]
    assert budgets[1].left == pytest.approx(15)


def test_stores_without_an_account_share_nothing() -> None:
    """A local disk has a budget for itself."""

    async def main() -> None:
        one, two = (Backoff(random.Random(1)) for _ in range(2))
        assert one._join() is not two._join()

    run_virtual(main())


def test_an_outage_is_not_made_worse() -> None:
    """A hundred workers send again what the budget allows in a minute of outage; all succeed."""
    sent: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def store(op: Op) -> None:
            sent.append(loop.time())
            await asyncio.sleep(0.02)
            if loop.time() < 60:
                raise UNAVAILABLE

        call = Retry(random.Random(1), attempts=1000, first=1000, account="a").around(store)
        await asyncio.gather(*[call(put()) for _ in range(100)])

    run_virtual(main())
    again = sum(time < 60 for time in sent) - 100
    assert again <= RESERVE + SHARE * 100 + TRICKLE * 60 + 1
    assert len(sent) - 100 > again  # all were answered in the end
    assert max(sent) < 180


def test_waiting_requests_are_counted_by_reason() -> None:
    """While requests wait their number is known by reason, and nothing is left afterwards."""

    async def run() -> list[dict[str, int]]:
        backoff, seen = Backoff(random.Random(1)), list[dict[str, int]]()
        errors = (UNAVAILABLE, UNAVAILABLE, THROTTLED)
        waits = [asyncio.ensure_future(backoff.wait(error, 5, 0.0)) for error in errors]
        await asyncio.sleep(0)
        seen.append(dict(backoff.waiting))
        waits[-1].cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        return [*seen, dict(backoff.waiting)]

    during, after = run_virtual(run())

    assert during == {"away": 2, "the store limits the rate": 1}
    assert after == {}


@pytest.mark.parametrize(
    "error, reason",
    [
        (THROTTLED, "the store limits the rate"),
        (BUSY, "the store limits the rate"),
        (LOST, "reset"),
        (UnavailableError("op", "/a"), "UnavailableError"),
        (UnavailableError("op", "/a", "two\nlines"), "two lines"),
        (UnavailableError("op", "/a", "x" * 90), "x" * 80 + "..."),
    ],
)
def test_a_reason_is_a_few_words(error: StoreError, reason: str) -> None:
    """A reason fits into a line of progress."""
    assert reason_of(error) == reason


def test_a_reason_has_no_secret() -> None:
    """A signature in the text of an error is not shown."""
    text = "https://x.blob.core.windows.net/?sig=SECRETSECRET%3D&se=1"
    assert "SECRETSECRET" not in reason_of(UnavailableError("op", "/a", text))

"""Limiter lets requests go evenly, each kind its share, and within every ceiling."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.stores.base import Ramp
from asynccommit.stores.policies.rate_queue import DELETES, READS, WRITES, Ceilings, Limiter
from asynccommit.testing.models.virtual_loop import run_virtual

Gone = list[tuple[float, int]]


def limiter_at(rate: float) -> Limiter:
    """A limiter of the running loop whose rate stays."""
    limiter = Limiter(asyncio.get_running_loop())
    limiter.join(limiter_at, Ceilings(rate))
    return limiter


def refuse(limiter: Limiter, epoch: int, retry_after: float | None = None) -> None:
    """Let a write of ``epoch`` be refused."""
    now = asyncio.get_running_loop().time()
    limiter.quotas[WRITES].refused(epoch, 1, retry_after, now)


async def send(limiter: Limiter, kind: int, count: int, gone: Gone, cost: int = 1) -> None:
    """Send so many requests of a kind, each from a task of its own."""

    async def one() -> None:
        if not limiter.take(kind, cost):
            await limiter.wait(kind, cost)
        gone.append((asyncio.get_running_loop().time(), kind))

    await asyncio.gather(*[one() for _ in range(count)])


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run an async test on a loop whose time only jumps."""

    def run() -> None:
        async def main() -> None:
            await test()

        run_virtual(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_virtual_time
async def test_requests_leave_evenly() -> None:
    """At 500 a second nothing leaves in bursts: in no 20 ms are there more than a dozen."""
    gone: Gone = []
    await send(limiter_at(500), WRITES, 1000, gone)
    times = [time for time, _ in gone]
    assert 1.95 <= times[-1] <= 2.01
    assert max(sum(t <= time < t + 0.02 for time in times) for t in times) <= 12


@in_virtual_time
async def test_the_first_requests_leave_at_once() -> None:
    """Before a rate is known 250 requests leave without a wait, and the next at the first rate."""
    limiter, gone = limiter_at(math.inf), Gone()
    await send(limiter, WRITES, 350, gone)
    assert sum(time == 0 for time, _ in gone) == 250
    assert gone[-1][0] == pytest.approx(0.1, abs=0.01)


@in_virtual_time
async def test_a_rest_of_a_second_opens_again() -> None:
    """After a second without requests 250 leave at once again; after half of one they do not."""
    limiter = limiter_at(math.inf)
    at_once = []
    for pause in (0.0, 0.5, 1.0):
        await asyncio.sleep(pause)
        gone: Gone = []
        await send(limiter, WRITES, 270, gone)
        at_once.append(sum(time == gone[0][0] for time, _ in gone))
    assert at_once == [250, 10, 250]


@pytest.mark.parametrize(
    "ceilings, ramp",
    [(Ceilings(1200), None), (Ceilings(), Ramp(5000, 1000, 1200))],
    ids=["ceiling", "ramp"],
)
def test_no_opening_exceeds_a_ceiling(ceilings: Ceilings, ramp: Ramp | None) -> None:
    """A ceiling on the first second, of the user or of the service, leaves no opening."""
    gone = Gone()

    async def main() -> None:
        limiter = Limiter(asyncio.get_running_loop())
        limiter.join(main, ceilings, ramp)
        await send(limiter, WRITES, 300, gone)

    run_virtual(main())
    assert sum(time == 0 for time, _ in gone) <= 10


@in_virtual_time
async def test_a_pause_saves_up_ten_milliseconds() -> None:
    """After a second without requests a hundredth of a second's worth leaves at once."""
    limiter, gone = limiter_at(1000), Gone()
    await asyncio.sleep(1)
    await send(limiter, WRITES, 30, gone)
    assert sum(time == 1 for time, _ in gone) == 10


@in_virtual_time
async def test_a_loop_that_comes_late_catches_up() -> None:
    """Timers that fire 20 ms late take nothing from the rate while requests wait."""
    loop, gone = asyncio.get_running_loop(), Gone()

    def block() -> None:
        loop.skip(0.02)  # type: ignore[attr-defined]
        loop.call_later(0.03, block)

    block()
    await send(limiter_at(1000), WRITES, 2000, gone)
    assert gone[-1][0] == pytest.approx(2.0, abs=0.1)


@in_virtual_time
async def test_deletes_do_not_hold_up_renames() -> None:
    """While a thousand deletes wait, a write waits for one delete in five requests at most."""
    limiter, gone = limiter_at(1000), Gone()
    deletes = asyncio.ensure_future(send(limiter, DELETES, 1000, gone))
    await asyncio.sleep(0.1)
    await send(limiter, WRITES, 400, gone)
    elapsed = asyncio.get_running_loop().time() - 0.1
    await deletes
    assert elapsed < 0.52
    during = sum(0.1 < time <= 0.1 + elapsed and kind == DELETES for time, kind in gone)
    assert 90 <= during <= 110  # and they are not starved either


@in_virtual_time
async def test_a_kind_saves_up_nothing_while_it_is_silent() -> None:
    """Reads that begin after a thousand writes get their half, not all."""
    limiter, gone = limiter_at(1000), Gone()
    await send(limiter, WRITES, 1000, gone)
    writes = asyncio.ensure_future(send(limiter, WRITES, 500, gone))
    await asyncio.sleep(0.1)
    await send(limiter, READS, 100, gone)
    await writes
    reads = [time for time, kind in gone if kind == READS]
    assert 0.19 <= reads[-1] - reads[0] <= 0.21


@in_virtual_time
async def test_a_call_of_three_requests_pays_for_three() -> None:
    """A put that is three requests on the wire counts as three."""
    gone: Gone = []
    await send(limiter_at(300), WRITES, 100, gone, cost=3)
    assert gone[-1][0] == pytest.approx(1.0, abs=0.05)


@in_virtual_time
async def test_a_batch_that_is_larger_than_a_burst_is_paid_for_afterwards() -> None:
    """A hundred deletes in one request leave at once, and the next hundred two seconds later."""
    limiter, gone = limiter_at(1000), Gone()
    limiter.join(limiter, Ceilings(deletes=50))
    await send(limiter, DELETES, 4, gone, cost=100)
    assert [time for time, _ in gone] == pytest.approx([0, 2, 4, 6], abs=0.05)


@in_virtual_time
async def test_batches_do_not_hold_up_renames() -> None:
    """While batches of a hundred wait, a write waits for one of them at most, now and then."""
    limiter, gone = limiter_at(1000), Gone()
    batches = asyncio.ensure_future(send(limiter, DELETES, 10, gone, cost=100))
    await asyncio.sleep(0.05)
    await send(limiter, WRITES, 400, gone)
    assert asyncio.get_running_loop().time() < 0.7
    await batches
    assert asyncio.get_running_loop().time() == pytest.approx(1.3, abs=0.05)


@in_virtual_time
async def test_a_ramp_parts_reads_from_the_rest() -> None:
    """From then on writes at their limit hold up no reads, and those that wait go on."""
    limiter, gone = limiter_at(1000), Gone()
    waiting = [
        asyncio.ensure_future(send(limiter, kind, 300, gone)) for kind in (READS, WRITES, DELETES)
    ]
    await asyncio.sleep(0.1)
    assert limiter.quotas[READS] is limiter.quotas[WRITES] is limiter.quotas[DELETES]
    limiter.join(waiting[0], Ceilings(), Ramp(800, 200, 1200))
    assert limiter.quotas[READS] is not limiter.quotas[WRITES] is limiter.quotas[DELETES]
    await waiting[0]
    assert asyncio.get_running_loop().time() == pytest.approx(0.44, abs=0.05)
    await asyncio.gather(*waiting)
    assert asyncio.get_running_loop().time() == pytest.approx(2.8, abs=0.2)
    assert repr(limiter) == "Limiter(Pace(800/s), Pace(200/s))"


@in_virtual_time
async def test_a_kind_has_a_ceiling_of_its_own() -> None:
    """Deletes bound to 50 a second hold up nobody else, not even for a moment."""
    limiter, gone = limiter_at(1000), Gone()
    limiter.join(test_a_kind_has_a_ceiling_of_its_own, Ceilings(deletes=50))
    deletes = asyncio.ensure_future(send(limiter, DELETES, 50, gone))
    await asyncio.sleep(0.5)
    start = asyncio.get_running_loop().time()
    assert limiter.take(READS, 1)
    await send(limiter, WRITES, 200, gone)
    assert asyncio.get_running_loop().time() - start == pytest.approx(0.2, abs=0.02)
    await deletes
    assert asyncio.get_running_loop().time() == pytest.approx(1.0, abs=0.1)


@in_virtual_time
async def test_the_lowest_ceiling_holds_while_its_owner_lives() -> None:
    """Of two users the more careful one decides, and no longer than it is there."""

    class User:
        pass

    limiter, careful = limiter_at(1000), User()
    limiter.join(careful, Ceilings(200, reads=10))
    assert limiter.quotas[WRITES].pace.most == 200
    gone: Gone = []
    await send(limiter, WRITES, 100, gone)
    assert gone[-1][0] == pytest.approx(0.5, abs=0.02)
    del careful
    limiter.join(limiter, Ceilings())
    assert limiter.quotas[WRITES].pace.rate == limiter.quotas[WRITES].pace.most == 1000
    await asyncio.sleep(0.01)
    assert limiter.take(READS, 1)


@in_virtual_time
async def test_a_cancelled_request_costs_nothing() -> None:
    """Requests whose callers are gone leave the queue without paying."""
    limiter, gone = limiter_at(100), Gone()
    tasks = [asyncio.ensure_future(send(limiter, WRITES, 1, gone)) for _ in range(100)]
    await asyncio.sleep(0)
    for task in tasks[1:]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await send(limiter, WRITES, 10, gone)
    assert asyncio.get_running_loop().time() == pytest.approx(0.1, abs=0.02)


@in_virtual_time
async def test_a_fall_is_for_what_was_sent_before_it() -> None:
    """Two hundred refusals of requests that were sent together lower the rate once."""
    limiter, gone = limiter_at(1000), Gone()
    epoch = limiter.quotas[WRITES].epoch
    await send(limiter, WRITES, 200, gone)
    for _ in range(200):
        refuse(limiter, epoch)
        await asyncio.sleep(0.01)
    assert limiter.quotas[WRITES].epoch == epoch + 1
    assert limiter.quotas[WRITES].pace.rate >= 300


@in_virtual_time
async def test_an_account_that_refuses_most_makes_everybody_wait() -> None:
    """If most requests are refused until a time, none is sent before it."""
    limiter, gone = limiter_at(1000), Gone()
    await send(limiter, WRITES, 200, gone)
    for _ in range(60):
        refuse(limiter, limiter.quotas[WRITES].epoch, 5.0)
        await asyncio.sleep(0.01)
        if limiter.quotas[WRITES].paused_until > 0:
            break
    start = asyncio.get_running_loop().time()
    assert 4 < limiter.quotas[WRITES].paused_until - start <= 5
    await send(limiter, READS, 1, gone)
    assert gone[-1][0] >= limiter.quotas[WRITES].paused_until


@in_virtual_time
async def test_nobody_waits_for_an_hour() -> None:
    """A pause that the store asks for is kept, but after 30 seconds it is asked again."""
    limiter, gone = limiter_at(1000), Gone()
    await send(limiter, WRITES, 200, gone)
    for _ in range(60):
        refuse(limiter, limiter.quotas[WRITES].epoch, 3600.0)
        await asyncio.sleep(0.01)
    assert limiter.quotas[WRITES].paused_until - asyncio.get_running_loop().time() <= 30


@pytest.mark.parametrize("name", ["total", "reads", "writes", "deletes"])
@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_ceiling_that_lets_nothing_through_is_refused(name: str, rate: float) -> None:
    """A rate that is not above 0 is a mistake."""
    with pytest.raises(OptionError, match=f"Ceilings.{name}"):
        Ceilings(**{name: rate})


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 4, 100]), st.floats(0, 0.05)),
        max_size=80,
    ),
    st.floats(20, 5000),
)
def test_no_second_holds_more_than_the_rate(
    requests: list[tuple[int, int, float]], rate: float
) -> None:
    """Whoever asks for what and when: all of it is let go, and nowhere faster than the rate.

    The opening is on top of it, where the ceiling leaves room for both.
    """
    gone: list[tuple[float, int]] = []

    async def main() -> None:
        limiter = limiter_at(rate)

        async def one(kind: int, cost: int) -> None:
            if not limiter.take(kind, cost):
                await limiter.wait(kind, cost)
            gone.append((asyncio.get_running_loop().time(), cost))

        async with asyncio.TaskGroup() as group:
            for kind, cost, pause in requests:
                group.create_task(one(kind, cost))
                await asyncio.sleep(pause)

    run_virtual(main())
    assert len(gone) == len(requests)
    bound, opening = min(rate, 1000.0), 250 if rate >= 1250 else 0
    for first, (begin, _) in enumerate(gone):
        spent = 0
        for time, cost in gone[first:]:
            spent += cost
            assert spent - cost < 1.01 + opening + bound * (time - begin + 0.05)

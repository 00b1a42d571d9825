"""Lanes: calls of one turn leave together, spread over as many threads as pays."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import UnsupportedError
from asynccommit.stores.local.lanes import Lanes, spread


@pytest.fixture
async def lanes() -> AsyncIterator[Lanes]:
    """Lanes that gather."""
    lanes = Lanes("test-quick", 8)
    yield lanes
    await lanes.aclose()


def thread() -> int:
    """Return the thread that runs this."""
    return threading.get_ident()


async def test_calls_of_one_turn_run_in_one_thread(lanes: Lanes) -> None:
    """Calls asked for in one turn run one after the other in one thread, not the loop's."""
    order: list[tuple[int, int]] = []

    def call(number: int) -> None:
        order.append((number, thread()))

    await asyncio.gather(*(lanes.submit(call, number) for number in range(50)))
    assert [number for number, _ in order] == list(range(50))
    assert len({ident for _, ident in order} - {thread()}) == 1


async def test_results_and_errors_reach_their_callers(lanes: Lanes) -> None:
    """Each caller gets its own result or its own error."""
    calls = [lanes.submit(divmod, 10, number) for number in (3, 0, 4)]
    first, second, third = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, third) == ((3, 1), (2, 2))
    assert isinstance(second, ZeroDivisionError)


async def test_calls_that_wait_are_spread(lanes: Lanes) -> None:
    """Once calls are seen to wait rather than compute, those of one turn run side by side."""
    for _ in range(10):
        await asyncio.gather(*(lanes.submit(time.sleep, 0.002) for _ in range(8)))
    assert lanes.lanes == 8
    barrier = threading.Barrier(8)
    await asyncio.gather(*(lanes.submit(barrier.wait, 30) for _ in range(8)))


@given(started=st.integers(1, 16), computed=st.floats(1e-6, 1))
def test_a_crowd_on_a_quick_disk_comes_down_to_one(started: int, computed: float) -> None:
    """Threads that only wait for each other become fewer until there is one."""
    lanes = started
    for _ in range(16):
        lanes = spread(computed * lanes, computed, 16)
    assert lanes == 1


@given(latency=st.floats(0.001, 0.1))
def test_calls_to_a_distant_disk_get_all_threads(latency: float) -> None:
    """Calls that wait a millisecond for each 20 us of work are spread over all threads."""
    assert spread(latency + 20e-6, 20e-6, 16) == 16


async def test_lanes_that_do_not_gather_run_each_call_alone() -> None:
    """Slow calls have a thread each, so that they all run at once."""
    lanes = Lanes("test-slow", 4, gather=False)
    barrier = threading.Barrier(4)
    places = await asyncio.gather(*(lanes.submit(barrier.wait, 30) for _ in range(4)))
    await lanes.aclose()

    assert sorted(places) == [0, 1, 2, 3]


async def test_a_cancelled_caller_breaks_nothing(lanes: Lanes) -> None:
    """Others of the batch get their results; what was cancelled before it began is not done."""
    done: list[int] = []
    calls = [lanes.submit(done.append, number) for number in range(5)]
    calls[1].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert done == [0, 2, 3, 4]

    hold, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        hold.wait(30)

    running, behind = lanes.submit(wait), lanes.submit(thread)
    while not begun.is_set():  # noqa: ASYNC110 - set by a thread
        await asyncio.sleep(0.001)
    running.cancel()
    hold.set()
    assert await behind != thread()


async def test_settling_waits_for_what_has_begun_and_for_nothing_else(lanes: Lanes) -> None:
    """A cancelled call that a thread works on is waited for, even if the wait is cancelled."""
    hold, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        hold.wait(30)

    running, behind = lanes.submit(wait), lanes.submit(thread)
    while not begun.is_set():  # noqa: ASYNC110 - set by a thread
        await asyncio.sleep(0.001)
    running.cancel()
    behind.cancel()
    await lanes.settle(behind)
    settled = asyncio.ensure_future(lanes.settle(running))
    for _ in range(3):
        await asyncio.sleep(0)
        settled.cancel()
    await asyncio.sleep(0)
    assert not settled.done()
    hold.set()
    await settled
    await lanes.settle(lanes.submit(thread))


async def test_closing_ends_the_threads_and_a_later_call_starts_new_ones() -> None:
    """After closing no thread is left; the lanes can be used again."""
    lanes = Lanes("test-closing", 3)
    await lanes.aclose()
    for _ in range(2):
        await lanes.submit(thread)
        assert any(each.name.startswith("test-closing") for each in threading.enumerate())
        await lanes.aclose()
        assert not any(each.name.startswith("test-closing") for each in threading.enumerate())


def test_another_loop_is_refused() -> None:
    """Lanes serve one loop; a call from another one says so."""
    lanes = Lanes("test-loops", 2)

    async def call() -> int:
        return await lanes.submit(thread)

    asyncio.run(call())
    with pytest.raises(UnsupportedError, match="another event loop"):
        asyncio.run(call())
    asyncio.run(lanes.aclose())


def test_a_loop_that_is_gone_breaks_nothing() -> None:
    """A call that ends after its loop was closed ends quietly, and so do the threads."""
    lanes = Lanes("test-gone", 2, gather=False)
    hold, ended = threading.Event(), threading.Event()

    def wait() -> None:
        hold.wait(30)
        ended.set()

    async def call() -> None:
        lanes.submit(wait)
        await asyncio.sleep(0)

    asyncio.run(call())
    hold.set()
    assert ended.wait(30)
    asyncio.run(lanes.aclose())


async def test_a_call_that_no_thread_takes_is_answered() -> None:
    """When no thread can be had a call fails at once, and nobody waits for ever."""
    lanes = Lanes("test")
    lanes._pool = ThreadPoolExecutor(1)
    lanes._pool.shutdown()
    calls = [lanes.submit(int) for _ in range(3)]

    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(answer) for answer in answers] == [BlockingIOError] * 3

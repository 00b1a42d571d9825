"""Virtual time: what waits is not waited for, and the order is that of real time."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from asynccommit.sim.loop import run_virtual


def test_a_day_passes_at_once() -> None:
    """A sleep of a day ends with the clock a day on, and takes next to no processor time."""

    async def day() -> float:
        loop = asyncio.get_running_loop()
        start = loop.time()
        await asyncio.sleep(86_400)
        return loop.time() - start

    before = time.thread_time()

    assert run_virtual(day()) == 86_400
    assert time.thread_time() - before < 5


@given(st.lists(st.integers(0, 1000), max_size=30))
def test_timers_fire_in_order_and_on_time(waits: list[int]) -> None:
    """Each sleeper wakes at exactly its time, the earlier ones first."""

    async def all_of_them() -> list[tuple[float, int]]:
        woken: list[tuple[float, int]] = []

        async def sleeper(seconds: int) -> None:
            await asyncio.sleep(seconds)
            woken.append((asyncio.get_running_loop().time(), seconds))

        await asyncio.gather(*(sleeper(wait) for wait in waits))
        return woken

    woken = run_virtual(all_of_them())

    assert [round(at, 6) for at, _ in woken] == sorted(waits)
    assert [seconds for _, seconds in woken] == sorted(waits)


def test_a_thread_is_waited_for() -> None:
    """Work in a thread ends before the loop goes on, whatever its clock says."""

    async def in_thread() -> int:
        return await asyncio.to_thread(sum, range(1000))

    assert run_virtual(in_thread()) == 499_500

"""Slots are given in order and never lost."""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.runtime.request_slots import RequestSlots


async def test_a_slot_goes_to_the_first_that_waits() -> None:
    """Those that wait have slots in their order, and nobody overtakes them."""
    slots, got = RequestSlots(1), list[int]()
    assert slots.take()
    assert not slots.take()

    async def wait(number: int) -> None:
        await slots.wait()
        got.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(2)]
    await asyncio.sleep(0)
    slots.release()
    assert not slots.take()
    await tasks[0]
    assert got == [0]
    slots.release()
    await tasks[1]
    slots.release()
    assert (got, slots.free) == ([0, 1], 1)


@pytest.mark.parametrize("given", [False, True])
async def test_a_cancelled_wait_keeps_no_slot(given: bool) -> None:
    """The slot goes to the next, also if it was given at the moment of the cancellation."""
    slots = RequestSlots(1)
    slots.take()
    cancelled, other = (asyncio.create_task(slots.wait()) for _ in range(2))
    await asyncio.sleep(0)
    if given:
        slots.release()
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    if not given:
        slots.release()
    await other
    slots.release()
    assert slots.free == 1

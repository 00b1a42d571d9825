"""Virtual time: what waits is not waited for, the order is that of real time, and runs repeat."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from itertools import count
from typing import Any

import pytest
from aiolimiter import AsyncLimiter
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.virtual_loop import (
    HORIZON,
    TICKS,
    DeadlockError,
    VirtualLoop,
    pause,
    run_virtual,
)


def loop() -> VirtualLoop:
    """Return the running loop."""
    running = asyncio.get_running_loop()
    assert isinstance(running, VirtualLoop)
    return running


# --- time -------------------------------------------------------------------------------------


def test_a_day_passes_at_once() -> None:
    """A sleep of a day ends with the clock a day on, and takes next to no processor time."""

    async def day() -> float:
        start = loop().time()
        await asyncio.sleep(86_400)
        return loop().time() - start

    before = time.thread_time()

    assert run_virtual(day()) == 86_400
    assert time.thread_time() - before < 5


@given(st.lists(st.integers(0, 1000), max_size=30))
def test_timers_fire_in_order_and_on_time(waits: list[int]) -> None:
    """Each sleeper wakes at exactly its time, the earlier ones first, equals as they came."""

    async def all_of_them() -> list[tuple[float, int, int]]:
        woken: list[tuple[float, int, int]] = []

        async def sleeper(number: int, seconds: int) -> None:
            await pause(seconds)
            woken.append((loop().time(), seconds, number))

        await asyncio.gather(*(sleeper(number, wait) for number, wait in enumerate(waits)))
        return woken

    woken = run_virtual(all_of_them())

    assert [round(at, 6) for at, _, _ in woken] == sorted(waits)
    assert [(wait, number) for _, wait, number in woken] == sorted(
        (wait, number) for number, wait in enumerate(waits)
    )


def test_equal_timers_fire_as_they_were_set() -> None:
    """Timers of one tick fire in the order of their setting, whichever way they were set."""

    async def main() -> list[int]:
        fired: list[int] = []
        for number in range(50):
            if number % 2:
                loop().call_at(1.0, fired.append, number)
            else:
                loop().call_later(1.0, fired.append, number)
        await asyncio.sleep(2)
        return fired

    assert run_virtual(main()) == list(range(50))


@pytest.mark.parametrize("rate", [10, 50, 200, 500, 1000, 2000, 3500])
def test_rounding_is_no_livelock(rate: int) -> None:
    """A limiter that asks to be woken in less than rounding can tell comes to its end."""

    async def main() -> float:
        limiter = AsyncLimiter(rate, 1)
        for _ in range(3 * rate):
            await limiter.acquire()
        return loop().time()

    assert run_virtual(main()) == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-300, 2.8e-16, 0.4 / TICKS])
def test_no_timer_is_due_sooner_than_the_next_tick(seconds: float) -> None:
    """Time moves with every timer, however short: whoever looks at the clock comes to an end."""

    async def main() -> list[int]:
        for _ in range(3):
            fired = asyncio.Event()
            loop().call_later(seconds, fired.set)
            await fired.wait()
            await pause(seconds)
            fired.clear()
            loop().call_at(loop().time() + seconds, fired.set)
            await fired.wait()
        return [loop().ticks]

    assert run_virtual(main()) == [9]


def test_a_loop_that_was_held_up_is_late() -> None:
    """After ``skip`` the timers that were due fire late, the clock does not go back."""

    async def main() -> tuple[float, float]:
        sleeping = asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(0)
        loop().skip(5)
        late = loop().time()
        await sleeping
        return late, loop().time()

    assert run_virtual(main()) == (5.0, 5.0)


def test_cancelled_timers_are_forgotten() -> None:
    """A million timeouts that never came do not fill the memory until they are due."""

    async def main() -> int:
        for _ in range(10_000):
            async with asyncio.timeout(3_600):
                await asyncio.sleep(0)
        return len(loop()._timers)

    assert run_virtual(main()) < 200


def test_a_cancelled_sleep_ends_at_once() -> None:
    """Who is cancelled while it sleeps does not wait for the end of that."""

    async def main() -> float:
        task = asyncio.create_task(pause(100))
        await pause(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return loop().time()

    assert run_virtual(main()) == 1


def test_pause_sleeps_on_every_loop() -> None:
    """On a loop of another kind ``pause`` is a sleep."""
    asyncio.run(pause(0))


def test_a_closed_loop_takes_no_timer() -> None:
    """A timer on a closed loop is refused, as on every loop."""
    closed = VirtualLoop()
    closed.close()

    with pytest.raises(RuntimeError, match="closed"):
        closed.call_later(1, print)


# --- threads and sockets ----------------------------------------------------------------------


def test_a_thread_is_waited_for() -> None:
    """Work in a thread ends before time moves, and takes none of it."""

    async def main() -> tuple[int, float, list[float]]:
        woken: list[float] = []
        loop().call_later(0.001, lambda: woken.append(loop().time()))
        found = await asyncio.to_thread(sum, range(100_000))
        at = loop().time()
        await asyncio.sleep(1)
        return found, at, woken

    assert run_virtual(main()) == (4_999_950_000, 0.0, [0.001])


def test_threads_answer_in_the_order_of_asking() -> None:
    """What was asked first is answered first, though it takes longer."""

    async def main() -> list[str]:
        second_done = threading.Event()
        answers: list[str] = []

        def slow() -> str:
            second_done.wait(10)
            return "slow"

        def quick() -> str:
            second_done.set()
            return "quick"

        async def ask(work: Any) -> None:
            answers.append(await asyncio.to_thread(work))

        await asyncio.gather(ask(slow), ask(quick))
        return answers

    assert run_virtual(main()) == ["slow", "quick"]


def test_an_error_in_a_thread_is_raised() -> None:
    """What a thread raises is raised where it is waited for."""

    async def main() -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            await asyncio.to_thread(int, "no number")

    run_virtual(main())


def test_what_nobody_waits_for_is_done_all_the_same() -> None:
    """Work in a thread whose caller was cancelled is done before the loop ends."""
    done: list[int] = []

    async def main() -> None:
        task = asyncio.create_task(asyncio.to_thread(done.append, 1))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())

    assert done == [1]


def test_a_thread_may_ask_the_loop() -> None:
    """A thread that waits for the loop is answered, while the loop waits for the thread."""

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def main() -> int:
        here = loop()

        def ask() -> int:
            return asyncio.run_coroutine_threadsafe(double(21), here).result(10)

        return await asyncio.to_thread(ask)

    assert run_virtual(main()) == 42


def test_a_socket_is_waited_for() -> None:
    """What comes from a socket arrives, though no timer is set."""

    async def main() -> bytes:
        here, there = socket.socketpair()
        here.setblocking(False)
        with here, there:
            reading = asyncio.create_task(loop().sock_recv(here, 10))
            await asyncio.sleep(0)
            await asyncio.to_thread(there.send, b"news")
            return await reading

    assert run_virtual(main()) == b"news"


# --- runs that do not end ---------------------------------------------------------------------


async def _wait_for_ever(event: asyncio.Event) -> None:
    await event.wait()


def test_a_deadlock_names_who_waits_and_where() -> None:
    """With nothing ready, no timer and no thread an error says which tasks wait for what."""

    async def main() -> None:
        await asyncio.sleep(1.5)
        event = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for name in ("second", "first"):
                group.create_task(_wait_for_ever(event), name=name)

    with pytest.raises(DeadlockError) as caught:
        run_virtual(main())

    text = str(caught.value)
    assert text.startswith("at 1.5 s of virtual time nothing can go on. Tasks that wait: 3\n")
    assert "\n  Task-1: test_a_deadlock_names_who_waits_and_where.<locals>.main (models/" in text
    assert "  second: _wait_for_ever (models/test_virtual_loop.py:" in text
    assert "> Event.wait (asyncio/locks.py:" in text
    assert text.index("second") < text.index("first")


def test_a_deadlock_of_many_names_some() -> None:
    """A crowd that waits is not named to the last."""

    async def main() -> None:
        event = asyncio.Event()
        await asyncio.gather(*(_wait_for_ever(event) for _ in range(100)))

    with pytest.raises(DeadlockError, match=r"Tasks that wait: 101\n(.*\n){20}  and 81 more$"):
        run_virtual(main())


def test_to_sleep_for_ever_is_a_deadlock() -> None:
    """A timer that is never due is none."""

    async def main() -> None:
        await asyncio.sleep(math.inf)

    with pytest.raises(DeadlockError):
        run_virtual(main())


def test_a_heartbeat_alone_is_no_life() -> None:
    """A run that only a heartbeat keeps going ends at the horizon, and says who waits."""

    async def main() -> None:
        async def beat() -> None:
            for _ in count():
                await asyncio.sleep(3_600)

        beating = asyncio.create_task(beat())
        await _wait_for_ever(asyncio.Event())
        beating.cancel()

    with pytest.raises(DeadlockError, match=r"there is no end(.|\n)*_wait_for_ever"):
        run_virtual(main())
    with pytest.raises(DeadlockError, match="at 10,800 s of virtual time there is no end"):
        run_virtual(main(), horizon=10_000)
    assert run_virtual(asyncio.sleep(2 * HORIZON, "later"), horizon=math.inf) == "later"


# --- runs that repeat -------------------------------------------------------------------------


def test_siblings_are_cancelled_in_the_order_of_their_making() -> None:
    """A task group that fails cancels its tasks in one order, wherever they lie in memory."""

    async def main() -> list[int]:
        cancelled: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for number in range(40):
                    group.create_task(wait(number))
                group.create_task(fail())
        return cancelled

    kept: list[object] = []
    orders = set()
    for number in range(12):
        orders.add(tuple(run_virtual(main())))
        kept.append([object() for _ in range(37 * number)])  # Other addresses the next time.

    assert orders == {tuple(range(40))}

"""The commit window: a commit begins only when the resource manager was heard from just now."""

from __future__ import annotations

import asyncio
import math

import pytest

from asynccommit.errors import OptionError, PreflightError
from asynccommit.mapreduce.commit_window import (
    CANCEL_TIMEOUT,
    LEASE,
    WINDOW,
    Heartbeat,
    MarkerSettings,
    is_open,
    wait_for_window,
)
from asynccommit.testing.models.virtual_loop import run_virtual


def test_the_settings_that_hadoop_has() -> None:
    """What is not said is as Hadoop delivers it; its milliseconds are seconds here."""
    assert MarkerSettings.from_conf({}) == MarkerSettings(10.0, 600.0, 60.0, None)
    conf = {WINDOW: "2500", CANCEL_TIMEOUT: " 1000 ", LEASE: "120", "other": "x"}
    assert MarkerSettings.from_conf(conf) == MarkerSettings(2.5, 600.0, 1.0, 120.0)


@pytest.mark.parametrize("value", ["", "-1", "10s", "1.5", "9" * 20, "86400001", "٣"])
def test_a_window_that_is_none(value: str) -> None:
    """Anything but milliseconds is refused, and the key is named."""
    with pytest.raises(OptionError, match=r"^yarn\.app.*commit-window is "):
        MarkerSettings.from_conf({WINDOW: value})


@pytest.mark.parametrize("age, open_", [(0, True), (10, True), (10.001, False), (math.inf, False)])
def test_when_the_window_is_open(age: float, open_: bool) -> None:
    """An answer as old as the window is young enough."""
    assert is_open(age, 10.0) is open_


def heartbeats(*moments: float) -> tuple[Heartbeat, list[asyncio.TimerHandle]]:
    """Return a heartbeat that is heard at these moments of the loop's time."""
    loop = asyncio.get_running_loop()
    heartbeat = Heartbeat(loop.time)
    return heartbeat, [loop.call_at(moment, heartbeat.beat) for moment in moments]


def waited(*moments: float, begin: float = 0.0, settings: MarkerSettings | None = None) -> float:
    """Return when a commit may begin that asks at ``begin``."""

    async def wait() -> float:
        heartbeat, _ = heartbeats(*moments)
        await asyncio.sleep(begin)
        await wait_for_window(heartbeat, settings or MarkerSettings(), "job_1_0001")
        return asyncio.get_running_loop().time()

    return run_virtual(wait())


def test_a_fresh_answer_is_not_waited_for() -> None:
    """Scenario 47: with an answer within the window the commit begins at once."""
    assert waited(1, begin=11) == 11


def test_a_stale_answer_is_waited_for() -> None:
    """Scenario 47: with an older one it begins with the next answer, once."""
    assert waited(1, 300, 301, begin=12) == 300


def test_the_first_answer_is_waited_for() -> None:
    """Who was never heard from does not begin."""
    assert waited(42) == 42


def test_the_window_may_be_shorter_than_the_answers_are_apart() -> None:
    """With a window of nothing a commit begins with an answer, and does not wait for ever."""
    assert waited(5, 10, 15, begin=7, settings=MarkerSettings(window=0.0)) == 10


def test_the_wait_has_an_end() -> None:
    """When YARN has given the attempt up it does not begin, and says so."""
    with pytest.raises(PreflightError, match=r"job job_1_0001.* has not answered for 600 s"):
        waited(1, begin=20)


def test_several_wait_for_one_answer() -> None:
    """One answer lets all begin that wait."""

    async def scene() -> list[float]:
        heartbeat, _ = heartbeats(30)
        waiting = [wait_for_window(heartbeat, MarkerSettings(), str(job)) for job in range(3)]
        await asyncio.gather(*waiting)
        return [heartbeat.age]

    assert run_virtual(scene()) == [0.0]

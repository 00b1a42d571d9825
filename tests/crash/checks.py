"""What catches a bug that was planted: runs until one ends in a way in which it must not."""

from __future__ import annotations

import random
from collections.abc import Callable

from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.chaos import violations
from tests.crash.jobs import Scenario
from tests.crash.recovery import Hand, ready
from tests.crash.scenarios import SMALLEST
from tests.crash.test_points import crashed, late_points
from tests.crash.test_races import BEGINNING, races
from tests.crash.test_zombies import Meeting, meet, meetings, visits

Check = Callable[[], list[str]]
MEETINGS = 800
SEEDS = 200


def points(scenario: Scenario, act: str, kind: str = "adls") -> Check:
    """Return the check that dies at every write, and then acts."""

    async def run() -> list[str]:
        job, world = await ready(scenario, kind)
        if found := job.committed(job.wanted):
            return found
        async for name, there in crashed(job, world):
            try:
                found = await Hand(job, there, "second").end(act)
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                return [f"{name}: {found[0]}"]
        return []

    return lambda: run_virtual(run())


def late(scenario: Scenario, act: str, kind: str = "adls") -> Check:
    """Return the check in which each write comes late."""
    return lambda: run_virtual(late_points(scenario, kind, act))


def encounters(
    scenario: Scenario, kind: str = "adls", which: Callable[[Meeting], bool] = lambda _: True
) -> Check:
    """Return the check that lets a driver wake while another goes on, in such ways."""

    async def run() -> list[str]:
        job, world = await ready(scenario, kind)
        ways = [way for way in await meetings(job, world) if which(way)]
        for way in random.Random(0).sample(ways, min(MEETINGS, len(ways))):
            if found := await meet(job, world.copy(), way):
                return [f"{way}: {text}" for text in found]
        return []

    return lambda: run_virtual(run())


def seeds(kind: str = "adls", start: int = 0) -> Check:
    """Return the check that lets seeds happen until one finds something."""

    def run() -> list[str]:
        for seed in range(start, start + SEEDS):
            if found := run_virtual(violations(seed, kind)):
                return found
        return []

    return run


def crowds(scenario: Scenario, act: str, kind: str, count: int = 800) -> Check:
    """Return the check in which another acts as the commit of the job begins."""
    return lambda: run_virtual(races(scenario, kind, act, count, within=BEGINNING))


def company() -> list[str]:
    """Let a driver come by while another commits."""
    return run_virtual(visits(SMALLEST))

"""Two drivers act on one job at the same time, over a network that takes its time."""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Scenario, driver
from tests.crash.recovery import Job, has_begun, ready
from tests.crash.scenarios import IN_THE_WAY, REPLACE_PARTITIONS, SMALLEST
from tests.crash.test_zombies import LEASE, act_as, finish, judge
from tests.crash.worlds import KINDS
from tests.support.crashes import ModelWorld

RACES = int(os.environ.get("ASYNCCOMMIT_RACES", "6"))
WITHIN = 2.0  # about what a commit takes
BEGINNING = 0.6  # about what it takes up to its record
SLOW = Climate((), Latency("lognormal", 0.05, 0.8))


async def race(
    job: Job, world: ModelWorld, rng: random.Random, act: str, within: float
) -> list[str]:
    """Let a driver act while another commits; bring the job to its end; return what is wrong."""
    first, second = (driver(world, job.scenario, name) for name in ("first", "second"))
    start, force = rng.uniform(0, within), rng.random() < 0.5

    async def other() -> object:
        await asyncio.sleep(start)
        return await act_as(job, second, act, force=force)

    told = await asyncio.gather(act_as(job, first, "commit", force=False), other())
    if act == "abort" and has_begun(world.tree()):
        return [f"aborted at {start:.3f}, when it had begun: told {told!r:.300}"]
    last = await finish(job, world)
    await asyncio.sleep(LEASE)
    return [f"{act} at {start:.3f}: {text}" for text in judge(job, world, [*told, last])]


async def races(
    scenario: Scenario, kind: str, act: str, count: int, seed: int = 0, within: float = WITHIN
) -> list[str]:
    """Let so many races happen."""
    job, world = await ready(scenario, kind)
    problems = []
    for number in range(count):
        rng, there = random.Random(f"{seed} {number}"), world.copy()
        there.storm(rng, SLOW)
        found = await race(job, there, rng, act, within)
        problems += [f"{scenario} on {kind}, race {number}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.sample(6)
@pytest.mark.parametrize("act", ["abort", "rollback", "resume", "commit"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", [SMALLEST, IN_THE_WAY, REPLACE_PARTITIONS], ids=str)
def test_two_at_once(scenario: Scenario, kind: str, act: str) -> None:
    """The job ends whole or undone, as was said."""
    assert run_virtual(races(scenario, kind, act, RACES)) == []

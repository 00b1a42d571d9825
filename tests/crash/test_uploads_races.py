"""Several drivers of one job of uploads: one stands still for a while, or all meet a storm."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from asynccommit.errors import CommitError
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport, JobReport
from asynccommit.testing.models.crashes import Crash, Suspension, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.draws import draw_climate
from tests.crash.test_uploads_points import ACTS, SCENARIOS, TAKEN, TWO_TASKS, act, until_death
from tests.support.strikes import CountedWeather
from tests.support.upload_jobs import ROOT, Driver, Job, Scenario, World, commit, driver, ready

SEEDS = int(os.environ.get("ASYNCCOMMIT_CRASH_SEEDS", "60"))
GROUP = 20
ASLEEP = 100.0
SLEEPS = int(os.environ.get("ASYNCCOMMIT_SLEEPS", "8"))
"""At how many requests of its commit a driver stands still."""


class Story:
    """What several drivers of one job did, and were told."""

    def __init__(self, job: Job, world: World) -> None:
        self.job = job
        self.world = world
        self.said: set[str] = set()
        self.log: list[str] = []

    async def run(self, name: str, who: Driver, doing: Awaitable[Any]) -> None:
        """Let a driver act, and note what it was told."""
        try:
            report = await until_death(who, doing)
        except CommitError as error:
            self.log.append(f"{who.process.name} {name}: {type(error).__name__}: {error}")
            return
        finally:
            died = who.process.dead
            who.process.kill()
        self.log.append(f"{who.process.name} {name}: {'died' if died else report!r:.120}")
        if isinstance(report, JobReport):
            self.said.add("undone" if report.rolled_back else "committed")
        # An abort says what it has deleted: it may be what is left of a job that is committed.
        if isinstance(report, AbortReport) and report.rolled_back:
            self.said.add("undone")

    def problems(self) -> list[str]:
        """Return what is wrong in the end: the job is whole or undone, and nobody was lied to."""
        state = self.world.state()
        committed = self.job.committed(state, late=True)
        undone = self.job.undone(state, late=True)
        found = list(self.world.watch.problems)
        if committed and undone:
            found.append(f"neither whole nor undone: {min(committed, undone, key=len)[:4]}")
        if self.said == {"committed"} and committed:
            found.append(f"somebody was told that it is committed: {committed[:4]}")
        if self.said == {"undone"} and undone:
            found.append(f"somebody was told that it is undone: {undone[:4]}")
        if len(self.said) > 1:
            found.append("some were told that it is committed, and others that it is undone")
        return found and [*found, *self.log]


async def asleep(
    scenario: Scenario,
    name: str,
    *,
    after: bool,
    sleeps: int = SLEEPS,
    of: type[World] = World,
) -> list[str]:
    """Let a driver stand still at some request while another acts, and then go on."""
    job, world = ready(scenario, of=of)
    whole = world.copy()
    first = driver(whole, job.scenario, "first")
    await commit(job.scenario, first, job.tasks)
    rng = random.Random(f"{scenario} {name}")
    count = first.process.requests
    problems = []
    for request in sorted(rng.sample(range(1, count + 1), min(count, sleeps))):
        there = world.copy()
        story = Story(job, there)
        stop = Suspension(request, ASLEEP, after=after)
        sleeper = driver(there, job.scenario, "sleeper", stop=stop)
        second = driver(there, job.scenario, "second")
        async with asyncio.TaskGroup() as group:
            group.create_task(
                story.run("commit", sleeper, commit(job.scenario, sleeper, job.tasks))
            )
            await asyncio.sleep(ASLEEP / 2)
            await story.run(name, second, act(job, there, name, second))
        await _end(story)
        problems += [f"{scenario}: asleep at {request}: {text}" for text in story.problems()]
    return problems


async def _end(story: Story) -> None:
    """Let calm drivers finish what is there."""
    job, world = story.job, story.world
    if job.begun(world.state()):
        last = driver(world, job.scenario, f"last{len(world.processes)}")
        await story.run("resume", last, act(job, world, "resume", last))
    elif job.committed(world.state(), late=True):
        last = driver(world, job.scenario, f"last{len(world.processes)}")
        await story.run("rollback", last, act(job, world, "rollback", last))


@pytest.mark.sample(6)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("scenario", [SCENARIOS[0], SCENARIOS[3], SCENARIOS[7]], ids=str)
def test_a_driver_that_stood_still(scenario: Scenario, name: str, after: bool) -> None:
    """Whoever goes on after others have ended the commit changes nothing, and is told the truth."""
    assert run_virtual(asleep(scenario, name, after=after)) == []


# --- storms -----------------------------------------------------------------------------------


def _draw(rng: random.Random) -> Scenario:
    mode = rng.choice([Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
    before = dict(TAKEN)
    options = {"delete_target_files": True}
    if mode is Mode.APPEND and rng.random() < 0.5:
        before, options = {f"{ROOT}/p=1/old": "old"}, {}
    committer = rng.choice(["magic", "directory"])
    killed = {"p=1/dead": "dead"} if rng.random() < 0.5 else {}
    return Scenario("drawn", TWO_TASKS, before, mode, committer, options=options, killed=killed)


def _fate(rng: random.Random) -> dict[str, Any]:
    draw = rng.random()
    if draw < 0.5:
        return {"crash": Crash(rng.randint(1, 22), rng.choice(list(When)), rng.uniform(0, 90))}
    if draw < 0.75:
        stop = Suspension(
            rng.randint(1, 70), rng.choice([3.0, 40.0, 200.0]), after=rng.random() < 0.5
        )
        return {"stop": stop}
    return {}


async def violations(seed: int, **rules: Any) -> list[str]:
    """Let several drivers of one job meet in a storm, and return what was found."""
    rng = random.Random(seed)
    # Whether the service still knows an upload that it has completed, when it is asked again.
    job, world = ready(_draw(rng), seed, remembers=rng.choice([0.0, 60.0]), **rules)
    story = Story(job, world)
    clock = asyncio.get_running_loop().time
    world.weather = CountedWeather(rng, clock, draw_climate(rng, seed), world.dialect)
    async with asyncio.TaskGroup() as group:
        for number in range(rng.randint(2, 4)):
            name = "commit" if number == 0 else rng.choice([*ACTS, "rollback", "abort"])
            who = driver(world, job.scenario, f"driver{number}", **_fate(rng))
            wait = rng.choice([rng.uniform(0, 2), rng.uniform(1, 10)]) if number else 0.0
            group.create_task(story.run(name, who, _later(wait, job, world, name, who)))
    world.weather = None
    await asyncio.sleep(1_000)  # what is late has come
    await _end(story)
    return [f"seed {seed}: {text}" for text in story.problems()]


async def _later(wait: float, job: Job, world: World, name: str, who: Driver) -> Any:
    await asyncio.sleep(wait)
    return await act(job, world, name, who)


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_no_seed_finds_anything(first: int) -> None:
    """In a storm with several drivers the job ends whole or undone, whatever the seed."""
    seeds = range(first, min(first + GROUP, SEEDS))

    assert [text for seed in seeds for text in run_virtual(violations(seed))] == []


@pytest.mark.parametrize("rule", ["matches", "abort_tells"])
def test_lost_responses_of_a_server_that_lacks_something(rule: str) -> None:
    """In a storm on a server of which nothing is known the job ends whole or undone too."""
    lacking: dict[str, Any] = {"known": False, rule: False}

    assert [text for seed in range(6) for text in run_virtual(violations(seed, **lacking))] == []

"""Every write of a job commit is a crash point: what was begun is finished, or undone, whole."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from asynccommit.sim.crashes import Crash
from asynccommit.sim.loop import run_virtual
from tests.crash.jobs import Scenario, commit, driver, expected, run_tasks
from tests.crash.recovery import Hand, Job, places, ready, state, until_death
from tests.crash.scenarios import (
    ABSOLUTE,
    APPEND,
    FRESH,
    IN_THE_WAY,
    REPLACE_PARTITIONS,
    REPLACE_TABLE,
    SCENARIOS,
    SMALLEST,
    UNTAGGED,
)
from tests.support.crashes import LocalWorld, SimWorld

ON_DISK = (FRESH, APPEND, REPLACE_TABLE, REPLACE_PARTITIONS, IN_THE_WAY, ABSOLUTE, UNTAGGED)
ACTS = ("resume", "commit", "rollback")
SAMPLE = int(os.environ.get("ASYNCCOMMIT_CRASHES", "25"))
"""How many first crashes are followed by second ones, in each job but the smallest."""


async def crashed(
    job: Job, world: SimWorld, *, once: bool = False
) -> AsyncIterator[tuple[str, SimWorld]]:
    """Yield every state that a crash of the commit can leave, with its name; see ``places``."""
    whole = world.copy()
    first = driver(whole, job.scenario, "first")
    await commit(job.scenario, first, job.tasks)
    seen: set[int] = set()
    for crash in places(len(first.process.writes), once=once):
        there = world.copy()
        who = driver(there, job.scenario, "first", crash=crash)
        await until_death(who, commit(job.scenario, who, job.tasks))
        if (found := state(there.tree())) not in seen:
            seen.add(found)
            what = who.process.writes[-1]
            yield f"{job.scenario}: died {crash.when.value} write {crash.write}, {what}", there


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_nobody_dies(scenario: Scenario) -> None:
    """The undisturbed run, with which all others are compared, is itself as it must be."""

    async def run() -> list[str]:
        job, _ = await ready(scenario)
        return job.committed(job.wanted)

    assert run_virtual(run()) == []


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crash_at_every_write(scenario: Scenario, act: str) -> None:
    """Resumed, it ends as undisturbed; rolled back, as before; twice is once."""

    async def run() -> list[str]:
        job, world = await ready(scenario)
        problems = []
        async for name, there in crashed(job, world):
            found = await Hand(job, there, "second").end(act)
            problems += [f"{name}; {act}: {text}" for text in found]
        return problems

    assert run_virtual(run()) == []


@pytest.mark.parametrize("act", ACTS)
def test_a_crash_that_no_host_tells_of(act: str) -> None:
    """When the owner's host says nothing of it, the lease runs out, and the end is the same."""

    async def run() -> list[str]:
        job, world = await ready(SMALLEST)
        world.telling = False
        problems = []
        async for name, there in crashed(job, world):
            found = await Hand(job, there, "second").end(act)
            problems += [f"{name}; {act}: {text}" for text in found]
        return problems

    assert run_virtual(run()) == []


async def crashed_twice(
    job: Job, world: SimWorld, act: str, chosen: random.Random | None
) -> AsyncIterator[tuple[str, SimWorld]]:
    """Yield the states that a crash of the commit and one of ``act`` leave.

    Args:
        job: the job.
        world: where its tasks have committed.
        act: what is done after the first crash.
        chosen: draws some of them; ``None`` takes all.
    """
    seen: set[int] = set()
    firsts = [pair async for pair in crashed(job, world, once=True)]
    for name, there in firsts if chosen is None else _some(firsts, chosen):
        probe = Hand(job, there.copy(), "second")
        who = probe.driver()
        try:
            await probe.act(act, who)
        except Exception:
            continue  # the first level tells whether it may
        crashes = places(len(who.process.writes), once=True)
        for crash in crashes if chosen is None else _few(crashes, chosen):
            again = there.copy()
            hand = Hand(job, again, "second")
            dying = hand.driver(crash)
            await until_death(dying, hand.act(act, dying))
            if (found := state(again.tree())) not in seen:
                seen.add(found)
                what = dying.process.writes[-1]
                where = f"{act} died {crash.when.value} write {crash.write}, {what}"
                yield f"{name}; {where}", again


def _some(items: list[tuple[str, SimWorld]], rng: random.Random) -> list[tuple[str, SimWorld]]:
    return rng.sample(items, min(len(items), SAMPLE))


def _few(items: list[Crash], rng: random.Random) -> list[Crash]:
    return rng.sample(items, min(len(items), 4))


async def _end_twice(scenario: Scenario, first: str, chosen: random.Random | None) -> list[str]:
    job, world = await ready(scenario)
    problems = []
    async for name, there in crashed_twice(job, world, first, chosen):
        for act in ("resume", "rollback"):
            found = await Hand(job, there.copy(), "third").end(act)
            problems += [f"{name}; {act}: {text}" for text in found]
    return problems


@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", ["resume", "rollback"])
def test_a_second_crash_at_every_write(first: str) -> None:
    """A crash of the resume, or of the rollback, at every write after a crash at every write."""
    assert run_virtual(_end_twice(SMALLEST, first, None)) == []


@pytest.mark.parametrize("first", ["resume", "rollback"])
@pytest.mark.parametrize("scenario", SCENARIOS[1:], ids=str)
def test_a_second_crash_at_some_writes(scenario: Scenario, first: str) -> None:
    """The same for jobs with more in them, for crashes drawn with a fixed seed."""
    assert run_virtual(_end_twice(scenario, first, random.Random(str(scenario)))) == []


async def _ready_on_disk(scenario: Scenario, world: LocalWorld) -> tuple[Job, Path]:
    """Return a job whose tasks have committed, and where it is kept."""
    for path, text in scenario.before.items():
        world.place(path, text)
    before = world.tree()
    tasks = await run_tasks(world, scenario)
    files = expected(world.tree(), scenario)
    kept = world.keep()
    world.start(kept)
    await commit(scenario, driver(world, scenario, "undisturbed"), tasks)
    return Job(scenario, tasks, files, before, world.tree()), kept


async def _points_on_disk(scenario: Scenario, world: LocalWorld, act: str) -> list[str]:
    job, kept = await _ready_on_disk(scenario, world)
    world.start(kept)
    first = driver(world, scenario, "first")
    await commit(scenario, first, job.tasks)
    problems = []
    for crash in places(len(first.process.writes), once=True):
        world.start(kept)
        who = driver(world, scenario, "first", crash=crash)
        await until_death(who, commit(scenario, who, job.tasks))
        found = await Hand(job, world, "second").end(act)
        what = f"{scenario}: died {crash.when.value} write {crash.write}, {who.process.writes[-1]}"
        problems += [f"{what}; {act}: {text}" for text in found]
    return problems


@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("scenario", ON_DISK, ids=str)
async def test_a_crash_at_every_write_on_disk(
    scenario: Scenario, act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same on real files: resumed it ends as undisturbed, rolled back as before."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nobody pulls a plug here
    world = LocalWorld(tmp_path / "root")
    world.root.mkdir()
    try:
        problems = await _points_on_disk(scenario, world, act)
    finally:
        await world.aclose()

    assert problems == []

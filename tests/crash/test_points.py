"""Every write of a job commit is a crash point: what was begun is finished, or undone, whole."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from itertools import cycle, product
from pathlib import Path

import pytest

from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Scenario, commit, driver, expected, run_tasks
from tests.crash.recovery import Hand, Job, places, ready, state, until_death
from tests.crash.scenarios import (
    ABSOLUTE,
    APPEND,
    DIRECTORIES,
    FRESH,
    IN_THE_WAY,
    REPLACE_PARTITIONS,
    REPLACE_TABLE,
    SCENARIOS,
    SMALLEST,
    UNTAGGED,
)
from tests.crash.worlds import FLAT, KINDS
from tests.support.crashes import LocalWorld, ModelWorld
from tests.support.selection import amount

ON_DISK = (
    FRESH,
    APPEND,
    DIRECTORIES,
    REPLACE_TABLE,
    REPLACE_PARTITIONS,
    IN_THE_WAY,
    ABSOLUTE,
    UNTAGGED,
)
LATE_ONES = (SMALLEST, REPLACE_PARTITIONS, IN_THE_WAY)
ACTS = ("resume", "commit", "rollback")
LATE = 50.0
SAMPLE = amount("ASYNCCOMMIT_CRASHES", quick=8, full=25)
"""How many first crashes are followed by second ones, in each job but the smallest."""
DEATHS = amount("ASYNCCOMMIT_DEATHS", quick=1, full=2)
"""In how many ways a driver dies at each write: after it, and before it as well."""
TURNS = int(os.environ.get("ASYNCCOMMIT_TURNS", "1"))
"""How many of the ``ACTS`` follow each crash in a bucket."""


class Draw:
    """Draws some of many crashes.

    Args:
        seed: where they are drawn from.
        firsts: how many crashes of the commit.
        seconds: how many of what is done after each.
    """

    def __init__(self, seed: str, firsts: int, seconds: int = 4) -> None:
        self._rng = random.Random(seed)
        self._firsts, self._seconds = firsts, seconds

    def firsts(self, items: list[Crash]) -> list[Crash]:
        """Return some first crashes."""
        return self._rng.sample(items, min(len(items), self._firsts))

    def seconds(self, items: list[Crash]) -> list[Crash]:
        """Return some second ones."""
        return self._rng.sample(items, min(len(items), self._seconds))


async def crashed(
    job: Job, world: ModelWorld, draw: Draw | None = None, *, once: bool = False
) -> AsyncIterator[tuple[str, ModelWorld]]:
    """Yield every state that a crash of the commit can leave, with its name; see ``places``."""
    whole = world.copy()
    first = driver(whole, job.scenario, "first")
    await commit(job.scenario, first, job.tasks)
    seen: set[int] = set()
    crashes = places(len(first.process.writes), once=once)
    for crash in crashes if draw is None else draw.firsts(crashes):
        there = world.copy()
        who = driver(there, job.scenario, "first", crash=crash)
        await until_death(who, commit(job.scenario, who, job.tasks))
        if (found := state(there.tree())) not in seen:
            seen.add(found)
            what = who.process.writes[-1]
            yield f"{job.scenario}: died {crash.when.value} write {crash.write}, {what}", there


@pytest.mark.rotate("kind")
@pytest.mark.parametrize("kind", [*KINDS, "onelake"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_nobody_dies(scenario: Scenario, kind: str) -> None:
    """The undisturbed run, with which all others are compared, is itself as it must be."""

    async def run() -> list[str]:
        job, _ = await ready(scenario, kind)
        return job.committed(job.wanted)

    assert run_virtual(run()) == []


async def points(
    scenario: Scenario, kind: str, acts: Sequence[str], *, telling: bool = True
) -> list[str]:
    """Die at every write; then do what ``acts`` say in turn, each after another crash."""
    job, world = await ready(scenario, kind)
    world.telling = telling
    problems = []
    turns = cycle(acts)
    async for name, there in crashed(job, world, once=kind in FLAT or DEATHS == 1):
        act = next(turns)
        found = await Hand(job, there, "second").end(act)
        problems += [f"{name}; {act}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.more
@pytest.mark.sample(7)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("scenario", [*SCENARIOS, DIRECTORIES], ids=str)
def test_a_crash_at_every_write(scenario: Scenario, act: str) -> None:
    """Resumed, it ends as undisturbed; rolled back, as before; twice is once."""
    assert run_virtual(points(scenario, "adls", [act])) == []


@pytest.mark.every(3)
@pytest.mark.sample(2)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("scenario", [*SCENARIOS, DIRECTORIES], ids=str)
def test_a_crash_at_every_write_to_hdfs(scenario: Scenario, act: str) -> None:
    """The same on HDFS."""
    assert run_virtual(points(scenario, "hdfs", [act])) == []


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("scenario", [*SCENARIOS, DIRECTORIES], ids=str)
def test_a_crash_at_every_write_to_onelake(scenario: Scenario, act: str) -> None:
    """The same in a managed folder of OneLake."""
    assert run_virtual(points(scenario, "onelake", [act])) == []


@pytest.mark.parametrize("act", ACTS)
def test_a_crash_between_directories_of_a_call(act: str) -> None:
    """The same where several directories are moved in one call."""
    assert run_virtual(points(DIRECTORIES, "batches", [act])) == []


@pytest.mark.every(3)
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crash_at_every_write_to_a_bucket(scenario: Scenario, kind: str) -> None:
    """The same on flat stores: the first crash is resumed, the second rolled back, ..."""
    for turn in range(FLAT.index(kind), FLAT.index(kind) + TURNS):
        acts = ACTS[turn % 3 :] + ACTS[: turn % 3]
        assert run_virtual(points(scenario, kind, acts)) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_that_no_host_tells_of(kind: str, act: str) -> None:
    """When the owner's host says nothing of it, the lease runs out, and the end is the same."""
    assert run_virtual(points(SMALLEST, kind, [act], telling=False)) == []


async def late_points(scenario: Scenario, kind: str, act: str) -> list[str]:
    """Die at every write, which comes when the job has been brought to its end."""
    job, world = await ready(scenario, kind)
    whole = driver(world.copy(), scenario, "first")
    await commit(scenario, whole, job.tasks)
    problems = []
    for number in range(1, len(whole.process.writes) + 1):
        there = world.copy()
        who = driver(there, scenario, "first", crash=Crash(number, When.LATE, LATE))
        await until_death(who, commit(scenario, who, job.tasks))
        found = await Hand(job, there, "second").end(act)
        await asyncio.sleep(2 * LATE)
        found += job.neither(there.tree())
        what = f"{scenario} on {kind}: write {number} came late, {who.process.writes[-1]}"
        problems += [f"{what}; {act}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.sample(2)
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("kind", [*KINDS, "onelake"])
@pytest.mark.parametrize("scenario", LATE_ONES, ids=str)
def test_a_write_that_comes_late(scenario: Scenario, kind: str, act: str) -> None:
    """What a dead process has sent, and the store does late, changes nothing any more."""
    assert run_virtual(late_points(scenario, kind, act)) == []


@pytest.mark.more
@pytest.mark.sample(1)
@pytest.mark.parametrize("act", ["resume", "rollback"])
def test_a_late_move_of_a_directory(act: str) -> None:
    """The move of a directory that a dead process has sent comes late, and changes nothing."""
    assert run_virtual(late_points(DIRECTORIES, "adls", act)) == []


async def crashed_twice(
    job: Job, world: ModelWorld, act: str, draw: Draw | None
) -> AsyncIterator[tuple[str, ModelWorld]]:
    """Yield the states that a crash of the commit and one of ``act`` leave.

    Args:
        job: the job.
        world: where its tasks have committed.
        act: what is done after the first crash.
        draw: draws some of them; ``None`` takes all.
    """
    seen: set[int] = set()
    async for name, there in crashed(job, world, draw, once=True):
        probe = Hand(job, there.copy(), "second")
        who = probe.driver()
        try:
            await probe.act(act, who)
        except Exception:
            continue  # the first level tells whether it may
        crashes = places(len(who.process.writes), once=True)
        for crash in crashes if draw is None else draw.seconds(crashes):
            again = there.copy()
            hand = Hand(job, again, "second")
            dying = hand.driver(crash)
            await until_death(dying, hand.act(act, dying))
            if (found := state(again.tree())) not in seen:
                seen.add(found)
                what = dying.process.writes[-1]
                where = f"{act} died {crash.when.value} write {crash.write}, {what}"
                yield f"{name}; {where}", again


async def end_twice(scenario: Scenario, kind: str, first: str, draw: Draw | None) -> list[str]:
    """Die in the commit, then in ``first``; end it both ways, and return what is wrong then."""
    job, world = await ready(scenario, kind)
    problems = []
    async for name, there in crashed_twice(job, world, first, draw):
        for act in ("resume", "rollback"):
            found = await Hand(job, there.copy(), "third").end(act)
            problems += [f"{name}; {act}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", ["resume", "rollback"])
def test_a_second_crash_at_every_write(first: str) -> None:
    """A crash of the resume, or of the rollback, at every write after a crash at every write."""
    assert run_virtual(end_twice(SMALLEST, "adls", first, None)) == []


@pytest.mark.every(3)
@pytest.mark.more
@pytest.mark.sample(3)
@pytest.mark.parametrize("first", ["resume", "rollback"])
@pytest.mark.parametrize("scenario", [*SCENARIOS[1:], DIRECTORIES], ids=str)
def test_a_second_crash_at_some_writes(scenario: Scenario, first: str) -> None:
    """The same for jobs with more in them, for crashes drawn with a fixed seed."""
    assert run_virtual(end_twice(scenario, "adls", first, Draw(str(scenario), SAMPLE))) == []


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_second_crash_at_some_writes_to_a_bucket(scenario: Scenario) -> None:
    """The same on flat stores."""
    for kind, first in product(FLAT, ["resume", "rollback"]):
        draw = Draw(f"{scenario} {kind} {first}", max(1, SAMPLE // 25), 3)
        assert run_virtual(end_twice(scenario, kind, first, draw)) == []


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


async def points_on_disk(scenario: Scenario, world: LocalWorld, act: str) -> list[str]:
    """The same as ``points``, on real files."""
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


@pytest.mark.every(3)
@pytest.mark.sample(1)
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
        problems = await points_on_disk(scenario, world, act)
    finally:
        await world.aclose()

    assert problems == []

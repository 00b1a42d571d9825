"""Commits with workers in bad weather, whose driver, workers and engine fail: from one seed."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from asynccommit.commit.orders import Order, Slice, Tally, WorkerLostError
from asynccommit.commit.planning import plan_file
from asynccommit.errors import CommitError, CommittedError
from asynccommit.results import JobReport
from asynccommit.testing.models.crashes import Crash, Suspension, When
from tests.crash.draws import draw_climate
from tests.crash.jobs import Driver, commit, driver
from tests.crash.recovery import Hand, Job, has_begun, ready, until_death
from tests.crash.scenarios import APPEND, FRESH
from tests.crash.workers import SimRunner
from tests.support.crashes import ModelWorld
from tests.support.strikes import strike

ACTORS = frozenset(
    {
        "dead worker",
        "silent worker",
        "slice given twice",
        "order lost",
        "tally lost",
        "order late",
        "driver of workers died",
        "driver of workers cut off",
    }
)
_FOREVER = 100_000.0


@dataclass
class Engine(SimRunner):
    """A runner that loses, doubles, delays and reorders what it is given.

    Attributes:
        rng: draws what happens.
    """

    rng: random.Random = field(default_factory=random.Random)

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """See ``Runner.submit``."""
        draw = self.rng.random()
        self.twice = draw < 0.15
        if 0.15 <= draw < 0.25:
            strike("order lost")
            raise WorkerLostError("the order was lost")
        if 0.25 <= draw < 0.4:
            strike("order late")
            await asyncio.sleep(self.rng.uniform(0, 40))
        tally = await super().submit(order, piece)
        if 0.4 <= draw < 0.5:
            strike("tally lost")
            raise WorkerLostError("the tally was lost")
        return tally


def _fate(rng: random.Random, piece: Slice) -> Crash | Suspension | None:
    """Draw what a worker meets; the last one that gets a slice is well."""
    draw = rng.random()
    if piece.attempt or draw > 0.6:
        return None
    if draw < 0.4:
        late = rng.uniform(0, rng.choice([1, 30, 120]))
        return Crash(rng.randint(1, 3), rng.choice([*When]), late)
    seconds = rng.choice([5.0, 25.0, 100.0, _FOREVER])
    return Suspension(rng.randint(1, 8), seconds, after=rng.random() < 0.5)


def _driver(rng: random.Random, job: Job, world: ModelWorld) -> Driver:
    """Return the driver, which may die or be cut off from the store, but not from its workers."""
    draw = rng.random()
    crash = stop = None
    if draw < 0.3:
        late = rng.uniform(0, 100)
        crash = Crash(rng.randint(15, 60), rng.choice([*When]), late)
    elif draw < 0.5:
        strike("driver of workers cut off")
        stop = Suspension(rng.randint(30, 90), rng.choice([30.0, 300.0, 3000.0]))
    return driver(world, job.scenario, "driver", crash=crash, stop=stop)


async def violations(seed: int, kind: str) -> list[str]:
    """Return what is wrong in the end: the job is neither whole nor undone, or something else."""
    rng = random.Random(f"slices {seed}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_file, "CHUNK_ROWS", 2)
        job, world = await ready(rng.choice([FRESH, APPEND]), kind)
        world.seed = seed
        if rng.random() < 0.5:
            world.storm(rng, draw_climate(rng, seed))
        who = _driver(rng, job, world)
        who.job._runner = runner = Engine(world, lambda piece: _fate(rng, piece), rng=rng)
        task = asyncio.create_task(commit(job.scenario, who, job.tasks))
        done, _ = await asyncio.wait([task], timeout=rng.choice([400.0, _FOREVER]))
        if not done:
            who.process.kill()
        committed = await _has_committed(who, task)
        problems = _miscounted(task.result()) if committed else []
        world.weather = None
        if not committed:
            committed = await _end(job, world, rng.choice(["resume", "rollback"]))
        await runner.end()
        ended = job.committed if committed else job.undone
        problems += ended(world.tree(), late=True)
        return [f"seed {seed} {kind}: {text}" for text in problems]


def _miscounted(report: JobReport) -> list[str]:
    """Return what is wrong with the counts of workers: each file is one worker's."""
    counted = sum(work["files"] for work in report.workers.values())
    if report.workers and counted != report.files:
        return [f"workers are said to have renamed {counted:.0f} files of {report.files}"]
    return []


async def _has_committed(who: Driver, task: asyncio.Task[JobReport]) -> bool:
    """Return whether the driver has committed the job."""
    try:
        await until_death(who, task)
    except CommitError:
        return False
    if who.process.dead:
        strike("driver of workers died")
    return not who.process.dead


async def _end(job: Job, world: ModelWorld, act: str) -> bool:
    """Let one process end what was begun; return whether the job is committed then."""
    if not has_begun(world.tree()):
        act = "commit"
    try:
        await Hand(job, world, "second").act(act)
    except CommittedError:
        await Hand(job, world, "third").act("resume")
        return True
    return act != "rollback"

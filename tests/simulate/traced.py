"""A simulated run, every request of it written down: ``python -m tests.simulate.traced NAME SEED``.

Started in processes with different hash seeds, it must print the same each time.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import pytest

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError
from asynccommit.options.job import Mode, Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.simulate.placed import ModelTaskWriter
from asynccommit.simulate.run import World
from asynccommit.simulate.setup import Setup
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.testing.models.fault_profiles import STORM
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.latency import UNIFORM, Latency, RequestLimit
from asynccommit.testing.models.virtual_loop import VirtualLoop

BAD = Climate(STORM.faults, Latency(UNIFORM, 0.01, 0.05), RequestLimit(2_000, 200))


class Traced:
    """A policy that writes down every request, with its time."""

    def __init__(self, loop: VirtualLoop, say: Callable[[str], object]) -> None:
        self._loop = loop
        self._say = say

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def traced(op: Op) -> Any:
            args = [_short(arg) for arg in (*op.args, *sorted(op.options.items()))]
            self._say(f"{self._loop.ticks} {op.name} {' '.join(args)}")
            return await call(op)

        return traced


def _short(arg: object) -> str:
    return sha256(arg).hexdigest() if isinstance(arg, bytes) else repr(arg)


async def commit(world: World, traced: Traced) -> None:
    """Commit a job that is in place."""
    tasks = ModelTaskWriter(world.model, world.layout, world.setup).all_tasks(lambda files: None)
    await world.commit(tasks, policies=[traced])


async def whole(world: World, traced: Traced) -> None:
    """Run a whole job, its tasks at once, that replaces directories and moves files aside."""
    root = world.layout.dest.path
    for place in PLACES:
        for name in ("part-0", "part-1/old", "old"):
            world.model.put_data(f"{root}/{place}/{name}", b"old")
    store = world.wrapped(traced)
    commits = await run_tasks(world, store)
    replaced = [f"{root}/{place}" for place in PLACES[:8]]
    await world.committer(store).commit_job(commits, overwrite=replaced, strict=True)
    await store.aclose()


async def rolled_back(world: World, traced: Traced) -> None:
    """Run a job that replaces a table and fails; resume it, let it fail again, and undo it."""
    root = world.layout.dest.path
    for place in PLACES:
        world.model.put_data(f"{root}/{place}/old", b"old")
    store = world.wrapped(traced)
    commits = await run_tasks(world, store)
    job = world.committer(store)
    first, second = DENIED[world.setup.store]
    world.model.weather.add(first)
    with pytest.raises(CommitError):
        await job.commit_job(commits, mode=Mode.REPLACE_TABLE, strict=True)
    world.model.weather.add(second)
    with pytest.raises(CommitError):
        await world.committer(store).resume_job()
    await world.committer(store).rollback_job()
    await store.aclose()


async def run_tasks(world: World, store: Wrapped) -> list[TaskCommit]:
    """Set a job up and run its tasks, some at a time."""
    job = world.committer(store)
    commits: list[TaskCommit] = []
    await job.setup_job()

    async def run_task(number: int) -> None:
        task_id, attempt_id = world.layout.ids(number)
        base = await job.setup_task(attempt_id)
        for place in PLACES[number % 5 :: 3]:
            await store.mkdir(f"{base}/{place}")
            await store.put(f"{base}/{place}/part-{number}", b"data")
        commits.append(await job.commit_task(task_id, attempt_id))

    await for_each(range(world.setup.tasks), run_task, workers=8)
    return commits


PLACES = [f"day={day}/hour={hour}" for day in range(4) for hour in range(3)]
LATER = "/part-1[0-9]$"
DENIED = {
    "adls": (
        Fault("before", "rename", LATER, code="AuthorizationFailure", skip=4, times=1),
        Fault("before", "rename", "^/table/day=3$", code="AuthorizationFailure", times=1),
    ),
    "gcs": (
        Fault("before", "move", LATER, code="forbidden", skip=9, times=1),
        Fault("before", "move", LATER, code="forbidden", times=1),
    ),
    "hdfs": (
        Fault("before", "rename", LATER, code="AccessControlException", skip=4, times=1),
        Fault("before", "rename", "^/table/day=3$", code="AccessControlException", times=1),
    ),
}
"""What fails the commit, and its first resumption."""

STORM_OF = {"files": 3_000, "tasks": 60, "partitions": 12, "climate": BAD}
WHOLE_OF = {"tasks": 24, "climate": BAD, "options": Options(delete_target_files=True)}
NAMES: dict[str, tuple[Callable[[World, Traced], Awaitable[None]], dict[str, Any]]] = {
    "storm": (commit, STORM_OF),
    "storm-gcs": (commit, {**STORM_OF, "store": "gcs"}),
    "storm-gcs-hns": (commit, {**STORM_OF, "store": "gcs-hns"}),
    "storm-hdfs": (commit, {**STORM_OF, "store": "hdfs"}),
    "spilled": (commit, {"files": 34_000, "tasks": 40, "partitions": 5}),
    "whole": (whole, WHOLE_OF),
    "whole-gcs": (whole, {**WHOLE_OF, "store": "gcs"}),
    "whole-gcs-hns": (whole, {**WHOLE_OF, "store": "gcs-hns"}),
    "whole-hdfs": (whole, {**WHOLE_OF, "store": "hdfs"}),
    "rolled_back": (rolled_back, {"tasks": 24, "climate": BAD}),
    "rolled_back-gcs": (rolled_back, {"tasks": 24, "climate": BAD, "store": "gcs"}),
    "rolled_back-hdfs": (rolled_back, {"tasks": 24, "climate": BAD, "store": "hdfs"}),
}
"""What is run, and of which size."""


def run(name: str, seed: int, say: Callable[[str], object]) -> None:
    """Run one of ``NAMES``; say every request, the time at its end, and what is drawn next."""
    work, sizes = NAMES[name]
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        world = World(Setup(seed=seed, in_flight=64, **sizes), loop)
        runner.run(_run(work(world, Traced(loop, say))))
        say(f"end {loop.ticks} {sorted(world.model.weather.requests.items())}")
        say(f"next {world.seeds.next_numbers()}")


async def _run(work: Awaitable[None]) -> None:
    await work


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), lambda line: sys.stdout.write(f"{line}\n"))

"""A user who may write in ``_temporary`` makes commits up, and drivers meet them: from one seed.

On HDFS, the world with owners. Mallory owns what the world's process ``mallory`` writes; all else
is of alice, whose drivers act unasked, and then because somebody has named the job.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, ForeignCommitError, ManifestError
from asynccommit.formats.commit_owner import Decision, Outcome, encode_decision
from asynccommit.options.job import Mode, OnUnfinished
from asynccommit.testing.models.crashes import Crash
from asynccommit.testing.models.invariants import within
from tests.commit.planning.test_plan_file import Chunk, forge
from tests.crash.jobs import JOB, JOB_DIR, OTHER, Driver, Scenario, commit, driver, run_tasks
from tests.crash.recovery import has_begun, until_death
from tests.crash.worlds import HDFS, new_world
from tests.support.crashes import DEST, ModelWorld
from tests.support.strikes import strike

BEFORE = {f"{DEST}/precious.csv": "precious", f"{DEST}/day=1/old": "old", f"{DEST}/day=2/old": "o"}
FORGED = "mallory's"
ATTEMPT = f"{JOB_DIR}/00"
LATEST = 40  # writes until the crash


@dataclass
class Plot:
    """The story of one seed.

    Attributes:
        rng: draws what happens.
        world: where.
        who: the user who has begun the commit.
        scenario: the job.
        tasks: its commit messages.
        born: number of drivers.
    """

    rng: random.Random
    world: ModelWorld
    who: str
    scenario: Scenario
    tasks: list[TaskCommit]
    born: int = 0

    def driver(self, user: str, job_id: str = JOB, **more: Any) -> Driver:
        """Return a new process of a user."""
        self.born += 1
        name = f"{user}-{self.born}"
        return driver(self.world, self.scenario, name, job_id=job_id, **more)


async def begun(rng: random.Random, kind: str, who: str, mode: Mode) -> Plot:
    """Return a plot with a commit of a user that was cut short after its record."""
    files = {f"{place}/part-{n}": f"{who}'s {n}" for n, place in enumerate(("day=1", "day=3"))}
    scenario = Scenario("forged", (files,), BEFORE, mode)
    first = new_world(kind, rng.randint(0, 1 << 30))
    for path, text in BEFORE.items():
        first.place(path, text)
    tasks = await run_tasks(first, scenario, f"{who}-setup")
    for number in rng.sample(range(1, LATEST), LATEST - 1):
        world = first.copy()
        plot = Plot(rng, world, who, scenario, tasks)
        dying = plot.driver(who, crash=Crash(number))
        with suppress(CommitError):
            await until_death(dying, commit(scenario, dying, tasks))
        tree = world.tree()
        if dying.process.dead and has_begun(tree) and f"{ATTEMPT}/commit-outcome.json" not in tree:
            return plot
    raise AssertionError("no crash was between the record and the outcome")


# --- what is forged -----------------------------------------------------------------------------


async def take_more(plot: Plot) -> None:
    """Have the plan move a file aside that is in no file's way, or replace another directory."""
    job = plot.driver("mallory").job
    precious = await job.store.head(f"{DEST}/precious.csv")
    old = await job.store.head(f"{DEST}/day=2/old")
    await job.store.mkdir(f"{ATTEMPT}/commit-epoch-000001/aside/in")

    def aside(chunk: Chunk) -> None:
        chunk["aside"] = [*chunk.get("aside", []), ["precious.csv", "file", precious.etag]]

    def replaced(chunk: Chunk) -> None:
        chunk["replaced"] = [*chunk.get("replaced", []), ["day=2", "directory", None]]
        chunk["old"] = [*chunk.get("old", []), ["day=2/old", old.size, old.etag]]

    await forge(job, plot.rng.choice([aside, replaced]))


async def forge_commit(rng: random.Random, kind: str) -> Plot:
    """Make up a whole commit, which seems to have been interrupted."""
    mode = rng.choice([Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
    return await begun(rng, kind, "mallory", mode)


async def forge_plan(rng: random.Random, kind: str) -> Plot:
    """Make up a commit whose plan does more than its record says."""
    plot = await begun(rng, kind, "mallory", Mode.APPEND)
    await take_more(plot)
    return plot


async def forge_record(rng: random.Random, kind: str) -> Plot:
    """Write a record, and its plan, in the place of the true ones of alice."""
    plot = await begun(rng, kind, "alice", Mode.APPEND)
    await take_more(plot)
    return plot


async def forge_outcome(rng: random.Random, kind: str) -> Plot:
    """Say of a true commit of alice, which has moved files aside, that it is committed."""
    plot = await begun(rng, kind, "alice", Mode.REPLACE_TABLE)
    store = plot.driver("mallory").store
    record = sha256(await store.get(f"{ATTEMPT}/commit-record.json", 1 << 20)).hexdigest()
    said = encode_decision(Decision(Outcome.COMMITTED, 1, "id", 0, record))
    await store.put(f"{ATTEMPT}/commit-outcome.json", said)
    return plot


async def forge_manifests(rng: random.Random, kind: str) -> Plot:
    """Let another user's task write and commit once a true commit of alice has begun."""
    plot = await begun(rng, kind, "alice", Mode.APPEND)
    store = plot.driver("mallory").store
    for name in ("manifests/task_9-manifest.json", "tasks/attempt_9/day=1/f"):
        await store.mkdir(f"{ATTEMPT}/{name}".rpartition("/")[0])
        await store.put(f"{ATTEMPT}/{name}", FORGED.encode())
    return plot


FORGERIES: dict[str, Callable[[random.Random, str], Awaitable[Plot]]] = {
    "forged commit": forge_commit,
    "forged plan": forge_plan,
    "forged record": forge_record,
    "forged outcome": forge_outcome,
    "forged manifests": forge_manifests,
}
ACTORS = frozenset({*FORGERIES, "unasked", "asked"})


# --- who meets it -------------------------------------------------------------------------------


async def unasked(plot: Plot) -> BaseException | None:
    """Let a driver of alice run the job again, or the next job; return why it was refused."""
    dies = plot.rng.random() < 0.3
    crash = Crash(plot.rng.randint(1, LATEST)) if dies else None
    if plot.rng.random() < 0.3 and plot.who == "mallory":
        who = plot.driver("alice", crash=crash)
        act: Awaitable[object] = commit(plot.scenario, who, plot.tasks)
    else:
        wish = plot.rng.choice(list(OnUnfinished))
        who = plot.driver("alice", OTHER, options={"on_unfinished": wish}, crash=crash)
        act = who.job.check_job()
    strike("unasked")
    try:
        await until_death(who, act)
    except CommitError as error:
        return error
    return None


async def asked(plot: Plot) -> list[str]:
    """Let somebody name the job; a plan that does too much must be refused even then."""
    who = plot.driver("alice")
    strike("asked")
    try:
        await (who.job.resume_job if plot.rng.random() < 0.5 else who.job.rollback_job)()
    except CommitError as error:
        causes = error.failures
        return [] if causes and isinstance(causes[0], ManifestError) else [f"refused: {error}"]
    return ["a forged plan was carried out"]


def taken(plot: Plot) -> set[str]:
    """Return what a forger has got: files of the table that are gone, and its own in the table.

    What a true commit replaces may be aside.
    """
    tree = {path: item.data for path, item in plot.world.tree().items() if item.data is not None}
    aside = plot.who == "alice" and plot.scenario.mode is not Mode.APPEND
    lost = {
        f"{path} is lost"
        for path, text in BEFORE.items()
        if text.encode() not in (tree.values() if aside else [tree.get(path)])
    }
    return lost | {
        f"{path} is published"
        for path, data in tree.items()
        if data.startswith(FORGED.encode()) and not within(path, (f"{DEST}/_temporary",))
    }


async def violations(seed: int) -> list[str]:
    """Return what one seed finds wrong, each with its seed."""
    rng = random.Random(f"forger {seed}")
    name = [*FORGERIES][seed % len(FORGERIES)]
    plot = await FORGERIES[name](rng, [*HDFS][seed // len(FORGERIES) % len(HDFS)])
    before = taken(plot)  # by the forger's own commit, with its own rights
    found: list[str] = []
    for _ in range(2):
        await asyncio.sleep(rng.choice([0.0, 1_000.0]))
        met = has_begun(plot.world.tree())
        error = await unasked(plot)
        if isinstance(error, ForeignCommitError) or (met and name == "forged manifests"):
            strike(name)
        found += taken(plot) - before
    if name in ("forged plan", "forged record"):
        await asyncio.sleep(1_000.0)
        found += [*await asked(plot), *(taken(plot) - before)]
    return [f"seed {seed}, {name}: {text}" for text in found]

"""A job id that is used again while a driver of its first run sleeps: from one seed.

The driver stands still at any request, with renames queued behind it; its commit is undone
elsewhere, the id is set up again, and its tasks write to the same paths. Then the driver wakes. No
file of the second run may be visible before that run is committed, nor after it was aborted.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass

from asynccommit.errors import CommitError, CommittedError
from asynccommit.options.job import Mode
from asynccommit.results import JobReport
from asynccommit.testing.models.crashes import Suspension
from tests.crash.chaos import FOREVER
from tests.crash.draws import LEASE, draw_climate
from tests.crash.jobs import JOB, Scenario
from tests.crash.recovery import until_death
from tests.crash.rivals import OLD, Rival, applied, content
from tests.crash.worlds import new_world
from tests.support.crashes import DEST, ModelWorld

ROUNDS = 40


@dataclass
class Rerun:
    """What happens in one run: both runs of the job, and where."""

    rng: random.Random
    world: ModelWorld
    first: Rival
    second: Rival
    committed: bool = False
    over: bool = False
    born: int = 0

    def name(self, what: str) -> str:
        """Return a new name of a process."""
        self.born += 1
        return f"{what}-{self.born}"


def draw(rng: random.Random, mode: Mode) -> tuple[Rival, Rival]:
    """Return two runs that write files of the same names, with other contents."""
    places = ["day=1/", "day=2/"] + ([""] if mode is not Mode.REPLACE_PARTITIONS else [])
    names = [f"{rng.choice(places)}part-{number}" for number in range(rng.randint(2, 12))]
    options = {"delete_target_files": True}
    runs = []
    for text in ("first", "second"):
        files = {name: f"{text} {name}" for name in sorted(set(names))}
        runs.append(Rival(JOB, DEST, Scenario(text, (files,), OLD, mode, options=options)))
    return runs[0], runs[1]


async def sleeper(rerun: Rerun) -> None:
    """Commit the first run, and stand still for four leases at one of its requests."""
    stop = Suspension(rerun.rng.randint(1, 80), LEASE * 4, after=rerun.rng.random() < 0.5)
    who = rerun.first.driver(rerun.world, rerun.name("sleeper"), stop=stop)
    with suppress(CommitError):
        report = await until_death(who, rerun.first.commit(who))
        rerun.committed = isinstance(report, JobReport) or rerun.committed


async def operator(rerun: Rerun) -> None:
    """Undo the first run, set the second up, and end it when everybody is awake again."""
    await asyncio.sleep(LEASE * rerun.rng.uniform(0.1, 1.5))
    if not await undone(rerun):
        rerun.over = True
        return
    try:
        await rerun.second.run_tasks(rerun.world, rerun.name("again"))
    except CommitError as error:  # the sleeper's blank record came late: the id is not free
        rerun.over = True
        if "exists already" not in str(error):
            raise
        return
    await asyncio.sleep(LEASE * 5)
    commits = rerun.rng.random() < 0.5
    rerun.over = True
    for _ in range(ROUNDS):
        who = rerun.second.driver(rerun.world, rerun.name("ends"))
        with suppress(CommitError):
            if commits:
                await rerun.second.commit(who)
                rerun.second.said.add("committed")
            else:
                await who.job.rollback_job(force=True)
            return
        await asyncio.sleep(LEASE / 3)


async def undone(rerun: Rerun) -> bool:
    """Roll the first run back; return whether that was done, and not committed before."""
    for _ in range(ROUNDS):
        who = rerun.first.driver(rerun.world, rerun.name("operator"))
        try:
            report = await who.job.rollback_job(force=True)
        except CommittedError:
            rerun.committed = True
            return False
        except CommitError:
            await asyncio.sleep(LEASE / 3)
            continue
        if not report.kept and not rerun.committed:
            return True
    return False


async def watch(rerun: Rerun) -> list[str]:
    """Look every second whether a file of the second run is visible before it is committed."""
    while not rerun.over:
        early = [path for path, data in content(rerun.world).items() if b"second" in (data or b"")]
        if early:
            return [f"{path} is visible, and its run is not committed" for path in early]
        await asyncio.sleep(1)
    return []


async def tell(seed: int, kind: str = "adls") -> list[str]:
    """Let one seed happen; return what is wrong."""
    rng = random.Random(f"rerun {seed}")
    world = new_world(kind, seed)
    for path, text in OLD.items():
        world.place(path, text)
    before = content(world)
    mode = rng.choice([Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
    rerun = Rerun(rng, world, *draw(rng, mode))
    await rerun.first.run_tasks(world)
    if seed % 2:
        world.storm(random.Random(f"weather {seed}"), draw_climate(rng, seed))
    async with asyncio.timeout(FOREVER):
        *_, early = await asyncio.gather(sleeper(rerun), operator(rerun), watch(rerun))
        await asyncio.sleep(LEASE * 5)
    if early or rerun.committed:
        return early
    wanted = applied(before, rerun.second) if rerun.second.said else before
    found = content(world)
    return [] if found == wanted else [f"{rerun.second.said or 'aborted'}: {found} is there"]


async def violations(seed: int, kind: str = "adls") -> list[str]:
    """Return what one seed finds wrong in a world, each with its seed."""
    try:
        problems = await tell(seed, kind)
    except Exception as error:
        return [f"rerun {seed} on {kind}: {type(error).__name__}: {error}"]
    return [f"rerun {seed} on {kind}: {text}" for text in problems]

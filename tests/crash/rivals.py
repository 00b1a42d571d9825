"""Two jobs that want the same places, whose drivers die and sleep: from one seed.

They may have one destination or one within the other's. Whatever happens, the table must be as if
the jobs that were committed had run one after the other, and each job must come to an end by a
command that one of its errors names.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, permutations
from typing import Any

from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.errors import CommitError
from asynccommit.options.job import Mode
from asynccommit.results import AbortReport, JobReport
from asynccommit.testing.models.crashes import Crash, Suspension, When
from asynccommit.testing.models.invariants import visible, within
from tests.crash.chaos import FOREVER
from tests.crash.draws import LEASE, draw_climate
from tests.crash.jobs import JOB, OTHER, Driver, Scenario, driver
from tests.crash.recovery import until_death
from tests.crash.worlds import new_world
from tests.support.crashes import DEST, ModelWorld

ROUNDS = 30
OLD = {
    f"{DEST}/day=1/part-0": "old part",
    f"{DEST}/day=1/part-old": "old",
    f"{DEST}/day=2/part-old": "old too",
    f"{DEST}/part-0": "old at the top",
}


@dataclass
class Rival:
    """One of the jobs.

    Attributes:
        job_id: the job.
        dest: where it writes to.
        scenario: what, below that.
        tasks: its commit messages.
        said: what its drivers were told that the end is.
    """

    job_id: str
    dest: str
    scenario: Scenario
    tasks: list[TaskCommit] = field(default_factory=list)
    said: set[str] = field(default_factory=set)

    def driver(self, world: ModelWorld, name: str, **fate: Any) -> Driver:
        """Return a new process that acts on this job."""
        who = driver(world, self.scenario, f"{name} {self.job_id}", job_id=self.job_id, **fate)
        who.job.layout = Layout(world.address(self.dest), self.job_id)
        return who

    async def commit(self, who: Driver) -> JobReport:
        """Commit the job as its scenario says."""
        return await who.job.commit_job(self.tasks, mode=self.scenario.mode)

    async def run_tasks(self, world: ModelWorld, name: str = "setup") -> None:
        """Set the job up, and run its tasks, up to their commits, in a process of this name."""
        who = self.driver(world, name)
        await who.job.setup_job()
        for number, files in enumerate(self.scenario.tasks):
            task_id, attempt_id = who.job.layout.ids(number)
            base = await who.job.setup_task(attempt_id)
            for name, text in files.items():
                world.place(
                    f"{base.removeprefix(world.address('/').path.rstrip('/'))}/{name}", text
                )
            self.tasks.append(await who.job.commit_task(task_id, attempt_id))
        who.process.kill()


@dataclass
class Race:
    """What happens in one run: where, by whom, and what readers saw before."""

    seed: int
    rng: random.Random
    world: ModelWorld
    rivals: tuple[Rival, Rival]
    before: dict[str, bytes | None]
    log: list[str] = field(default_factory=list)
    born: int = 0

    def note(self, text: str) -> None:
        """Keep what happened, to be read when a seed finds something."""
        self.log.append(f"{asyncio.get_running_loop().time():10.3f} {text}")

    def name(self, what: str) -> str:
        """Return a new name of a process."""
        self.born += 1
        return f"{what}-{self.born}"

    def fate(self) -> dict[str, Any]:
        """Draw what becomes of a driver."""
        draw = self.rng.random()
        if draw < 0.5:
            when = self.rng.choice([When.BEFORE, When.AFTER, When.LATE])
            late = self.rng.uniform(0, self.rng.choice([20, LEASE * 2]))
            return {"crash": Crash(self.rng.randint(1, 50), when, late)}
        if draw < 0.75:
            seconds = self.rng.choice([2.0, LEASE * 0.8, LEASE * 1.5, LEASE * 4])
            return {
                "stop": Suspension(self.rng.randint(1, 90), seconds, after=self.rng.random() < 0.5)
            }
        return {}


def draw_rival(rng: random.Random, job_id: str) -> Rival:
    """Return a job that overwrites or replaces, and shares names with every other such job."""
    dest = rng.choice([DEST, DEST, f"{DEST}/day=1"])
    mode = rng.choice([Mode.APPEND, Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS])
    places = ["day=1/", "day=2/", ""] if dest == DEST else ["", "hour=1/"]
    if mode is Mode.REPLACE_PARTITIONS:
        places.remove("")
    names = {f"{rng.choice(places)}part-{rng.randrange(3)}" for _ in range(rng.randint(1, 4))}
    files = {name: f"{name} of {job_id}" for name in sorted(names)}
    options = {"delete_target_files": rng.random() < 0.8}
    return Rival(job_id, dest, Scenario("rival", (files,), OLD, mode, options=options))


async def begin(seed: int, kind: str) -> Race:
    """Return a race whose jobs are ready to commit, in calm weather."""
    rng = random.Random(f"rivals {seed}")
    world = new_world(kind, seed)
    for path, text in OLD.items():
        world.place(path, text)
    first, second = draw_rival(rng, JOB), draw_rival(rng, OTHER)
    for rival in (first, second):
        await rival.run_tasks(world)
    return Race(seed, rng, world, (first, second), content(world))


async def act(race: Race, rival: Rival, name: str, who: Driver, doing: Awaitable[Any]) -> Any:
    """Let a driver act, and note what it was told."""
    try:
        report = await until_death(who, doing)
    except CommitError as error:
        race.note(f"{who.process.name} {name}: {type(error).__name__}: {error}")
        return error
    if report is None or who.process.dead:
        race.note(f"{who.process.name} {name}: died at {who.process.writes[-1:]}")
        return None
    race.note(f"{who.process.name} {name}: {report!r:.300}")
    if isinstance(report, JobReport):
        rival.said.add("rolled back" if report.rolled_back else "committed")
    elif isinstance(report, AbortReport) and report.rolled_back:
        rival.said.add("rolled back")
    return report


async def first_try(race: Race, rival: Rival) -> None:
    """Commit a job, at any time, in a process that may die or stand still."""
    await asyncio.sleep(race.rng.choice([0.0, 0.5, 3.0, LEASE * 2]) * race.rng.random())
    who = rival.driver(race.world, race.name("first"), **race.fate())
    await act(race, rival, "commit", who, rival.commit(who))


async def finish(race: Race, rival: Rival) -> bool:
    """Bring one job to an end with one command; return whether it has ended."""
    who = rival.driver(race.world, race.name("last"))
    verb = race.rng.choice(["commit", "resume", "rollback"])
    doing: dict[str, Any] = {
        "commit": lambda: rival.commit(who),
        "resume": who.job.resume_job,
        "rollback": who.job.rollback_job,
    }
    answer = await act(race, rival, f"last {verb}", who, doing[verb]())
    aborted = isinstance(answer, AbortReport) and not answer.kept
    return isinstance(answer, JobReport) or aborted


def content(world: ModelWorld) -> dict[str, bytes | None]:
    """Return what readers of the table see."""
    return {path: item.data for path, item in visible(world.tree(), DEST).items()}


def applied(there: Mapping[str, bytes | None], rival: Rival) -> dict[str, bytes | None]:
    """Return what readers see after a job, by the rules of the modes and no commit's."""
    new = {f"{rival.dest}/{name}": text.encode() for name, text in rival.scenario.tasks[0].items()}
    gone: set[str] = set()
    if rival.scenario.mode is Mode.REPLACE_TABLE:
        gone = {rival.dest}
    elif rival.scenario.mode is Mode.REPLACE_PARTITIONS:
        gone = {path.rpartition("/")[0] for path in new}
    return {path: data for path, data in there.items() if not within(path, gone)} | new


def judge(race: Race) -> list[str]:
    """Return what is wrong in the end.

    Of a job whose last driver died before it could say how the job ended, both ends are right.
    """
    for rival in race.rivals:
        if len(rival.said) > 1:
            return [f"{rival.job_id}: drivers said both {sorted(rival.said)}"]
    sure = [rival for rival in race.rivals if rival.said == {"committed"}]
    maybe = [rival for rival in race.rivals if not rival.said]
    found, wanted = content(race.world), []
    for count in range(len(maybe) + 1):
        for some in combinations(maybe, count):
            orders = permutations([*sure, *some])
            wanted += [reduce(applied, order, race.before) for order in orders]
    if found in wanted:
        return []
    return [f"committed {[r.job_id for r in sure]}, perhaps {[r.job_id for r in maybe]}: {found}"]


async def tell(seed: int, kind: str = "adls") -> tuple[Race, list[str]]:
    """Let one seed happen; return it with what is wrong."""
    race = await begin(seed, kind)
    if seed % 2:
        race.world.storm(random.Random(f"weather {seed}"), draw_climate(race.rng, seed))
    async with asyncio.timeout(FOREVER):
        await asyncio.gather(*(first_try(race, rival) for rival in race.rivals))
        open_ = list(race.rivals)
        for _ in range(ROUNDS):
            race.rng.shuffle(open_)
            open_ = [rival for rival in open_ if not await finish(race, rival)]
            if not open_:
                break
            await asyncio.sleep(LEASE / 3)
        await asyncio.sleep(LEASE * 5)
    problems = [f"{rival.job_id} does not come to an end" for rival in open_]
    return race, problems or judge(race)


async def violations(seed: int, kind: str = "adls") -> list[str]:
    """Return what one seed finds wrong in a world, each with its seed."""
    try:
        _, problems = await tell(seed, kind)
    except Exception as error:
        return [f"rivals {seed} on {kind}: {type(error).__name__}: {error}"]
    return [f"rivals {seed} on {kind}: {text}" for text in problems]

"""One job in the worst of weathers, with several drivers that die, sleep and wake: from one seed.

Everything that happens is drawn from the seed, so that a seed which finds something finds it again.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.planning import whole_directories
from asynccommit.errors import CommitError, StoreError
from asynccommit.options.job import Mode, OnUnfinished
from asynccommit.results import AbortReport, JobReport
from asynccommit.testing.models.crashes import Crash, Suspension, When
from asynccommit.testing.models.invariants import (
    Item,
    Tree,
    complete,
    continuity,
    exclusive,
    no_leftovers,
    success_of,
    untouched,
    visible,
)
from tests.crash.draws import LEASE, draw_climate, draw_scenario
from tests.crash.jobs import JOB, JOB_DIR, Driver, Scenario, commit, driver, expected, run_tasks
from tests.crash.recovery import has_begun, until_death
from tests.crash.worlds import FLAT, new_world
from tests.support.crashes import DEST, ModelWorld, Watch
from tests.support.strikes import strike

SECOND = "job_202601010000_0009"
ROUNDS = 25
FOREVER = 1e6
ZOMBIE = b"of a zombie"
_ZOMBIE_MANIFEST = re.compile(rb'"taskAttemptID" *: *"attempt_\w+_m_\d+_[1-9]\d*"').search
_ZOMBIE_CLAIM = re.compile(r"/claims/attempt_\w+_m_\d+_[1-9]\d*$").search
HOSTS = ("driver-0", "driver-1")


@dataclass
class Story:
    """What happens in one run.

    Attributes:
        seed: all of it comes from there.
        rng: draws what happens.
        world: where.
        scenario: the job that all is about.
        tasks: its commit messages.
        files: what it commits.
        before: the tree before it.
        second: the files of another job, which appends meanwhile; empty if there is none.
        said: what drivers were told that the end is.
        watch: looks after every change, and knows what each job has committed.
        problems: what was found wrong on the way.
        late: what was uploaded once more, and stays if all was over then.
    """

    seed: int
    rng: random.Random
    world: ModelWorld
    scenario: Scenario
    tasks: list[TaskCommit]
    files: Tree
    before: Tree
    watch: Watch
    second: dict[str, Item] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    born: int = 0

    def note(self, text: str) -> None:
        """Keep what happened, to be read when a seed finds something."""
        self.log.append(f"{asyncio.get_running_loop().time():10.3f} {text}")

    def driver(self, what: str, **fate: Any) -> Driver:
        """Return a new process on one of two machines, whose clocks differ."""
        self.born += 1
        machine = self.rng.choice(HOSTS)
        skew = 0.0 if machine == HOSTS[0] else 47.0
        return driver(
            self.world, self.scenario, f"{what}-{self.born}", machine=machine, skew=skew, **fate
        )

    def fate(self) -> dict[str, Any]:
        """Draw what becomes of a driver."""
        draw = self.rng.random()
        if draw < 0.45:
            when = self.rng.choice([When.BEFORE, When.AFTER, When.LATE])
            late = self.rng.uniform(0, self.rng.choice([20, LEASE * 2]))
            return {"crash": Crash(self.rng.randint(1, 70), when, late)}
        if draw < 0.75:
            seconds = self.rng.choice([2.0, LEASE / 2, LEASE * 0.8, LEASE * 1.5, LEASE * 4])
            asked = self.rng.randint(1, 120)
            return {"stop": Suspension(asked, seconds, after=self.rng.random() < 0.5)}
        return {}


# --- the job ----------------------------------------------------------------------------------


async def begin(seed: int, kind: str) -> Story:
    """Return a story whose tasks have committed, in calm weather."""
    rng = random.Random(seed)
    scenario = draw_scenario(rng)
    watch = Watch()
    world = new_world(kind, seed, watch)
    for path, text in scenario.before.items():
        world.place(path, text)
    before = world.tree()
    tasks = await run_tasks(world, scenario)
    files = expected(world.tree(), scenario)
    watch.jobs[JOB] = files
    story = Story(seed, rng, world, scenario, tasks, files, before, watch)
    world.telling = rng.random() < 0.7
    return story


# --- who acts ---------------------------------------------------------------------------------


async def _act(story: Story, name: str, who: Driver, act: Awaitable[Any]) -> Any:
    """Let a driver act, and note what it was told."""
    try:
        report = await until_death(who, act)
    except CommitError as error:
        story.note(f"{who.process.name} {name}: {type(error).__name__}: {error}")
        return error
    if report is None or who.process.dead:
        last = who.process.writes[-1:] or ["no write"]
        story.note(f"{who.process.name} {name}: died at {last[0]}")
        return None
    story.note(f"{who.process.name} {name}: {report!r:.200}")
    _hear(story, report)
    return report


def _hear(story: Story, report: object) -> None:
    if isinstance(report, JobReport):
        story.said.add("rolled back" if report.rolled_back else "committed")
    elif isinstance(report, AbortReport) and report.rolled_back:
        story.said.add("rolled back")


async def first_driver(story: Story, *, alone: bool) -> None:
    """Commit the job, and perhaps die or stand still in it; what nobody disturbs succeeds."""
    fate = story.fate()
    who = story.driver("first", **fate)
    answer = await _act(story, "commit", who, commit(story.scenario, who, story.tasks))
    if alone and not fate and not isinstance(answer, JobReport):
        story.problems.append(f"nobody disturbed it, and it failed: {answer}")


async def another_driver(story: Story) -> None:
    """Do something about the job at any time, with or without the right to."""
    await asyncio.sleep(story.rng.choice([0.0, 0.5, 2.0, LEASE / 2, LEASE * 1.2, LEASE * 3]))
    await asyncio.sleep(story.rng.uniform(0, 3))
    who = story.driver("another", **story.fate())
    acts: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "commit": lambda: commit(story.scenario, who, story.tasks),
        "resume": lambda: who.job.resume_job(),
        "takeover": lambda: who.job.resume_job(force=True),
        "rollback": lambda: who.job.rollback_job(),
        "forced rollback": lambda: who.job.rollback_job(force=True),
        "abort": lambda: who.job.abort_job("enough"),
        "look": lambda: who.job.job_statuses(),
        "rerun": lambda: rerun(story),
    }
    name = story.rng.choice(list(acts))
    strike("another driver")
    await _act(story, name, who, acts[name]())


async def rerun(story: Story) -> None:
    """Set the next job up, which settles what is unfinished, and give it up."""
    wish = story.rng.choice(list(OnUnfinished))
    job_id = f"{JOB}_{story.born}"
    who = story.driver("rerun", job_id=job_id, options={"on_unfinished": wish}, **story.fate())
    try:
        await until_death(who, who.job.setup_job())
    except CommitError as error:
        story.note(f"{who.process.name} {wish}: {type(error).__name__}: {error}")
    for number in range(ROUNDS):
        again = story.driver("tidy", job_id=who.job.layout.job_id)
        with suppress(CommitError):
            await again.job.abort_job(f"given up, {number}")
            return


async def zombie(story: Story) -> None:
    """Run a task attempt that nobody waits for, at any time."""
    await asyncio.sleep(story.rng.choice([0.0, 0.2, 1.0, LEASE, LEASE * 5]))
    await asyncio.sleep(story.rng.uniform(0, 2))
    who = story.driver("zombie", **story.fate())
    task = story.rng.randrange(len(story.tasks))
    task_id, attempt_id = who.job.layout.ids(task, story.born)

    async def attempt() -> None:
        base = await who.job.setup_task(attempt_id)
        await who.store.mkdir(f"{base}/day=1")
        for number in range(2):
            await who.store.put(f"{base}/day=1/zombie-{number}", ZOMBIE)
            strike("zombie")
            await asyncio.sleep(story.rng.uniform(0, 1))
        await who.job.commit_task(task_id, attempt_id)

    with suppress(Exception):
        await until_death(who, attempt())


async def straggler(story: Story, rng: random.Random) -> None:
    """Add files to directories of committed task attempts, at any time."""
    sources = [task.attempt_id for task in story.tasks]
    who = story.driver("straggler")
    for number in range(rng.randint(0, 4)):
        await asyncio.sleep(rng.choice([0.1, 1.0, 10.0, LEASE]) * rng.random())
        base = who.job.layout.task_attempt_dir(rng.choice(sources))
        place = rng.choice(["day=1", "day=2", "new/deep"])
        with suppress(CommitError, StoreError):
            await who.store.put(f"{base}/{place}/straggler-{number}", ZOMBIE)
            strike("straggler")
            story.note(f"a straggler wrote to {base}/{place}")


async def late_uploads(story: Story, rng: random.Random) -> None:
    """Let uploads of the tasks come once more, whatever has become of their files meanwhile."""
    place = f"{JOB_DIR}/00/tasks/"
    sources = [
        (path, item.data.decode())
        for path, item in sorted(story.world.tree().items())
        if path.startswith(place) and item.data is not None
    ]
    for path, text in rng.sample(sources, min(rng.randint(0, 4), len(sources))):
        await asyncio.sleep(rng.choice([0.1, 1.0, 10.0, LEASE]) * rng.random())
        story.late.add(path)
        story.world.place(path, text)
        strike("late upload")
        story.note(f"{path} comes once more")


async def second_job(story: Story, tasks: list[TaskCommit], scenario: Scenario) -> None:
    """Append with another job; it goes on until it is committed."""
    await asyncio.sleep(story.rng.uniform(0, 2))
    for number in range(ROUNDS):
        who = driver(story.world, scenario, f"second-{number}", job_id=SECOND)
        with suppress(CommitError):
            await commit(scenario, who, tasks)
            strike("second job")
            return
        await asyncio.sleep(LEASE * 1.5)
    story.problems.append("the second job was never committed")


async def add_second_job(story: Story) -> Coroutine[Any, Any, None] | None:
    """Set another job up, that appends to the same destination, if one can."""
    if story.scenario.mode is Mode.REPLACE_TABLE or story.rng.random() < 0.5:
        return None
    names = {"day=9/second-0": "second", "day=9/second-1": "second too"}
    if story.scenario.mode is Mode.APPEND:
        names |= {"day=1/second-2": "beside", "second-3": "on top"}
    scenario = Scenario("second", (names,), story.scenario.before)
    tasks = await run_tasks(story.world, scenario, "second", SECOND)
    story.second = expected(story.world.tree(), scenario, SECOND)
    story.watch.jobs[SECOND] = story.second
    return second_job(story, tasks, scenario)


# --- the end ----------------------------------------------------------------------------------


async def finish(story: Story) -> None:
    """Bring the job to an end, as its operator would: again and again, in a new process."""
    for _ in range(ROUNDS):
        tree = story.world.tree()
        if not _is_open(story, tree):
            return
        who = story.driver("last")
        names = ["resume"] if has_begun(tree) else []
        name = story.rng.choice([*names, "commit", "rollback"])
        act = {"commit": _commit, "resume": _resume, "rollback": _roll_back}[name]
        await _act(story, f"last {name}", who, act(story, who))
        await asyncio.sleep(LEASE / 3)
    story.problems.append("the job does not come to an end")


async def _commit(story: Story, who: Driver) -> Any:
    return await commit(story.scenario, who, story.tasks)


async def _resume(_: Story, who: Driver) -> Any:
    return await who.job.resume_job()


async def _roll_back(story: Story, who: Driver) -> Any:
    return await who.job.rollback_job(force=story.rng.random() < 0.5)


def _is_open(story: Story, tree: Tree) -> bool:
    """Whether anything is left of our job, but for what stragglers wrote."""
    tree = _without_zombies(story, tree)
    return bool(no_leftovers(tree, JOB_DIR, late=True, words=story.world.words))


def _without_zombies(story: Story, tree: Tree) -> Tree:
    """Return a tree without what attempts wrote that nobody waited for, or came too late."""
    kept = {
        path: item
        for path, item in tree.items()
        if not _is_zombie(item) and not _ZOMBIE_CLAIM(path)
    }
    above = {
        "/".join(path.split("/")[:n]) for path in story.late for n in range(path.count("/") + 1)
    }
    return {path: item for path, item in kept.items() if path not in story.late | above}


def _is_zombie(item: Item) -> bool:
    return item.data == ZOMBIE or _ZOMBIE_MANIFEST(item.data or b"") is not None


def judge(story: Story, tree: Tree) -> list[str]:
    """Return what is wrong in the end."""
    ours = {path for path in story.files if path in tree}
    told = " and ".join(sorted(story.said))
    if len(story.said) > 1:
        return [f"it was said that the job is {told}"]
    committed = story.said == {"committed"} or (not story.said and ours == set(story.files))
    had = {path: item for path, item in story.before.items() if item.data is not None}
    kept = {path: had[path] for path in (story.scenario.kept if committed else had)}
    kept.pop(f"{DEST}/_SUCCESS", None)
    problems = complete(tree, story.second) + untouched(kept, tree)
    known = {*story.second, *kept}
    if committed:
        problems += complete(tree, story.files)
        known |= {*story.files}
    else:
        problems += [f"{path} is there, and was taken back" for path in ours - had.keys()]
    problems += exclusive(tree, DEST, known) + _marker(story, tree, committed)
    left = _without_zombies(story, tree)
    problems += no_leftovers(left, JOB_DIR, late=True, words=story.world.words)
    return problems + [f"a zombie's {path}" for path in _zombies(tree)]


def _zombies(tree: Tree) -> list[str]:
    return [path for path, item in visible(tree, DEST).items() if item.data == ZOMBIE]


def _marker(story: Story, tree: Tree, committed: bool) -> list[str]:
    marker = success_of(tree, DEST)
    allowed = {SECOND} if story.second else set()
    old = success_of(story.before, DEST)
    if committed and story.scenario.options.get("mark_success", True):
        allowed.add(JOB)
    elif not story.second:
        gone = committed and story.scenario.mode is Mode.REPLACE_TABLE
        allowed.add(old.job_id if old and not gone else "")
    found = marker.job_id if marker else ""
    return (
        [] if found in allowed else [f"_SUCCESS belongs to job {found!r}, not of {sorted(allowed)}"]
    )


async def tell(seed: int, kind: str = "adls") -> Story:
    """Let one seed happen in a world, to the end of every straggler and every late request.

    In every second one directories are moved as they are, however few files they have.
    """
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            patch.setattr(whole_directories, "LEAST", -1_000)
            patch.setattr(whole_directories, "WORTH", 0)
        return await _tell(seed, kind)


async def _tell(seed: int, kind: str) -> Story:
    story = await begin(seed, kind)
    second = await add_second_job(story)
    story.world.storm(random.Random(f"weather {seed}"), draw_climate(story.rng, seed))
    others = story.rng.randint(0, 2)
    acts = [first_driver(story, alone=not others and second is None)]
    acts += [another_driver(story) for _ in range(others)]
    if story.scenario.messages:  # else the last attempt counts, whoever it is
        acts += [zombie(story) for _ in range(story.rng.randint(0, 2))]
    if second is not None:
        acts.append(second)
    if kind in FLAT:
        acts.append(late_uploads(story, random.Random(f"late {seed}")))
    elif story.scenario.messages:
        acts.append(straggler(story, random.Random(f"straggler {seed}")))
    async with asyncio.timeout(FOREVER):
        await asyncio.gather(*acts)
        await finish(story)
        await asyncio.sleep(LEASE)
    ended = story.world.tree()
    await asyncio.sleep(LEASE * 5)
    later = story.world.tree()
    story.problems += story.watch.problems
    story.problems += judge(story, later)
    story.problems += continuity(ended, later, DEST, [ZOMBIE])
    return story


async def violations(seed: int, kind: str = "adls") -> list[str]:
    """Return what one seed finds wrong in a world, each with its seed."""
    try:
        story = await tell(seed, kind)
    except Exception as error:
        return [f"seed {seed} on {kind}: {type(error).__name__}: {error}"]
    return [f"seed {seed} on {kind}: {text}" for text in story.problems]

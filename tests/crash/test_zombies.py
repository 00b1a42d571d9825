"""A driver that was taken for dead wakes while another goes on with its commit: it loses."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from asynccommit.errors import CommitError, CommittedError, OwnedError
from asynccommit.results import AbortReport, JobReport
from asynccommit.stores.filesystem_names import is_temporary
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Driver, Scenario, commit, driver
from tests.crash.recovery import Hand, Job, decision, has_begun, ready, until_death
from tests.crash.scenarios import SCENARIOS, SMALLEST
from tests.crash.worlds import KINDS
from tests.support.crashes import ModelWorld

LEASE = 300.0
WAKES = int(os.environ.get("ASYNCCOMMIT_WAKES", "100"))
"""How many of the ways in which two drivers can meet are drawn for each larger job."""
EVERY = int(os.environ.get("ASYNCCOMMIT_WAKES", "1000"))
"""The same for the smallest."""
FIRSTS = ("commit", "resume", "rollback")
SECONDS = ("resume", "rollback", "commit")


@dataclass(frozen=True)
class Meeting:
    """How two drivers meet.

    Attributes:
        first: what the first one does; if it is not to commit, somebody has died in that before.
        died: the write at which that was.
        held: the first one's write at which it is held.
        alone: only this request is held, as by a slow network; else the whole process sleeps.
        second: what the second one does.
        wakes: the second one's write at which the first goes on; 0 if that is when it has ended.
        expired: whether the second waits for the lease; else it uses force, where there is such.
        dies: the second dies after that write, and then the first goes on.
    """

    first: str
    died: int
    held: int
    alone: bool
    second: str
    wakes: int
    expired: bool
    dies: bool


class Sleeper:
    """The first driver: it is held at a write, and let go by the second."""

    def __init__(self, job: Job, who: Driver, meeting: Meeting) -> None:
        self.answer: object = None
        self._who = who
        self._alone = meeting.alone
        self._let_go = asyncio.Event()
        who.process.hooks[meeting.held] = self._hold
        self._running = asyncio.create_task(self._run(job, meeting))

    async def _run(self, job: Job, meeting: Meeting) -> None:
        self.answer = await act_as(job, self._who, meeting.first, force=False)

    async def _hold(self) -> None:
        if self._alone:
            await self._let_go.wait()
        elif not self._let_go.is_set():
            self._who.process.suspend()

    async def wake(self) -> None:
        """Let it go on, and give it the time to do so."""
        self._let_go.set()
        self._who.process.awaken()
        await asyncio.sleep(60)

    async def end(self) -> object:
        """Return what it was told in the end."""
        self._let_go.set()
        self._who.process.awaken()
        await self._running
        return self.answer


async def act_as(job: Job, who: Driver, act: str, *, force: bool) -> object:
    """Return what a driver is told."""
    try:
        if act == "commit":
            return await commit(job.scenario, who, job.tasks)
        if act == "resume":
            return await who.job.resume_job(force=force)
        if act == "abort":
            return await who.job.abort_job("enough")
        return await who.job.rollback_job(force=force)
    except CommitError as error:
        return error


async def meet(job: Job, world: ModelWorld, meeting: Meeting) -> list[str]:
    """Let two drivers meet, bring the job to its end, and return what is wrong then."""
    if meeting.first != "commit":
        zero = driver(world, job.scenario, "zero", crash=Crash(meeting.died))
        await until_death(zero, commit(job.scenario, zero, job.tasks))
        zero.process.kill()
    world.telling = not meeting.expired
    if meeting.expired:
        await asyncio.sleep(LEASE + 5)
    sleeper = Sleeper(job, driver(world, job.scenario, "first"), meeting)
    await asyncio.sleep(1)
    crash = Crash(meeting.wakes, When.AFTER) if meeting.dies else None
    who = driver(world, job.scenario, "second", crash=crash)
    if not meeting.dies:
        who.process.hooks[meeting.wakes] = sleeper.wake
    if meeting.expired:
        await asyncio.sleep(LEASE + 5)
    second = await until_death(who, act_as(job, who, meeting.second, force=not meeting.expired))
    first = await sleeper.end()
    last = await finish(job, world)
    await asyncio.sleep(LEASE)
    return judge(job, world, [first, second, last])


async def finish(job: Job, world: ModelWorld) -> object:
    """Bring the job to its end, whatever that is."""
    hand = Hand(job, world, "third")
    report: object = None
    for act in ("resume", "rollback"):
        try:
            return await hand.act(act)
        except CommitError as error:
            report = error
    return report


def judge(job: Job, world: ModelWorld, told: list[object]) -> list[str]:
    """Return what is wrong in the end, given what drivers were told."""
    tree = world.tree()
    answers = "; ".join(f"{answer!r:.150}" for answer in told)
    if found := job.neither(tree):
        return [f"{text} (told: {answers})" for text in found]
    said = {_said(answer) for answer in told} - {""}
    end = "committed" if job.undone(tree, made=True, late=True) else "rolled back"
    return [f"it is {end}, and {said} was said (told: {answers})"] if said - {end} else []


def _said(answer: object) -> str:
    if isinstance(answer, JobReport):
        return "rolled back" if answer.rolled_back else "committed"
    return "rolled back" if isinstance(answer, AbortReport) and answer.rolled_back else ""


async def meetings(job: Job, world: ModelWorld) -> list[Meeting]:
    """Return every way in which two drivers can meet.

    Whoever resumes or rolls back does so after a crash in the middle of the commit.
    """
    whole = driver(world.copy(), job.scenario, "first")
    await commit(job.scenario, whole, job.tasks)
    found = []
    for first in FIRSTS:
        died = 0 if first == "commit" else _died(whole.process.writes)
        held = len(whole.process.writes)
        found += [Meeting(first, died, *rest) for rest in _ways(held)]
    return found


def _died(writes: list[str]) -> int:
    """Return the write with which the outcome is decided."""
    return next(n for n, what in enumerate(writes, 1) if "commit-outcome" in what)


def _ways(writes: int) -> Iterator[tuple[int, bool, str, int, bool, bool]]:
    for held, second, dies in product(range(1, writes + 1), SECONDS, (False, True)):
        for alone, expired in ((False, False), (True, False), (False, True)):
            for wakes in range(writes + 1):
                yield held, alone, second, wakes, expired, dies


def _asks(write: str) -> bool:
    return is_temporary(write.rpartition("/")[2])


async def visit(job: Job, world: ModelWorld, held: int, act: str) -> list[str]:
    """Let a second driver come by, without force, while the first is held for a moment."""
    who = driver(world, job.scenario, "first")
    way = Meeting("commit", 0, held, alone=False, second=act, wakes=0, expired=False, dies=False)
    sleeper = Sleeper(job, who, way)
    await asyncio.sleep(1)
    begun, decided = has_begun(world.tree()), decision(world.tree())
    second = driver(world, job.scenario, "second")
    answer = await act_as(job, second, act, force=False) if begun else None
    first = await sleeper.end()
    if not begun:
        return []
    expected = (OwnedError, CommittedError) if decided and act == "rollback" else OwnedError
    problems = [] if isinstance(answer, expected) else [f"told {answer!r:.150} of a living owner"]
    # A file that is deleted at once tells as whom a driver writes, where files have owners.
    problems += [f"wrote {what}" for what in second.process.writes if not _asks(what)]
    if not isinstance(first, JobReport):
        problems.append(f"robbed, and told {first!r:.150}")
    return problems


async def visits(scenario: Scenario, kind: str = "adls") -> list[str]:
    """Let a second driver come by at every write of the first."""
    job, world = await ready(scenario, kind)
    whole = driver(world.copy(), scenario, "first")
    await commit(scenario, whole, job.tasks)
    # The last ones are of the clean-up: the job is committed then.
    last = _died(whole.process.writes)
    problems = []
    for held, act in product(range(1, last + 1), SECONDS):
        found = await visit(job, world.copy(), held, act)
        problems += [f"{act} at {held}: {text}" for text in found]
    return problems


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_living_owner_is_left_alone(kind: str) -> None:
    """Whoever comes by while the owner lives is told so, and writes nothing."""
    assert run_virtual(visits(SMALLEST, kind)) == []


async def _drawn(scenario: Scenario, kind: str, count: int) -> list[Meeting]:
    job, world = await ready(scenario, kind)
    found = await meetings(job, world)
    return random.Random(f"{scenario}").sample(found, min(count, len(found)))


async def _meet_all(scenario: Scenario, kind: str, ways: list[Meeting]) -> list[str]:
    job, world = await ready(scenario, kind)
    problems = []
    for way in ways:
        problems += [f"{kind}, {way}: {text}" for text in await meet(job, world.copy(), way)]
    return problems


def some(scenario: Scenario, kind: str, count: int) -> list[str]:
    """Let two drivers meet in so many ways, each hundred of them on a clock of its own."""
    ways = run_virtual(_drawn(scenario, kind, count))
    parts = [ways[start : start + 100] for start in range(0, len(ways), 100)]
    return [text for part in parts for text in run_virtual(_meet_all(scenario, kind, part))]


@pytest.mark.every(3)
@pytest.mark.sample(1)
@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_meetings(kind: str) -> None:
    """Whenever the first one sleeps and wakes, the job ends whole or undone, as was said."""
    assert some(SMALLEST, kind, EVERY if kind == "adls" else EVERY // 10) == []


@pytest.mark.every(3)
@pytest.mark.sample(2)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", SCENARIOS[1:], ids=str)
def test_some_meetings(scenario: Scenario, kind: str) -> None:
    """The same for jobs that have more in them, and replace what is there."""
    assert some(scenario, kind, WAKES if kind == "adls" else WAKES // 16) == []

"""Every write of a job commit of uploads is a crash point: what was begun is finished, or undone.

Scenarios 1, 4 to 6, 9, 12, 16, 17, 28, 34 and 44 of the S3A catalogue are among the jobs here.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import cycle, product
from typing import Any, TypeVar

import pytest

from asynccommit.errors import CommitError, CommittedError, NotFoundError
from asynccommit.options.job import Mode
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.upload_jobs import ROOT, Driver, Job, Scenario, World, commit, driver, ready

T = TypeVar("T")
ACTS = ("resume", "commit", "rollback")
LATE = 50.0
TURNS = int(os.environ.get("ASYNCCOMMIT_TURNS", "1"))
"""How many of the ``ACTS`` follow each crash."""
LATE_ONES = None if TURNS > 1 else 5
"""At how many writes of a commit a request comes late."""
MARKER = '{"name":"org.apache.hadoop.fs.s3a.commit.files.SuccessData/1","jobId":"earlier"}'

TWO_TASKS = ({"p=1/a": "hello world", "b": "x"}, {"p=2/c": "", "p=2/d": "four"})
THERE = {
    f"{ROOT}/p=1/old": "old",
    f"{ROOT}/p=3/old": "stays in partitions",
    f"{ROOT}/root": "a file of the table",
    f"{ROOT}/_SUCCESS": MARKER,
    f"{ROOT}/p=1/.hidden": "hidden",
    "/out/t2/near": "beside the table",
}
TAKEN = {**THERE, f"{ROOT}/p=1/a": "an old one of this name", f"{ROOT}/b": "here too"}

SCENARIOS = (
    Scenario("append", TWO_TASKS, THERE, killed={"p=1/dead": "dead"}),
    Scenario("fresh", TWO_TASKS, mode=Mode.FAIL, hadoop={"p=9/dead": "dead of Hadoop"}),
    Scenario("nothing", ({}, {}), THERE),
    Scenario("table", TWO_TASKS, TAKEN, Mode.REPLACE_TABLE),
    Scenario(
        "partitions",
        TWO_TASKS,
        TAKEN | {f"{ROOT}/b": "b"},
        Mode.REPLACE_PARTITIONS,
        options={"delete_target_files": True},
    ),
    Scenario("overwrite", TWO_TASKS, TAKEN, options={"delete_target_files": True}),
    Scenario("unmarked", TWO_TASKS, {f"{ROOT}/p=1/old": "old"}, options={"mark_success": False}),
    Scenario(
        "directory", TWO_TASKS, TAKEN, Mode.REPLACE_TABLE, "directory", killed={"p=1/dead": "dead"}
    ),
    Scenario(
        "partitioned",
        ({"p=1/a": "hello world"},),
        TAKEN,
        Mode.REPLACE_PARTITIONS,
        "partitioned",
        messages=False,
    ),
)


async def until_death(who: Driver, act: Awaitable[T]) -> T | None:
    """Return what ``act`` gives, ``None`` if the process died on the way."""
    try:
        return await act
    except BaseException:
        if not who.process.dead:
            raise
        return None


async def act(job: Job, world: World, name: str, who: Driver) -> Any:
    """Resume the job, roll it back, abort it, or commit it again with the same messages."""
    acts: dict[str, Callable[[], Awaitable[Any]]] = {
        "resume": who.job.resume_job,
        "rollback": lambda: who.job.rollback_job(force=True),  # its driver is known to be dead
        "abort": who.job.abort_job,
        "commit": lambda: commit(job.scenario, who, job.tasks),
    }
    return await acts[name]()


class Hand:
    """Somebody who acts on a job after a crash, each time in a fresh process."""

    def __init__(self, job: Job, world: World) -> None:
        self.job = job
        self.world = world
        self._acts = 0

    async def act(self, name: str) -> Any:
        """Act in a fresh process."""
        self._acts += 1
        who = driver(self.world, self.job.scenario, f"hand{self._acts}")
        try:
            return await act(self.job, self.world, name, who)
        finally:
            who.process.kill()

    async def end(self, name: str) -> list[str]:
        """Do one of the three, and return what is then not as it should be."""
        blind = not self.job.scenario.options.get("mark_success", True)
        # Without a marker nobody can tell that a job is committed once its record is deleted.
        over = blind and not self.job.begun(self.world.state()) and self._is_complete()
        back = name == "rollback"
        try:
            await self.act(name)
        except CommittedError:
            back = False
            with suppress(CommitError):
                await self.act("resume")
        except CommitError as error:
            if over:
                return self._ended(back=False, late=True)
            if name != "resume" or not _none(error):
                return [f"{name} failed: {type(error).__name__}: {error}"]
            await self.act("commit")
        problems = self._ended(back=back and not over)
        return problems or await self._again(name)

    def _is_complete(self) -> bool:
        return not self.job.committed(self.world.state(), late=True)

    def _ended(self, *, back: bool, late: bool = False) -> list[str]:
        state = self.world.state()
        return self.job.undone(state) if back else self.job.committed(state, late=late)

    async def _again(self, name: str) -> list[str]:
        before = self.world.state()
        with suppress(CommitError):
            await self.act(name)
        return [] if self.world.state() == before else [f"{name} again changes something"]


def _none(error: CommitError) -> bool:
    return any(isinstance(cause, NotFoundError) for cause in error.failures)


async def points(
    scenario: Scenario, when: When, writes: int | None, turns: int, **rules: Any
) -> list[str]:
    """Die at writes in one way, then act, then wait for what comes late.

    Args:
        scenario: the job.
        when: what becomes of the request at which it dies.
        writes: how many of them; ``None`` for all.
        turns: how many of the ``ACTS`` are tried after each.
        rules: of the bucket.
    """
    job, world = ready(scenario, **rules)
    whole = world.copy()
    first = driver(whole, job.scenario, "first")
    await commit(job.scenario, first, job.tasks)
    problems = job.committed(whole.state())
    every = range(1, len(first.process.writes) + 1)
    chosen = every if writes is None else random.Random(str(scenario)).sample(every, writes)
    acts = cycle(ACTS)
    for write, name in product(chosen, [next(acts) for _ in range(turns)]):
        there = world.copy()
        who = driver(there, job.scenario, "first", crash=Crash(write, when, LATE))
        await until_death(who, commit(job.scenario, who, job.tasks))
        name = next(acts) if turns == 1 else name
        what = f"{scenario}: died {when.value} write {write}, {who.process.writes[-1]}; {name}"
        found = await Hand(job, there).end(name)
        if when is When.LATE and not found:
            found = await _later(job, there, name)
        problems += [f"{what}: {text}" for text in found]
    return problems + world.watch.problems


async def _later(job: Job, world: World, name: str) -> list[str]:
    """Return what a late request has changed that anybody sees."""
    before = job.swept(world.state().files), world.state().uploads
    await asyncio.sleep(2 * LATE)
    after = job.swept(world.state().files), world.state().uploads
    return [] if before == after else [f"after {name} a late request changed what is there"]


@pytest.mark.sample(5)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crash_at_every_write(scenario: Scenario) -> None:
    """Scenarios 5, 28 and 34: resumed, it ends as undisturbed; rolled back, as before."""
    assert run_virtual(points(scenario, When.AFTER, None, TURNS)) == []


@pytest.mark.sample(5)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_request_that_comes_late(scenario: Scenario) -> None:
    """A request of a dead driver that arrives after the end changes nothing that readers see."""
    assert run_virtual(points(scenario, When.LATE, LATE_ONES, TURNS)) == []


@pytest.mark.parametrize("act", ACTS)
def test_a_crash_before_the_first_write(act: str) -> None:
    """A driver that dies before it has written anything leaves a job that has not begun."""
    scenario = SCENARIOS[0]

    async def run() -> list[str]:
        job, world = ready(scenario)
        who = driver(world, job.scenario, "first", crash=Crash(1, When.BEFORE))
        await until_death(who, commit(job.scenario, who, job.tasks))
        return await Hand(job, world).end(act)

    assert run_virtual(run()) == []


@pytest.mark.parametrize("when", [When.AFTER, When.LATE], ids=lambda when: when.value)
def test_a_service_without_conditional_deletes(when: When) -> None:
    """Where deletes know no conditions all ends as well, and a late one takes nothing new."""
    assert (
        run_virtual(points(SCENARIOS[3], when, LATE_ONES, TURNS, conditional_deletes=False)) == []
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("when", [When.AFTER, When.LATE], ids=lambda when: when.value)
@pytest.mark.parametrize("rule", ["matches", "abort_tells", "abort_keeps"])
def test_a_server_that_lacks_something(rule: str, when: When) -> None:
    """Where nothing is known of a server that does less, all ends as well."""
    lacking: dict[str, Any] = {"known": False, rule: False}
    # Where an abort deletes the object of its key, a job that overwrites is not rolled back.
    scenario = SCENARIOS[0 if rule == "abort_keeps" else 5]
    assert run_virtual(points(scenario, when, LATE_ONES, TURNS, **lacking)) == []

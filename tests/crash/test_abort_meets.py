"""An abort that looked before a commit began takes its directory: the commit ends all the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from asynccommit.errors import CommitError
from asynccommit.results import AbortReport, JobReport
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Driver, Scenario, commit, driver
from tests.crash.recovery import Job, has_begun, ready
from tests.crash.scenarios import DIRECTORIES, IN_THE_WAY, REPLACE_PARTITIONS, REPORTED, SMALLEST
from tests.crash.test_zombies import act_as
from tests.support.crashes import ModelWorld

KINDS = ("adls", "hdfs")
"""Those on which an abort renames the directory; the others take the place of the record."""
FILES = replace(SMALLEST, name="file_smallest", committer="file_v1")


class Meeting:
    """An abort that is held before its first write, and before it gives the directory back.

    Args:
        first: commits; the abort goes on when it is about to send the write of that number.
        second: aborts.
        write: that number.
        keeps: whether the abort gives the directory back only once the commit has ended.
    """

    def __init__(self, first: Driver, second: Driver, write: int, *, keeps: bool) -> None:
        self.begun = False
        self._held, self._go, self._taken = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.over = asyncio.Event()
        self._second, self._keeps = second, keeps
        first.process.hooks[write] = self._meet
        for number in range(1, 6):
            second.process.hooks[number] = self._hold

    async def held(self) -> None:
        """Wait until the abort is about to change something."""
        await self._held.wait()

    async def _meet(self) -> None:
        self._go.set()
        await self._taken.wait()

    async def _hold(self) -> None:
        writes = self._second.process.writes
        self._held.set()
        await self._go.wait()
        if len(writes) > 1 and writes[-2].startswith("rename"):
            self._taken.set()
            if self._keeps:
                await self.over.wait()

    def end(self) -> None:
        """Let both go on: one of them has ended."""
        self._go.set()
        self._taken.set()


async def meet(job: Job, world: ModelWorld, write: int, *, keeps: bool) -> list[str]:
    """Let an abort and a commit meet at a write of the commit; return what is wrong then."""
    first, second = (driver(world, job.scenario, name) for name in ("first", "second"))
    meeting = Meeting(first, second, write, keeps=keeps)

    async def aborts() -> object:
        try:
            return await act_as(job, second, "abort", force=False)
        finally:
            meeting.end()

    async def commits() -> object:
        try:
            return await commit(job.scenario, first, job.tasks)
        except CommitError as error:
            return error
        finally:
            meeting.end()
            meeting.over.set()

    aborting = asyncio.create_task(aborts())
    await meeting.held()
    committed = await commits()
    begun = has_begun(world.tree())
    aborted = await aborting
    told = f"told {committed!r:.300} and {aborted!r:.200}"
    if begun or has_begun(world.tree()):
        return [f"a commit is left half done: {told}"]
    if not isinstance(aborted, AbortReport):
        return [f"the abort failed: {told}"]
    if isinstance(committed, JobReport):
        return [f"{text}: {told}" for text in job.committed(world.tree())]
    lost = [f"nobody has done what he was asked for: {told}"] if aborted.kept else []
    # A draft on ADLS may make the job's directory again, which then stays, empty.
    undone = job.undone(world.tree(), made=True, late=world.store(first.process).traits.drafts)
    return lost + [f"{text}: {told}" for text in undone]


async def meetings(scenario: Scenario, kind: str, *, keeps: bool) -> list[str]:
    """Let both meet at every write of the commit."""
    job, world = await ready(scenario, kind)
    whole = driver(world.copy(), scenario, "first")
    await commit(scenario, whole, job.tasks)
    problems, ends = [], 0
    for write in range(1, len(whole.process.writes) + 1):
        there = world.copy()
        found = await meet(job, there, write, keeps=keeps)
        ends += not job.committed(there.tree())
        at = whole.process.writes[write - 1]
        problems += [f"{scenario} on {kind} at {write}, {at}: {text}" for text in found]
    return problems or ([] if ends > 1 else ["no commit has begun before its abort"])


@pytest.mark.sample(4)
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scenario", [SMALLEST, IN_THE_WAY, REPLACE_PARTITIONS, DIRECTORIES, REPORTED, FILES], ids=str
)
def test_an_abort_takes_the_directory_of_a_commit(
    scenario: Scenario, kind: str, keeps: bool
) -> None:
    """A commit whose record is written ends whole; before it the job is aborted."""
    assert run_virtual(meetings(scenario, kind, keeps=keeps)) == []

"""The status of a job whose uploads end of themselves, as blocks of Azure do after a week."""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.errors import CommitError
from asynccommit.testing.models.crashes import Crash
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_points import SCENARIOS, until_death
from tests.support.flat_crashes import FlatWorld
from tests.support.upload_jobs import JOB, World, commit, driver, ready

DAY = 86_400.0


@pytest.mark.parametrize("begun", [False, True], ids=["no commit", "a commit"])
@pytest.mark.parametrize(
    "of, days, warned", [(FlatWorld, 4.9, False), (FlatWorld, 5.1, True), (World, 9, False)]
)
def test_a_job_is_warned_from_the_fifth_day(
    of: type[World], days: float, warned: bool, begun: bool
) -> None:
    """The status says when the blocks end, on a store where they do, and not before."""

    async def run() -> str:
        job, world = ready(SCENARIOS[0], of=of)
        if begun:
            who = driver(world, job.scenario, "first", crash=Crash(9))
            await until_death(who, commit(job.scenario, who, job.tasks))
        await asyncio.sleep(days * DAY)
        looking = driver(world, job.scenario, "looking")
        known = await looking.job.job_statuses()
        return next(one.why for one in known if one.job_id == JOB)

    assert ("what its tasks have uploaded ends on" in run_virtual(run())) == warned


def test_a_job_that_commits_after_a_week_must_run_again() -> None:
    """Its blocks are gone: nothing changes, and the error says what to do."""

    async def run() -> None:
        job, world = ready(SCENARIOS[3], of=FlatWorld)
        before = world.state().files
        await asyncio.sleep(7.1 * DAY)
        who = driver(world, job.scenario, "late")
        with pytest.raises(CommitError, match="must run again"):
            await commit(job.scenario, who, job.tasks)
        changed = before.items() ^ world.state().files.items()
        assert {path for path, _ in changed} == set()

    run_virtual(run())


def test_an_abort_says_how_many_uploads_stay() -> None:
    """Each counts once, whichever of the job's files name it; nothing is visible of them."""

    async def run() -> None:
        job, world = ready(SCENARIOS[0], of=FlatWorld)
        who = driver(world, job.scenario, "first")
        report = await who.job.abort_job()
        assert [text for text in report.warnings if text.startswith("5 uploads cannot be aborted")]
        assert report.uploads == 0
        assert job.undone(world.state()) == []

    run_virtual(run())

"""A driver dies at each write of its job's set-up: the rest is seen, and an abort deletes it."""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.errors import OwnedError
from asynccommit.inspect.discovery import find_jobs, find_rubbish
from asynccommit.results import JobState
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import JOB, JOB_DIR, driver
from tests.crash.recovery import until_death
from tests.crash.scenarios import SMALLEST
from tests.crash.worlds import KINDS, new_world
from tests.support.crashes import DEST, ModelWorld

HOUR = 3_600.0


async def points(kind: str) -> tuple[int, list[str]]:
    """Die at every write; return how often something was left, and what is wrong then."""
    whole = driver(new_world(kind), SMALLEST, "whole")
    await whole.job.setup_job()
    left, problems = 0, list[str]()
    for write in range(1, len(whole.process.writes) + 1):
        for when in (When.BEFORE, When.AFTER):
            world = new_world(kind)
            world.place(f"{DEST}/old", "old")
            who = driver(world, SMALLEST, "first", crash=Crash(write, when))
            await until_death(who, who.job.setup_job())
            left += bool(_left(world))
            problems += [f"{when.value} {write}: {text}" for text in await _wrong(world)]
    return left, problems


async def _wrong(world: ModelWorld) -> list[str]:
    """Return what is wrong with what is seen of a set-up that was cut short."""
    if not _left(world):
        return []
    who = driver(world, SMALLEST, "operator")
    dest = who.job.layout.dest
    await asyncio.sleep(HOUR)
    found = await find_jobs(who.store, dest)
    seen = {one.state for one in await who.job.job_statuses()}
    rubbish = await find_rubbish(who.store, dest)
    if [job.layout.job_id for job in found] + [one.job_id for one in rubbish.values()] != [JOB]:
        return [f"{_left(world)} is seen as {found} and {rubbish}"]
    force = JobState.DEAD not in seen and bool(found)
    problems = [f"status shows {seen}"] if force and not _has_tasks(world) else []
    await who.job.abort_job("cut short", careful=not force)
    return problems + [f"{path} is left" for path in _left(world)]


def _has_tasks(world: ModelWorld) -> bool:
    """Return whether the directories could be those of a running Hadoop job."""
    return f"{JOB_DIR}/00/manifests" in world.tree()


def _left(world: ModelWorld) -> list[str]:
    return [path for path in world.tree() if path.startswith(JOB_DIR)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_every_write_of_a_set_up(kind: str) -> None:
    """Status shows the job with the command that deletes it."""
    left, problems = run_virtual(points(kind))

    assert left
    assert problems == []


def test_a_set_up_under_way_is_left_alone() -> None:
    """Within a lease the empty directory of a job may be that of a set-up that goes on."""

    async def main() -> list[str]:
        world = new_world("adls")
        world.place(f"{JOB_DIR}/00/", "")
        who = driver(world, SMALLEST, "operator")
        job = (await find_jobs(who.store, who.job.layout.dest))[0]
        assert job.bare
        assert [one.state for one in await who.job.job_statuses()] == [JobState.UNKNOWN]
        with pytest.raises(OwnedError, match="--force"):
            await who.job.abort_job("cut short", careful=True)
        return _left(world)

    assert f"{JOB_DIR}/00" in run_virtual(main())

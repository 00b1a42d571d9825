"""The commit record: a commit and an abort exclude each other, whoever comes first."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.errors import CommitError, OutcomeUnknownError, OwnedError, PreflightError
from asynccommit.formats.commit_record import ABORTED
from tests.support.faults import Before, Fault, Faults
from tests.support.upload_jobs import Scenario, World, alone, committer

PLAIN = Scenario("plain", ({"a": "a"}, {"p=1/b": "b"}))
RECORD = PLAIN.layout().record


async def test_an_abort_between_load_and_record() -> None:
    """A commit that begins when an abort has ended changes nothing, and leaves nothing."""
    world, tasks = alone(PLAIN)
    meanwhile = Before("put", RECORD, committer(world, PLAIN).abort_job)
    with pytest.raises(PreflightError, match="was aborted as its commit began"):
        await committer(world, PLAIN, meanwhile).commit_job(tasks)

    assert world.state() == ({}, frozenset())


async def test_an_abort_that_is_under_way() -> None:
    """While an abort deletes, no commit begins."""
    world, tasks = alone(PLAIN)
    world.bucket.put(RECORD[1:], ABORTED)
    with pytest.raises(PreflightError, match="the job was aborted"):
        await committer(world, PLAIN).commit_job(tasks)
    await committer(world, PLAIN).abort_job()

    assert world.state() == ({}, frozenset())


async def test_a_commit_between_two_steps_of_an_abort() -> None:
    """An abort that finds a commit when it takes the record's place keeps everything."""
    world, tasks = alone(PLAIN)

    async def begin() -> None:
        late = Faults(Fault("complete_upload", OutcomeUnknownError))
        with pytest.raises(CommitError):
            await committer(world, PLAIN, late).commit_job(tasks)

    report = await committer(world, PLAIN, Before("put", RECORD, begin)).abort_job()

    assert "a commit has begun" in report.kept
    assert len(world.state().uploads) == 2


async def test_another_begins_a_moment_before() -> None:
    """Of two who begin one does; the other has done nothing, and its plan is gone."""
    world, tasks = alone(PLAIN)
    plans: list[int] = []

    async def begin() -> None:
        late = Faults(Fault("complete_upload", OutcomeUnknownError))
        with pytest.raises(CommitError):
            await committer(world, PLAIN, late).commit_job(tasks)
        plans.append(sum("commit-plan" in key for key in world.bucket.objects))

    first = committer(world, PLAIN, Before("put", RECORD, begin))
    first.host.rng.seed(9)
    with pytest.raises(OwnedError, match="Nothing was done"):
        await first.commit_job(tasks)

    assert plans == [2]
    assert sum("commit-plan" in key for key in world.bucket.objects) == 1
    assert (await committer(world, PLAIN).resume_job()).files == 2


async def test_a_record_whose_answer_was_lost() -> None:
    """A record that is there, though nobody said so, is this commit's."""
    world, tasks = alone(PLAIN)
    faults = Faults(Fault("put", OutcomeUnknownError, RECORD, after=True))
    report = await committer(world, PLAIN, faults).commit_job(tasks)

    assert report.files == 2


async def test_a_driver_that_is_gone() -> None:
    """No commit begins without the process that ran the tasks."""
    world, tasks = alone(PLAIN)
    job = committer(world, PLAIN)
    job.driver_lives = lambda: False
    before = world.state()
    with pytest.raises(PreflightError, match="has ended"):
        await job.commit_job(tasks)

    assert world.state() == before


@pytest.mark.parametrize("act", ["resume_job", "rollback_job", "job_status", "abort_job"])
async def test_a_record_that_is_none(act: str) -> None:
    """What is at the record's place and is none stops everybody, and nothing is deleted."""
    world, _ = alone(PLAIN)
    world.bucket.put(RECORD[1:], b"{}")
    before = world.state()
    job = committer(world, PLAIN)
    if act == "abort_job":
        assert (await job.abort_job()).kept
    else:
        with pytest.raises(CommitError):
            await getattr(job, act)()

    assert world.state() == before


async def test_a_record_that_came_late() -> None:
    """A record without plan and sets, of a request that came after an abort, is cleaned away."""
    world, tasks = alone(PLAIN)
    late: dict[str, bytes] = {}

    def keep(other: World) -> Any:
        async def act() -> None:
            late[RECORD] = other.bucket.head(RECORD[1:]).data

        return act

    faults = Before("complete_upload", "/out/t/a", keep(world))
    await committer(world, PLAIN, faults, workers=1).commit_job(tasks)
    there = World.new()
    there.bucket.put(RECORD[1:], late[RECORD])
    with pytest.raises(CommitError, match="only a rollback can end it"):
        await committer(there, PLAIN).resume_job()
    await committer(there, PLAIN).rollback_job()

    assert there.state() == ({}, frozenset())

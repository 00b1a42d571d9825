"""Which jobs of uploads under a destination are seen, by which committer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.jobs import find_attempts, find_others, sought
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.layouts.uploads import StagingLayout
from asynccommit.errors import CommitError, DeniedError
from asynccommit.results import JobState
from asynccommit.stores.policies.stats import Stats
from asynccommit.stores.urls import Address
from tests.support.faults import Fault, Faults
from tests.support.upload_jobs import (
    BESIDE,
    BUCKET,
    JOB,
    OTHER,
    ROOT,
    Scenario,
    World,
    alone,
    committer,
    run_tasks,
)

MAGIC = Scenario("magic", ({"a": "magic"},))
ELSEWHERE = Scenario("elsewhere", ({"b": "staged"},), committer="directory")
HERE = Scenario("here", ({"c": "staged"},), committer="partitioned", tmp=BESIDE)
OF_BOB = replace(HERE, name="of bob", tmp=BESIDE.replace("alice", "bob"))


async def cut_short(world: World, scenario: Scenario, job_id: str = OTHER) -> None:
    """Run a job whose commit fails once it has begun."""
    tasks = run_tasks(world, scenario, job_id)
    dies = Faults(Fault("complete_upload", DeniedError, f"{ROOT}/"))
    with pytest.raises(CommitError):
        await committer(world, scenario, dies, job_id=job_id).commit_job(tasks)


async def seen(job: UploadCommitter) -> list[tuple[str, str]]:
    """Return the other jobs that a job sees, with their committers."""
    found = await find_attempts(job._run(), own=False)
    return [(one.layout.job_id, one.layout.committer) for one in found]


@pytest.mark.parametrize("mine", [MAGIC, ELSEWHERE, HERE], ids=str)
@pytest.mark.parametrize("other", [MAGIC, ELSEWHERE, HERE, OF_BOB], ids=str)
async def test_who_sees_whom(mine: Scenario, other: Scenario) -> None:
    """What is below the destination all see; what is elsewhere, who has its own files there too."""
    world = World.new()
    await cut_short(world, other)
    run_tasks(world, mine)
    hidden = other is ELSEWHERE and mine is not ELSEWHERE

    assert await seen(committer(world, mine)) == ([] if hidden else [(OTHER, other.committer)])


async def test_what_a_record_says() -> None:
    """The places that a staging commit touches are known to others, as are those of magic ones."""
    world = World.new()
    await cut_short(world, ELSEWHERE)
    (other,) = await find_others(committer(world, ELSEWHERE)._run())

    assert other.status.state is JobState.COMMITTING
    assert other.places == [other.layout.dest.path]


@pytest.mark.parametrize(
    "dest,count", [(f"s3|{BUCKET}|/out/u", 0), ("s3|more|/out/t", 0), (f"s3a|{BUCKET}|/out/t", 1)]
)
async def test_a_place_that_tables_share(dest: str, count: int) -> None:
    """Of the jobs in it those of other destinations are none of this one's business."""
    world = World.new()
    await cut_short(world, ELSEWHERE)
    job = committer(world, ELSEWHERE)
    assert isinstance(job.layout, StagingLayout)
    job.layout = replace(job.layout, dest=Address(*dest.split("|")))
    job.pending = job.store

    assert len(await seen(job)) == count


@pytest.mark.parametrize("record", [None, b"no record"])
async def test_a_job_that_may_be_of_any_table(record: bytes | None) -> None:
    """What does not say where its files go is left out, where the place is not the table's own."""
    world = World.new()
    run_tasks(world, ELSEWHERE, OTHER)
    if record is not None:
        world.bucket.put(ELSEWHERE.layout(OTHER).record[1:], record)

    assert await seen(committer(world, ELSEWHERE)) == []


async def test_a_record_beside_the_data_that_cannot_be_read() -> None:
    """Nobody knows what that commit has done: it counts as cut short."""
    world = World.new()
    run_tasks(world, HERE, OTHER)
    world.bucket.put(HERE.layout(OTHER).record[1:], b"no record")
    (found,) = await find_attempts(committer(world, MAGIC)._run())

    assert (found.status.state, found.status.unfinished) == (JobState.STOPPED, True)


async def test_a_user_whose_directory_is_closed() -> None:
    """Jobs of users that may not be listed are passed over."""
    world = World.new()
    await cut_short(world, OF_BOB)
    await cut_short(world, HERE, JOB)
    denied = Faults(Fault("list", DeniedError, OF_BOB.tmp))

    assert await seen(committer(world, MAGIC, denied, job_id="mine")) == [(JOB, "partitioned")]


async def test_a_job_of_another_destination_that_is_closed() -> None:
    """A job of the table above whose files may not be listed is passed over too."""
    world = World.new()
    await cut_short(world, MAGIC)
    denied = Faults(Fault("list", DeniedError, MAGIC.layout(OTHER).job_dir))
    for faults, count in ((Faults(), 1), (denied, 0)):
        run = committer(world, MAGIC, faults)._run()
        run = replace(run, layout=replace(run.layout, dest=run.layout.dest.child("p=1")))
        assert len(await find_others(run, [ROOT])) == count


@pytest.mark.parametrize("scenario", [MAGIC, ELSEWHERE, HERE], ids=str)
async def test_the_own_job(scenario: Scenario) -> None:
    """It is none of the others, and one of those that are found."""
    world = World.new()
    await cut_short(world, scenario, JOB)
    run = committer(world, scenario)._run()

    assert await find_others(run) == []
    assert [found.layout.job_dir for found in await find_attempts(run)] == [run.layout.job_dir]


async def _requests(scenario: Scenario, act: str) -> Counter[str]:
    """Return the requests of a setup, or of a commit, where nobody else is."""
    world, tasks = alone(scenario) if act == "commit" else (World.new(), list[TaskCommit]())
    stats = Stats("sent")
    job = committer(world, scenario, stats)
    await (job.commit_job(tasks) if act == "commit" else job.check_job())
    return Counter({name: count.n for name, count in stats.counts.items()})


@pytest.mark.parametrize("scenario,lists", [(MAGIC, 1), (HERE, 1), (ELSEWHERE, 2)])
async def test_what_a_setup_asks(scenario: Scenario, lists: int) -> None:
    """Where nobody else is, each place in which a job might be is listed once."""
    assert (await _requests(scenario, "setup"))["list"] == lists


async def test_what_a_commit_asks() -> None:
    """One that replaces nothing looks for nobody: where its own files are makes no difference."""
    assert await _requests(HERE, "commit") == await _requests(
        replace(ELSEWHERE, committer="partitioned", tasks=HERE.tasks), "commit"
    )


@pytest.mark.parametrize("other", [HERE, OF_BOB], ids=str)
async def test_a_job_that_is_sought(other: Scenario) -> None:
    """A job id is enough to resume a staging job beside the data, whoever opened the committer."""
    world = World.new()
    await cut_short(world, other)
    job = committer(world, MAGIC, job_id=OTHER)
    await job.seek()

    assert job.layout == other.layout(OTHER)
    assert (await job.resume_job()).files == 1
    assert world.state().files[f"{ROOT}/c"] == b"staged"


async def test_a_job_that_is_where_it_is_sought() -> None:
    """What is in its own place is found at once; what is nowhere stays where it would be."""
    world = World.new()
    run_tasks(world, MAGIC, OTHER)
    await cut_short(world, HERE)

    for job_id in (OTHER, JOB):
        run = committer(world, MAGIC, job_id=job_id)._run()
        assert await sought(run) == MAGIC.layout(job_id)

"""Whether anybody goes on with a commit, as far as this machine knows."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.status import LONG
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.registry import Committer
from asynccommit.errors import CommitError, PreflightError, UnfinishedError
from asynccommit.results import JobState
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_others import OWN, cut_short
from tests.support.upload_jobs import OTHER, Driver, World, commit, committer, driver, run_tasks
from tests.support.uploads import keys, new_bucket, open_committer


def _next_job(who: Driver) -> UploadCommitter:
    """Return the committer of another job in the same process."""
    return UploadCommitter(who.job.store, OWN.layout(OTHER), who.job.options, who.job.host)


async def test_a_commit_that_failed_in_this_very_process() -> None:
    """The next job of a session is refused after a commit of it that failed half-way."""
    world = World.new()
    tasks = run_tasks(world, OWN)
    upload = next(u for u in world.bucket.uploads.open.values() if u.key == "out/t/b")
    world.bucket.abort(upload.key, upload.upload_id)
    who = driver(world, OWN, "session")
    with pytest.raises(CommitError, match="its upload is gone"):
        await commit(OWN, who, tasks)
    following = _next_job(who)

    assert [status.state for status in await following.job_statuses()] == [JobState.STOPPED]
    with pytest.raises(UnfinishedError):
        await following.check_job()


async def test_a_commit_that_is_under_way_in_this_very_process() -> None:
    """Another job of the process takes it for what it is, and may go on beside it."""
    world = World.new()
    tasks = run_tasks(world, OWN)
    who = driver(world, OWN, "session")
    seen: list[JobState] = []

    class Looking:
        def around(self, call: Call) -> Call:
            async def around(op: Op) -> object:
                if op.name == "complete_upload":
                    seen.extend(s.state for s in await _next_job(who).job_statuses())
                    await _next_job(who).check_job()
                return await call(op)

            return around

    job = committer(world, OWN, Looking())
    job.host = who.job.host
    await job.commit_job(tasks)

    assert seen == [JobState.COMMITTING] * 2


async def test_processes_are_looked_for_in_a_thread() -> None:
    """What the system says of a process is read off the event loop."""
    world = World.new()
    await cut_short(world, OWN, "commit-start", OTHER)
    job, threads = committer(world, OWN), list[threading.Thread]()

    def is_running(process: str) -> bool:
        threads.append(threading.current_thread())
        return False

    job.host = replace(job.host, is_running=is_running)
    await job.job_statuses()

    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.parametrize(
    "after, state", [("commit-start", JobState.EXPIRED), ("commit-outcome", JobState.COMMITTED)]
)
def test_a_commit_of_another_host(after: str, state: JobState) -> None:
    """One that is cut short there is refused after an hour, whether or not it is decided."""

    async def run() -> list[tuple[JobState, bool]]:
        world = World.new()
        await cut_short(world, OWN, after, OTHER)
        job = committer(world, OWN)
        job.host = replace(job.host, name="driver-1")
        found = [status.unfinished for status in await job.job_statuses()]
        await job.check_job()
        await asyncio.sleep(2 * LONG)
        with pytest.raises(UnfinishedError):
            await job.check_job()
        assert found == [False]
        return [(status.state, status.unfinished) for status in await job.job_statuses()]

    assert run_virtual(run()) == [(state, True)]


async def test_two_attempts_of_a_job() -> None:
    """The second is not committed after the first, though late tasks make its directory again."""
    bucket = new_bucket()
    drivers = [open_committer(bucket, "magic", attempt=number) for number in range(2)]
    for job in drivers:
        await job.setup_job()
    ids = [drivers[1].layout.ids(task) for task in range(2)]
    await drivers[1].setup_task(ids[0][1])  # before the other attempt is committed
    await drivers[0].commit_job([await _task(drivers[0], 0)])
    elsewhere = open_committer(bucket, "magic", attempt=1)  # it has seen no sign of a living job
    await elsewhere.work(ids[0][1]).put("late-0", b"rows")
    late = [await elsewhere.commit_task(*ids[0]), await _task(elsewhere, 1)]
    before = keys(bucket)
    with pytest.raises(PreflightError, match="committed with other task attempts"):
        await drivers[1].commit_job(late)

    assert keys(bucket) == before


async def _task(job: Committer, number: int) -> TaskCommit:
    """Run one task of a job."""
    task_id, attempt_id = job.layout.ids(number)
    await job.setup_task(attempt_id)
    await job.work(attempt_id).put(f"part-{number}", b"rows")
    return await job.commit_task(task_id, attempt_id)

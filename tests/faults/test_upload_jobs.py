"""Whole jobs of uploads on a bucket in bad weather: exactly the files of the committed tasks."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping

import pytest

from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.registry import Committer, open_named
from asynccommit.errors import AsyncCommitError
from asynccommit.options.job import Options
from asynccommit.options.uploads import UploadOptions
from asynccommit.testing.models.s3.uploads import UploadRules
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.faults.test_uploads import Sky
from tests.support.uploads import DEST, HOST, SMALLEST

SEEDS = int(os.environ.get("ASYNCCOMMIT_SEEDS", "10"))
TASKS = 5
TRIES = 10


def committer(name: str, sky: Sky, local: str) -> Committer:
    """Return the committer of a job under this sky."""
    uploads = UploadOptions(
        part_size=SMALLEST, in_flight=3, unique_names=False, buffer_directory=local
    )
    options = Options(uploads=uploads)
    return open_named(
        name, JobContext(DEST, "1", 0, sky.store, options, HOST, lambda place: sky.store)
    )


def files_of(task: int) -> dict[str, bytes]:
    """Return what a task writes, whichever attempt: the names are the same."""
    return {f"day={n}/part-{task}": f"{task},{n};".encode() * n for n in range(4)}


async def run(job: Committer, task: int, attempt: int, files: Mapping[str, bytes]) -> TaskCommit:
    """Run one attempt of a task; one that fails is aborted, as far as that is possible."""
    task_id, attempt_id = job.layout.ids(task, attempt)
    try:
        await job.setup_task(attempt_id)
        work = job.work(attempt_id)
        await asyncio.gather(*(work.put(name, data) for name, data in files.items()))
        return await job.commit_task(task_id, attempt_id)
    except AsyncCommitError:
        await _abort(job, task_id, attempt_id)
        raise


async def _abort(job: Committer, task_id: str, attempt_id: str) -> None:
    try:
        await job.abort_task(task_id, attempt_id)
    except AsyncCommitError:
        return  # the job's clean-up finds it


async def until_done(job: Committer, task: int) -> TaskCommit:
    """Run attempts of a task, as a scheduler does, until one commits."""
    for attempt in range(TRIES):
        try:
            return await run(job, task, attempt, files_of(task))
        except AsyncCommitError as error:
            last = error
    raise last


async def storm(name: str, seed: int, local: str) -> None:
    """Run a job whose first task is run by somebody else as well, and is aborted there."""
    sky = Sky(seed, UploadRules(smallest_part=SMALLEST))
    job = committer(name, sky, local)
    await job.setup_job()
    commits = list(await asyncio.gather(*(until_done(job, task) for task in range(TASKS))))
    task_id, attempt_id = job.layout.ids(0, TRIES)
    await run(job, 0, TRIES, {"never": b"to be aborted"})
    await _abort(job, task_id, attempt_id)
    commits[0] = await run(job, 0, TRIES + 1, files_of(0))

    report = await job.commit_job(commits, strict=True)

    await sky.store.aclose()
    wanted = {f"out/t/{n}": data for task in range(TASKS) for n, data in files_of(task).items()}
    found = {key: each.data for key, each in sky.bucket.objects.items()}
    assert found.pop("out/t/_SUCCESS")
    assert found == wanted
    assert report.files == len(wanted)
    left = [each for each in sky.bucket.uploads.open.values() if each.parts and not each.aborted]
    assert left == []


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", ["magic", "directory"])
def test_jobs_in_a_storm(name: str, seed: int) -> None:
    """Scenario 44: lost responses, refusals and late effects leave each file once, and nothing."""
    with tempfile.TemporaryDirectory() as local:
        run_virtual(storm(name, seed, local))

"""A task of uploads dies at any of its writes: its job ends as if it had never been."""

from __future__ import annotations

import asyncio
import tempfile

import pytest

from asynccommit.commit.job_context import JobContext
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.registry import Committer, open_named
from asynccommit.options.job import Options
from asynccommit.options.uploads import UploadOptions
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Crash, Crashed, MortalS3Store, Process, When
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.uploads import DEST, HOST, JOB, SMALLEST, keys, new_bucket

PLACE = Address("s3", "data", "/")
FILES = {"day=1/a": b"more than one part", "day=2/b": b"", "c": b"more than one part again"}
FEWEST = 8
"""Writes of a task at least: fewer would show that it does not die where it should."""


def committer(name: str, store: Store, local: str) -> Committer:
    """Return a committer of the job, as one process has it."""
    uploads = UploadOptions(
        part_size=SMALLEST, in_flight=2, unique_names=False, buffer_directory=local
    )
    opening = JobContext(
        DEST, JOB, 0, Wrapped(store), Options(uploads=uploads, workers=2), HOST, _nowhere
    )
    return open_named(name, opening)


def _nowhere(place: Address) -> Wrapped:
    raise AssertionError(f"nothing is to be opened at {place}")


async def run_task(job: Committer, attempt: int, files: dict[str, bytes]) -> TaskCommit:
    """Set up, write and commit one attempt of the task."""
    task_id, attempt_id = job.layout.ids(0, attempt)
    await job.setup_task(attempt_id)
    for name, data in files.items():
        await job.work(attempt_id).put(name, data)
    return await job.commit_task(task_id, attempt_id)


async def die(name: str, bucket: S3Bucket, crash: Crash, local: str) -> bool:
    """Let a task die, and wait for what is still on the wire; say whether it came that far."""
    process = Process("task", crash)
    store = MortalS3Store(PLACE, {"bucket": bucket}, process)
    try:
        await run_task(committer(name, store, local), 0, FILES)
    except* Crashed:
        pass
    await asyncio.sleep(10)
    return process.dead


def with_parts(bucket: S3Bucket) -> list[str]:
    """Return the keys of uploads that are left and cost something."""
    return [upload.key for upload in bucket.uploads.open.values() if upload.parts]


@pytest.mark.rotate("when")
@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("name", ["magic", "directory"])
@pytest.mark.parametrize("again", [True, False], ids=["again", "aborted"])
def test_task_that_dies(name: str, when: When, again: bool) -> None:
    """Scenario 9: if it is run again the job has the second's files; if not, nothing is left.

    What a task began and had no time to write down has no part, and costs nothing.
    """

    async def scenario(write: int, local: str) -> bool:
        bucket = new_bucket()
        driver = committer(name, SimS3Store(PLACE, {"bucket": bucket}), local)
        await driver.setup_job()
        died = await die(name, bucket, Crash(write, when), local)
        if again:
            commit = await run_task(driver, 1, {"new": b"more than one part"})
            await driver.commit_job([commit], strict=True)
            assert keys(bucket) == ["out/t/_SUCCESS", "out/t/new"]
        else:
            await driver.abort_job()
            assert keys(bucket) == []
        assert with_parts(bucket) == []
        assert len(bucket.uploads.open) <= len(FILES)
        return died

    with tempfile.TemporaryDirectory() as local:
        write = 1
        while run_virtual(scenario(write, f"{local}/{write}")):
            write += 1
    assert write > FEWEST

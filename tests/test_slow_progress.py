"""Callbacks for progress that block, on each store: they cost no job its lease."""

from __future__ import annotations

import asyncio
import time

import pytest
from blockbuster import BlockBuster

from asynccommit import Options, Progress, open_job, sync
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.engine_places import Place, place
from tests.support.s3_servers import moto_url

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url", "place"]

LEASE = 2.0


class Slow:
    """A callback whose first call in the stage of renames takes longer than a lease."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, progress: Progress) -> None:
        """Keep the stage."""
        first = not self.heard
        if progress.stage == "job_stage_rename_files" or not first:
            self.heard.append(progress.stage)
            if first:
                time.sleep(1.5 * LEASE)
                self.heard.append("ended")


@pytest.mark.rotate("place")
def test_a_blocking_call_keeps_its_lease(place: Place, blockbuster: BlockBuster) -> None:
    """The job is committed, and the last call has ended when it returns."""
    blockbuster.deactivate()  # otherwise it, not the lease, would end the callback
    url, storage = place
    slow = Slow()
    opened = sync.open_job(
        url, storage_options=storage, options=Options(lease=LEASE), on_progress=slow
    )
    with opened as job, job.task(0) as task:
        task.put("part-0", b"x")

    assert job.report is not None
    assert (job.report.files, job.report.warnings) == (1, ())
    if slow.heard:  # with uploads there is no such stage, and no lease
        assert (slow.heard[1], slow.heard[-1]) == ("ended", "committer_commit_job")


@pytest.mark.rotate("place")
async def test_a_callback_of_asyncio_keeps_the_lease(
    place: Place, blockbuster: BlockBuster
) -> None:
    """The loop of the program goes on as well."""
    blockbuster.deactivate()
    url, storage = place
    slow, turns = Slow(), 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.05)
            turns += "ended" not in slow.heard and bool(slow.heard)

    turning = asyncio.ensure_future(turn())
    opened = open_job(url, storage_options=storage, options=Options(lease=LEASE), on_progress=slow)
    async with opened as job, job.task(0) as task:
        await task.put("part-0", b"x")
    turning.cancel()

    assert job.report is not None
    assert (job.report.files, job.report.warnings) == (1, ())
    assert turns > 1 or not slow.heard

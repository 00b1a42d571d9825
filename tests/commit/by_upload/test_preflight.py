"""What is refused before a commit begins, or is taken back for, because of other jobs."""

from __future__ import annotations

import asyncio

from asynccommit.options.job import Mode
from asynccommit.testing.models.crashes import Suspension
from asynccommit.testing.models.s3.objects import CompletedPart
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_others import ASLEEP, requests_of, seen, told
from tests.support.upload_jobs import OTHER, ROOT, Scenario, World, commit, driver, run_tasks

TABLE = Scenario("table", ({"m": "m", "p=1/m": "mm"},), mode=Mode.REPLACE_TABLE)
OVER = Scenario("over", ({"p=1/x": "same bytes", "z": "z"},), options={"delete_target_files": True})


def test_a_file_written_over_what_another_job_replaces() -> None:
    """Of a job that overwrites a file with the bytes it had, all stays or nothing (the etag is the
    same), while another replaces the table."""

    async def run() -> tuple[int, list[int]]:
        base = World.new()
        upload, parts = base.upload(f"{ROOT}/p=1/x", "same bytes")
        listed = [CompletedPart(at, part.etag) for at, part in enumerate(parts, 1)]
        base.bucket.complete("out/t/p=1/x", upload, listed)
        mine, theirs = run_tasks(base, TABLE), run_tasks(base, OVER, OTHER)
        refused, torn = 0, []
        count = await requests_of(base, TABLE, lambda who: commit(TABLE, who, mine))
        for request in range(count // 3, count, 3):
            world = base.copy()
            sleeper = driver(world, TABLE, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(commit(TABLE, sleeper, mine)))
            await asyncio.sleep(ASLEEP / 2)
            said = await told(commit(OVER, driver(world, OVER, "over", job_id=OTHER), theirs))
            first = await task
            there = seen(world)
            refused += "has not finished" in said
            both = "JobReport" in first and "JobReport" in said
            if both and (f"{ROOT}/p=1/x" in there) != (f"{ROOT}/z" in there):
                torn.append(request)
        return refused, torn

    refused, torn = run_virtual(run())
    assert refused
    assert torn == []

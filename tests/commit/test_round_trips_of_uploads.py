"""The budget of requests and round trips that a commit of uploads may take.

Counted in virtual time on the model of S3, where each request is answered after 30 ms. A test fails
when a request or a round trip is added; lower the budget when one is saved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field

import pytest

from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.layout import TaskCommit
from asynccommit.commit.layout_uploads import MagicLayout
from asynccommit.options.job import Options
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import Address
from asynccommit.testing.models.fault_rules import CLEAR, FaultDecision
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.seeds import Seeds
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.storms import host

ANSWER = 0.03
DEST = Address("s3", "data", "/table")
_VISIBLE = ("put", f"{DEST.path}/_SUCCESS")

Cost = tuple[int, int]
"""A number of requests, and how many of them one after the other."""


@dataclass
class Weather:
    """The weather of a bucket that answers each request after 30 ms."""

    seen: list[tuple[float, str, str]] = field(default_factory=list)

    def decide(self, op: str, path: str) -> FaultDecision:
        """Note a request."""
        self.seen.append((asyncio.get_running_loop().time(), op, path))
        return CLEAR._replace(before=ANSWER)


class Measured:
    """A job on a bucket with a fixed latency."""

    def __init__(self) -> None:
        seeds = Seeds(0)
        self.host = host(0)
        self.weather = Weather()
        self.messages: list[TaskCommit] = []
        bucket = S3Bucket("data", now=self.host.now, new_id=seeds.ids("bucket"))
        inner = SimS3Store(DEST, {"bucket": bucket, "weather": self.weather})
        self.store = wrap(inner, StoreSettings(seeds.rng("store"), clock=self.host.clock))
        layout = MagicLayout(DEST, "0123abcd-0000-4000-8000-000000000001")
        self.job = MagicCommitter(self.store, layout, Options(), self.host)

    async def cost(self, step: Awaitable[object]) -> Cost:
        """Return the cost of a step."""
        begin, requests = asyncio.get_running_loop().time(), len(self.weather.seen)
        await step
        trips = (asyncio.get_running_loop().time() - begin) / ANSWER
        return len(self.weather.seen) - requests, round(trips)

    async def run_task(self, task: int, files: int, partitions: int) -> Cost:
        """Write and commit a task; return the cost of its commit, which is kept as a message."""
        task_id, attempt_id = self.job.layout.ids(task)
        await self.job.setup_task(attempt_id)
        for number in range(files):
            name = f"day={number % partitions}/f{task}-{number}"
            await self.job.work(attempt_id).put(name, b"x")
        return await self.cost(self._commit_task(task_id, attempt_id))

    async def commit(self) -> tuple[Cost, int]:
        """Commit the job; return the cost, and the round trips until ``_SUCCESS`` is visible."""
        begin = asyncio.get_running_loop().time()
        cost = await self.cost(self.job.commit_job(self.messages))
        put = next(at for at, *request in self.weather.seen if tuple(request) == _VISIBLE)
        return cost, round((put + ANSWER - begin) / ANSWER)

    async def _commit_task(self, task_id: str, attempt_id: str) -> None:
        self.messages.append(await self.job.commit_task(task_id, attempt_id))


@pytest.mark.parametrize(
    "files, tasks, partitions, task, job, visible",
    [
        (1, 1, 1, (8, 8), (38, 33), 14),
        (20, 4, 5, (12, 8), (64, 33), 14),
        (200, 8, 10, (32, 9), (253, 42), 19),
    ],
)
def test_the_budget_of_a_job_of_uploads(
    files: int, tasks: int, partitions: int, task: Cost, job: Cost, visible: int
) -> None:
    """Requests and round trips of a task commit and a job commit, and to ``_SUCCESS``."""

    async def measure() -> tuple[Cost, Cost, int]:
        measured = Measured()
        await measured.job.setup_job()
        costs = [
            await measured.run_task(number, files // tasks, partitions) for number in range(tasks)
        ]
        return costs[0], *await measured.commit()

    assert run_virtual(measure()) == (task, job, visible)


def test_the_budget_of_a_setup_for_uploads() -> None:
    """Requests and round trips of setting up a job and a task."""

    async def measure() -> tuple[Cost, Cost]:
        measured = Measured()
        job = await measured.cost(measured.job.setup_job())
        return job, await measured.cost(measured.job.setup_task(measured.job.layout.ids(0)[1]))

    assert run_virtual(measure()) == ((10, 7), (6, 5))

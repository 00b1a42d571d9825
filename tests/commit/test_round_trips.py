"""The budget of requests and round trips that a commit may take.

Counted in virtual time on the models of the stores. A ``put`` of ADLS is four requests, as the real
store's. A test fails when a request or a round trip is added; lower the budget when one is saved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layout import Layout, TaskCommit
from asynccommit.options.job import Cleanup, OnCleanupFailure, Options
from asynccommit.results import JobReport
from asynccommit.simulate.run import run_commit
from asynccommit.simulate.setup import Setup
from asynccommit.stores.base import Store
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import CLEAR, Climate, FaultDecision
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.seeds import Seeds
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.storms import host

ANSWER = 0.03
DEST = parse_url("abfs://data@sim.dfs.core.windows.net/table")


@dataclass
class Weather:
    """The weather of an account that answers each request after 30 ms."""

    paths: list[str] = field(default_factory=list)
    seen: float = 0.0

    def decide(self, op: str, path: str) -> FaultDecision:
        """Note a request, and the time at which ``_SUCCESS`` is renamed to its place."""
        self.paths.append(path)
        if (op, path) == ("rename", "/table/_SUCCESS"):
            self.seen = asyncio.get_running_loop().time() + ANSWER
        return CLEAR._replace(before=ANSWER)


class Measured:
    """A job on an account with a fixed latency."""

    def __init__(self) -> None:
        seeds = Seeds(0)
        self.host = host(0)
        self.weather = Weather()
        self.messages: list[TaskCommit] = []
        self.account = AdlsAccount("sim", now=self.host.now, new_id=seeds.ids("account"))
        self.account.create_filesystem("data")
        options = {"account": self.account, "weather": self.weather}
        settings = StoreSettings(seeds.rng("store"), clock=self.host.clock)
        self.store: Store = wrap(SimStore(DEST, options), settings)
        self.job = ManifestCommitter(self.store, Layout(DEST, "job"), Options(), self.host)

    async def cost(self, step: Awaitable[object]) -> tuple[int, int]:
        """Return how many requests a step takes, and how many of them one after the other."""
        begin, requests = asyncio.get_running_loop().time(), len(self.weather.paths)
        await step
        trips = (asyncio.get_running_loop().time() - begin) / ANSWER
        return len(self.weather.paths) - requests, round(trips)

    async def run_task(self, task: int, files: int, partitions: int) -> tuple[int, int]:
        """Write and commit a task; return the cost of its commit, which is kept as a message."""
        task_id, attempt_id = self.job.layout.ids(task)
        base = await self.job.setup_task(attempt_id)
        for number in range(files):
            directory = f"{base}/day={number % partitions}"
            await self.store.mkdir(directory)
            await self.store.put(f"{directory}/f{task}-{number}", b"x")
        return await self.cost(self._commit_task(task_id, attempt_id))

    async def _commit_task(self, task_id: str, attempt_id: str) -> None:
        self.messages.append(await self.job.commit_task(task_id, attempt_id))


@pytest.mark.parametrize(
    "files, tasks, partitions, task, job, visible",
    [
        (1, 1, 1, (7, 7), (31, 15), 9),
        (20, 4, 5, (15, 7), (61, 15), 9),
        (200, 8, 10, (25, 7), (263, 22), 15),
    ],
)
def test_the_budget_of_a_job(
    files: int,
    tasks: int,
    partitions: int,
    task: tuple[int, int],
    job: tuple[int, int],
    visible: int,
) -> None:
    """Requests and round trips of a task commit and a job commit, and to ``_SUCCESS``."""

    async def measure() -> tuple[tuple[int, int], tuple[int, int], int]:
        measured = Measured()
        await measured.job.setup_job()
        costs = [
            await measured.run_task(number, files // tasks, partitions) for number in range(tasks)
        ]
        begin = asyncio.get_running_loop().time()
        cost = await measured.cost(measured.job.commit_job(measured.messages))
        return costs[0], cost, round((measured.weather.seen - begin) / ANSWER)

    assert run_virtual(measure()) == (task, job, visible)


def test_the_caller_is_told_when_the_marker_is_visible() -> None:
    """The caller may go on at once then, with the report, unless an option makes it wait."""

    async def measure(options: Options) -> tuple[int, int, list[int]]:
        measured = Measured()
        measured.job.options = options
        await measured.job.setup_job()
        await measured.run_task(0, 1, 1)
        told: list[JobReport] = []
        at: list[float] = []

        def tell(report: JobReport) -> None:
            told.append(report)
            at.append(asyncio.get_running_loop().time())

        _, trips = await measured.cost(measured.job.commit_job(measured.messages, on_visible=tell))
        late = [round((when - measured.weather.seen) / ANSWER) for when in at]
        return sum(report.files for report in told), trips, late

    assert run_virtual(measure(Options())) == (1, 15, [0])
    fails = Options(on_cleanup_failure=OnCleanupFailure.FAIL)
    for waiting in (Options(cleanup=Cleanup.WAIT), fails):
        assert run_virtual(measure(waiting)) == (0, 15, [])


def test_a_callback_that_fails_does_not_fail_the_commit() -> None:
    """What the caller makes of the report is a warning, because the job is committed."""

    async def commit() -> JobReport:
        measured = Measured()
        await measured.job.setup_job()
        await measured.run_task(0, 1, 1)
        return await measured.job.commit_job(measured.messages, on_visible=lambda _: 1 / 0)

    report = run_virtual(commit())
    assert report.files == 1
    assert any("on_visible failed: ZeroDivisionError" in text for text in report.warnings)


def test_the_budget_of_a_setup() -> None:
    """Requests and round trips of setting up a job and a task are these."""

    async def measure() -> tuple[tuple[int, int], tuple[int, int]]:
        measured = Measured()
        job = await measured.cost(measured.job.setup_job())
        return job, await measured.cost(measured.job.setup_task(measured.job.layout.ids(0)[1]))

    assert run_virtual(measure()) == ((7, 4), (2, 2))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "store, files, partitions, budget",
    [
        ("gcs", 1, 1, (49, 29)),
        ("gcs", 20, 5, (84, 29)),
        ("gcs", 200, 10, (284, 35)),
        ("gcs-hns", 1, 1, (59, 39)),
        ("gcs-hns", 20, 5, (113, 40)),
        ("gcs-hns", 200, 10, (393, 47)),
    ],
)
def test_the_budget_of_a_commit_in_a_bucket(
    store: str, files: int, partitions: int, budget: tuple[int, int]
) -> None:
    """Requests and round trips of a job commit in a bucket, with and without folders."""
    climate = Climate(latency=Latency(first=ANSWER))
    figures = run_commit(Setup(files, partitions, partitions, climate, store=store))
    assert (sum(figures.requests.values()), round(figures.seconds / ANSWER)) == budget

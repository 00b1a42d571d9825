"""The budget of requests and round trips that a commit may take.

Counted in virtual time on the models of the stores. A ``put`` of ADLS is four requests, as the real
store's. A test fails when a request or a round trip is added; lower the budget when one is saved.
"""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.options.job import Cleanup, OnCleanupFailure, Options
from asynccommit.results import JobReport
from asynccommit.simulate.run import run_commit
from asynccommit.simulate.setup import Setup
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.round_trips import ANSWER, Cost, MeasuredExpress, MeasuredJob


@pytest.mark.parametrize(
    "files, tasks, partitions, task, job, visible",
    [
        (1, 1, 1, (6, 6), (31, 15), 9),
        (20, 4, 5, (10, 6), (61, 15), 9),
        (200, 8, 10, (15, 6), (263, 16), 9),
    ],
)
def test_the_budget_of_a_job(
    files: int,
    tasks: int,
    partitions: int,
    task: Cost,
    job: Cost,
    visible: int,
) -> None:
    """Requests and round trips of a task commit and a job commit, and to ``_SUCCESS``."""

    assert run_virtual(MeasuredJob().run(files, tasks, partitions)) == (task, job, visible)


def test_the_caller_is_told_when_the_marker_is_visible() -> None:
    """The caller may go on at once then, with the report, unless an option makes it wait."""

    async def measure(options: Options) -> tuple[int, int, list[int]]:
        measured = MeasuredJob()
        measured.job.options = options
        await measured.job.setup_job()
        await measured.run_task(0, 1, 1)
        told: list[JobReport] = []
        at: list[float] = []

        def tell(report: JobReport) -> None:
            told.append(report)
            at.append(asyncio.get_running_loop().time())

        _, trips = await measured.cost(measured.job.commit_job(measured.messages, on_visible=tell))
        late = [round((when - measured.weather.visible()) / ANSWER) for when in at]
        return sum(report.files for report in told), trips, late

    assert run_virtual(measure(Options())) == (1, 15, [0])
    fails = Options(on_cleanup_failure=OnCleanupFailure.FAIL)
    for waiting in (Options(cleanup=Cleanup.WAIT), fails):
        assert run_virtual(measure(waiting)) == (0, 15, [])


def test_a_callback_that_fails_does_not_fail_the_commit() -> None:
    """What the caller makes of the report is a warning, because the job is committed."""

    async def commit() -> JobReport:
        measured = MeasuredJob()
        await measured.job.setup_job()
        await measured.run_task(0, 1, 1)
        return await measured.job.commit_job(measured.messages, on_visible=lambda _: 1 / 0)

    report = run_virtual(commit())
    assert report.files == 1
    assert any("on_visible failed: ZeroDivisionError" in text for text in report.warnings)


def test_the_budget_of_a_setup() -> None:
    """Requests and round trips of setting up a job and a task are these."""

    async def measure() -> tuple[Cost, Cost]:
        measured = MeasuredJob()
        job = await measured.cost(measured.job.setup_job())
        return job, await measured.cost(measured.job.setup_task(measured.job.layout.ids(0)[1]))

    assert run_virtual(measure()) == ((7, 4), (2, 2))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "store, files, partitions, budget",
    [
        ("gcs", 1, 1, (49, 29)),
        ("gcs", 20, 5, (84, 29)),
        ("gcs", 200, 10, (284, 29)),
        ("gcs-hns", 1, 1, (59, 39)),
        ("gcs-hns", 20, 5, (113, 39)),
        ("gcs-hns", 200, 10, (393, 42)),
    ],
)
def test_the_budget_of_a_commit_in_a_bucket(
    store: str, files: int, partitions: int, budget: tuple[int, int]
) -> None:
    """Requests and round trips of a job commit in a bucket, with and without folders."""
    climate = Climate(latency=Latency(first=ANSWER))
    figures = run_commit(Setup(files, partitions, partitions, climate, store=store))
    assert (sum(figures.requests.values()), round(figures.seconds / ANSWER)) == budget


@pytest.mark.parametrize(
    "files, tasks, partitions, task, job, visible",
    [
        (1, 1, 1, (4, 4), (54, 38), 22),
        (20, 4, 5, (12, 4), (99, 38), 22),
        (200, 8, 10, (37, 4), (468, 43), 27),
    ],
)
def test_the_budget_of_a_commit_in_a_directory_bucket(
    files: int, tasks: int, partitions: int, task: Cost, job: Cost, visible: int
) -> None:
    """The same on S3 that renames: a HEAD of each file, because listings show no checksums."""

    assert run_virtual(MeasuredExpress().run(files, tasks, partitions)) == (task, job, visible)

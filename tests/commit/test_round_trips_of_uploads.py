"""The budget of requests and round trips that a commit of uploads may take.

Counted in virtual time on the model of S3, where each request is answered after 30 ms. A test fails
when a request or a round trip is added; lower the budget when one is saved.
"""

from __future__ import annotations

import pytest

from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.round_trips import Cost, MeasuredBlocks, MeasuredUploads


@pytest.mark.parametrize(
    "files, tasks, partitions, task, job, visible",
    [
        (1, 1, 1, (5, 5), (28, 23), 14),
        (20, 4, 5, (5, 5), (54, 23), 14),
        (200, 8, 10, (5, 5), (243, 28), 14),
    ],
)
def test_the_budget_of_a_job_of_uploads(
    files: int, tasks: int, partitions: int, task: Cost, job: Cost, visible: int
) -> None:
    """Requests and round trips of a task commit and a job commit, and to ``_SUCCESS``."""

    assert run_virtual(MeasuredUploads().run(files, tasks, partitions)) == (task, job, visible)


@pytest.mark.parametrize(
    "files, tasks, partitions, task, job, visible",
    [
        (1, 1, 1, (8, 6), (42, 29), 18),
        (20, 4, 5, (16, 6), (112, 29), 18),
        (200, 8, 10, (56, 6), (669, 38), 23),
    ],
)
def test_the_budget_of_a_job_of_block_lists(
    files: int, tasks: int, partitions: int, task: Cost, job: Cost, visible: int
) -> None:
    """The same on a flat account of Azure, where each deletion is a request."""

    assert run_virtual(MeasuredBlocks().run(files, tasks, partitions)) == (task, job, visible)


def test_the_budget_of_a_write_of_one_file() -> None:
    """Requests of setting up, writing and committing a job of one file."""

    async def measure() -> int:
        measured = MeasuredUploads()
        await measured.run(1, 1, 1)
        return len(measured.weather.seen)

    assert run_virtual(measure()) == 55


def test_the_budget_of_a_setup_for_uploads() -> None:
    """Requests and round trips of setting up a job and a task."""

    async def measure() -> tuple[Cost, Cost]:
        measured = MeasuredUploads()
        job = await measured.cost(measured.job.setup_job())
        return job, await measured.cost(measured.job.setup_task(measured.job.layout.ids(0)[1]))

    assert run_virtual(measure()) == ((10, 7), (6, 5))

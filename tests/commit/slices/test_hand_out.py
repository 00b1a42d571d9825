"""Handing out slices: who does the work, and how a commit ends whose workers fail."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from asynccommit.commit.orders import GRANT, Order, Slice, Tally, WorkerLostError
from asynccommit.commit.planning import plan_file
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    DeniedError,
    PreflightError,
    UnsupportedError,
)
from asynccommit.results import JobReport
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import commit, driver
from tests.crash.recovery import Hand, Job, has_begun, ready
from tests.crash.scenarios import FRESH
from tests.crash.workers import SimRunner
from tests.support.crashes import ModelWorld


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice have two rows."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)


@dataclass
class Failing(SimRunner):
    """A runner whose workers fail.

    Attributes:
        error: the end of each slice, or of the start.
        early: whether none can be started.
        tried: the slices that were submitted.
    """

    error: Exception = field(default_factory=lambda: WorkerLostError("it is gone"))
    early: bool = False
    tried: list[Slice] = field(default_factory=list)

    async def open(self, order: Order) -> None:
        """See ``Runner.open``."""
        if self.early:
            raise self.error

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """See ``Runner.submit``."""
        self.tried.append(piece)
        raise self.error


class Changed(SimRunner):
    """A runner whose slices have the digests of other chunks."""

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """See ``Runner.submit``."""
        return await super().submit(order, replace(piece, digest="sha256:" + "0" * 64))


async def committed(
    runner: type[SimRunner] | Any, world: str = "adls", **options: Any
) -> tuple[Job, ModelWorld, Any, JobReport | AsyncCommitError]:
    """Commit a job with a runner; return what came of it."""
    job, made = await ready(FRESH, world)
    who = driver(made, FRESH, "driver", options=options)
    who.job._runner = there = runner(made)
    try:
        return job, made, there, await commit(FRESH, who, job.tasks)
    except AsyncCommitError as error:
        return job, made, there, error


def test_workers_that_cannot_start_are_a_warning() -> None:
    """The driver moves the files alone, and says why."""

    async def run() -> tuple[list[str], list[str]]:
        error = UnsupportedError("a worker has asynccommit 1.0, not 2.0")
        job, made, runner, report = await committed(
            lambda world: Failing(world, early=True, error=error)
        )
        assert isinstance(report, JobReport)
        assert not runner.tried
        return job.committed(made.tree()), [*report.warnings]

    problems, warnings = run_virtual(run())
    assert problems == []
    why = "a worker has asynccommit 1.0, not 2.0"
    assert warnings == [f"asynccommit.workers=sim: {why}; this process moves all files"]


@pytest.mark.parametrize(
    "world,options,why",
    [
        ("hdfs", {}, "do not name the file that they move"),
        ("adls", {"lease": 60}, "asynccommit.lease is below 280 seconds"),
    ],
)
def test_what_workers_must_not_do_is_done_alone(
    world: str, options: dict[str, Any], why: str
) -> None:
    """Where a late request could move another file, no worker sends any."""

    async def run() -> tuple[list[str], str]:
        job, made, runner, report = await committed(SimRunner, world, **options)
        assert isinstance(report, JobReport)
        assert not runner.processes
        return job.committed(made.tree()), " ".join(report.warnings)

    problems, warning = run_virtual(run())
    assert problems == []
    assert why in warning


@pytest.mark.parametrize("options", [{"validate": False}, {"validate_sample": 1}])
def test_workers_without_validation_are_refused(options: dict[str, Any]) -> None:
    """The driver's own listing is what shows that workers did what they say."""

    async def run() -> bool:
        _, made, _, error = await committed(SimRunner, **options)
        assert isinstance(error, PreflightError)
        assert "workers move files only if" in str(error)
        return has_begun(made.tree())

    assert run_virtual(run()) is False


def test_a_slice_is_handed_out_four_times() -> None:
    """Then the commit fails, names the part of the plan, and can be resumed."""

    async def run() -> list[str]:
        job, made, runner, error = await committed(Failing)
        assert isinstance(error, CommitError)
        assert "4 workers were lost at part 0 of the plan: it is gone" in str(error)
        assert max(piece.attempt for piece in runner.tried) == 3
        await Hand(job, made, "second").act("resume")
        return job.committed(made.tree())

    assert run_virtual(run()) == []


@pytest.mark.parametrize("kills", [True, False])
def test_an_owner_outlives_workers_that_may_be_at_work(kills: bool) -> None:
    """Whoever finds its stop takes the commit over at once, and must meet no worker."""

    async def run() -> float:
        clock = asyncio.get_running_loop().time
        begin = clock()
        *_, error = await committed(lambda world: Failing(world, kills=kills))
        assert isinstance(error, CommitError)
        return clock() - begin

    assert (run_virtual(run()) < GRANT) is kills


def test_a_worker_refuses_another_chunk() -> None:
    """Its digest is a part of the order."""

    async def run() -> list[str]:
        job, made, _, report = await committed(Changed)
        assert isinstance(report, CommitError)
        assert "is not the plan that the commit record names" in str(report)
        return [path for path in made.tree() if path in job.files]

    assert run_virtual(run()) == []


def test_the_first_error_of_the_store_stops_new_slices() -> None:
    """A request that the store refuses is not tried again by another worker."""

    async def run() -> int:
        error = DeniedError("rename", "/table/x", "no")
        _, _, runner, failed = await committed(lambda world: Failing(world, error=error))
        assert isinstance(failed, CommitError)
        assert "no" in str(failed)
        return len(runner.tried)

    assert run_virtual(run()) <= 3

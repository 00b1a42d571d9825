"""The meter: stages take the time of the loop, and progress reports never fail a commit."""

from __future__ import annotations

import asyncio
import logging

import pytest

from asynccommit.commit.meter import CommitMeter, Progress
from asynccommit.testing.models.virtual_loop import run_virtual


def test_stages_add_up() -> None:
    """A stage that runs twice has both times; the outer stage is current again after each."""

    async def measure() -> CommitMeter:
        meter = CommitMeter("job", None, lambda text: None)
        with meter.timed("outer"):
            for _ in range(2):
                with meter.timed("inner"):
                    await asyncio.sleep(2)
                assert meter.stage == "outer"
        return meter

    meter = run_virtual(measure())
    assert (meter.seconds["inner"], meter.seconds["outer"]) == (4.0, 4.0)
    assert meter.stage == ""


def test_a_failed_stage_stays_the_current_one() -> None:
    """An error names the innermost stage that failed, and the statistics count its failure."""

    async def fail() -> CommitMeter:
        meter = CommitMeter("job", None, lambda text: None)
        with pytest.raises(ValueError, match="no"), meter.timed("outer"), meter.timed("inner"):
            raise ValueError("no")
        return meter

    meter = run_virtual(fail())
    assert meter.stage == "inner"
    assert meter.statistics.counters["inner.failures"] == 1


def test_progress_is_reported_a_few_times_a_second() -> None:
    """Ten thousand steps in a second make about ten reports, with the items done so far."""
    seen: list[Progress] = []

    async def work() -> None:
        meter = CommitMeter("job", seen.append, lambda text: None)
        with meter.timed("stage", 10_000):
            for _ in range(1_000):
                await asyncio.sleep(0.001)
                meter.step(10)

    run_virtual(work())
    assert 10 <= len(seen) <= 13
    assert (seen[-1].done, seen[-1].total, seen[-1].stage) == (10_000, 10_000, "stage")


def test_a_callback_that_fails_is_called_no_more() -> None:
    """A broken callback gives one warning, and the stage goes on."""
    warnings: list[str] = []
    calls: list[Progress] = []

    def broken(progress: Progress) -> None:
        calls.append(progress)
        raise BrokenPipeError("closed")

    async def work() -> None:
        meter = CommitMeter("job", broken, warnings.append)
        with meter.timed("one"):
            meter.step(100)
        meter.report()

    run_virtual(work())
    assert len(calls) == 1
    assert warnings == ["progress reporting stopped: BrokenPipeError: closed"]


def test_long_stages_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A stage of a second or more has a line at INFO, a shorter one has none."""
    caplog.set_level(logging.INFO, "asynccommit")

    async def work() -> None:
        meter = CommitMeter("job", None, lambda text: None)
        with meter.timed("committer_commit_job"):
            for name, seconds in (("short", 0.9), ("long", 1.5)):
                with meter.timed(name):
                    await asyncio.sleep(seconds)
            with pytest.raises(ValueError, match="no"), meter.timed("broken"):
                await asyncio.sleep(2)
                raise ValueError("no")

    run_virtual(work())
    assert caplog.messages == ["job job: long took 1.5 s", "job job: broken failed after 2.0 s"]

"""Reports of a job commit: result, failure and rollback."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import anyio

from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.errors import job_commit_error, named, noting_commit
from asynccommit.commit.job.reports import report_on
from asynccommit.commit.job.timeline import begin_timeline, timeline_of
from asynccommit.errors import (
    CommitError,
    LeaseLostError,
    OwnedError,
)
from asynccommit.redact import Redacted
from asynccommit.results import AbortReport, JobReport

log = logging.getLogger(__name__)

RunT = TypeVar("RunT", bound=CommitContext)

CLEANUP_GRACE_SECONDS = 30.0
"""Seconds that a cancelled commit may take to report its progress."""


@asynccontextmanager
async def reporting(
    run: RunT, *, stopped: Callable[[RunT, BaseException], Awaitable[None]], save: bool = True
) -> AsyncIterator[None]:
    """Turn any failure into one error and one report.

    Args:
        run: the commit.
        stopped: lets others know that this process has stopped.
        save: write a report of the failure.
    """
    layout = run.layout
    does = "commit" if save else "dry run"
    log.info("job %s: %s under %s", layout.job_id, does, layout.dest, extra=layout.log_fields)
    begin_timeline(run)
    async with _ended_in_one_error(run, stopped, save=save):
        yield


@asynccontextmanager
async def _ended_in_one_error(
    run: RunT, stopped: Callable[[RunT, BaseException], Awaitable[None]], *, save: bool
) -> AsyncIterator[None]:
    layout = run.layout
    try:
        with run.meter.timed("committer_commit_job"):
            yield
    except Exception as error:
        run = run.now
        failure = job_commit_error(run, error)
        log.info("the commit failed: %s", Redacted(failure), extra=layout.log_fields)
        await stopped(run, failure)
        if save and not isinstance(failure, OwnedError | LeaseLostError):
            await report_on(run, run.meter.stage, (), failure)
        await run.meter.end()
        raise failure from failure.__cause__
    except BaseException as error:  # cancelled, or the process is told to end
        run, told = run.now, (layout.job_id, run.meter.stage)
        log.info("job %s: the commit was stopped in %s", *told, extra=layout.log_fields)
        with anyio.move_on_after(CLEANUP_GRACE_SECONDS, shield=True):
            await stopped(run, error)
            if save:
                await report_on(run, run.meter.stage, (), error)
        with noting_commit(run):
            raise


async def undo_half_way(
    run: CommitContext,
    error: BaseException,
    roll_back: Callable[[], Awaitable[AbortReport]],
    say: Callable[[AbortReport], object],
) -> None:
    """Roll back a failed commit, and add the result to its error.

    Args:
        run: the commit.
        error: what stopped it; where that is another owner, there is nothing to undo here.
        roll_back: does it.
        say: called with the result of a finished rollback.
    """
    half_way = run.phase is Phase.CHANGING and run.now.identity.epoch > 0
    if not half_way or isinstance(error, LeaseLostError | OwnedError):
        return
    patience = None if isinstance(error, Exception) else CLEANUP_GRACE_SECONDS
    try:
        with anyio.move_on_after(patience, shield=True) as scope:
            undone = await roll_back()
    except CommitError as problem:
        error.add_note(f"and it could not be rolled back: {problem}")
    else:
        if not scope.cancelled_caught:
            say(undone)


def rolled_back_first(report: JobReport) -> str:
    """Return why a job was not committed: it was rolled back."""
    text = "it was being rolled back, and that is now finished"
    if report.not_restored:
        text += f", except for these paths: {named(report.not_restored)}"
    return f"{text}: run it again"


async def report_ended(run: CommitContext, report: JobReport) -> JobReport:
    """Save the summary of an ended commit; return the report."""
    run, error = run.now, None
    if report.rolled_back:
        error = CommitError(run.layout.job_id, "job_stage_abort", (), "it was rolled back")
    report = replace(report, timeline=timeline_of(run))
    with noting_commit(run):
        saved = await report_on(run, "committer_commit_job", report.filenames, error, report=report)
        await run.meter.end()
    seconds = run.meter.seconds["committer_commit_job"]
    done = "rolled back" if report.rolled_back else "committed"
    told = run.layout.job_id, done, report.files, "s"[report.files == 1 :], report.bytes, seconds
    text = "job %s: %s: %d file%s, %d bytes, %.1f s"
    log.info(text, *told, extra=run.layout.log_fields)
    return replace(
        report,
        report=saved,
        seconds=seconds,
        warnings=tuple(run.warnings),
    )


def bare_report(run: CommitContext) -> JobReport:
    """Return the report of a job commit, without what its plan tells."""
    traffic = run.environment.traffic()
    return JobReport(
        job_id=run.layout.job_id,
        dest=str(run.layout.dest),
        seconds=run.meter.seconds.get("committer_commit_job", 0.0),
        stages=dict(run.meter.seconds),
        requests={
            name: counted.n for name, counted in run.environment.counted.items() if counted.n
        },
        refused=traffic.refused,
        recovered=traffic.recovered,
        waited=traffic.waited,
        warnings=tuple(run.warnings),
        success=run.promise.success,
        resumed=run.identity.epoch > 1,
        epoch=max(run.identity.epoch, 1),
        timeline=timeline_of(run),
    )

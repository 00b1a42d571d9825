"""The steps that committing, resuming and rolling back a job have in common, in their order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio

from asynccommit.commit.by_rename.cleanup import CleanupResult, clean_up
from asynccommit.commit.by_rename.directories import make_directories, move_aside, remove_emptied
from asynccommit.commit.by_rename.job_reports import keep_manifests, report_on
from asynccommit.commit.by_rename.lease import close_place, say_stopped
from asynccommit.commit.by_rename.outcome import decide
from asynccommit.commit.by_rename.plan import SAMPLE, Plan
from asynccommit.commit.by_rename.reconcile import Settled
from asynccommit.commit.by_rename.rename_directories import carry
from asynccommit.commit.by_rename.rename_files import rename_files
from asynccommit.commit.by_rename.success_marker import write_success
from asynccommit.commit.by_rename.validate import validate_output
from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.errors import job_commit_error, named, noting_commit
from asynccommit.errors import (
    CommitError,
    LeaseLostError,
    OwnedError,
    PreconditionError,
    StoreError,
)
from asynccommit.formats.commit_owner import Outcome as Ending
from asynccommit.results import AbortReport, JobReport
from asynccommit.stores.tree import is_there

CLEANUP_GRACE_SECONDS = 30.0
"""Seconds that a cancelled commit may take to say how far it came."""


async def change(run: CommitContext, plan: Plan, settled: Settled) -> None:
    """Make what ``plan`` says true, and decide that the job is committed."""
    await move_aside(run, plan.aside)
    await carry(run, plan)
    await make_directories(run, plan)
    await rename_files(run, plan, settled)
    await validate_output(run, plan)
    await decide(run, Ending.COMMITTED)


async def conclude(run: CommitContext, plan: Plan) -> None:
    """Tell readers that the job is committed, and delete what it needs no more."""
    await keep_manifests(run)
    await write_success(run, plan)
    await remove_emptied(run, plan)
    await close_place(run, Ending.COMMITTED)
    if not await clean(run) and await is_there(run.store, run.layout.record):
        await say_stopped(run)


async def clean(run: CommitContext) -> bool:
    """Clean up, and return whether that was done; whether a failure is an error is an option."""
    ignored = run.options.cleanup_failures_ignored
    stage = run.stage
    try:
        return await clean_up(run) is not CleanupResult.DISABLED
    except LeaseLostError:
        run.stage = stage
        run.warn(f"{run.layout.job_dir} is left to the process that has taken its clean-up over")
        return False
    except StoreError as error:
        if ignored is False:
            raise
        run.stage = stage
        if ignored is None:
            kept = isinstance(error, PreconditionError)
            how = "is kept" if kept else "could not be deleted, delete it by hand"
            run.warn(f"{run.layout.job_dir} {how}: {error}")
        return False


@asynccontextmanager
async def reporting(
    run: CommitContext, *, save: bool = True, owned: bool = True
) -> AsyncIterator[None]:
    """Turn every failure into one error and one report, a cancelled commit's too.

    Where commits have owners (``owned``) this one says that it has stopped, so that nobody waits
    for its lease.
    """
    try:
        with run.timed("committer_commit_job"):
            yield
    except Exception as error:
        failure = job_commit_error(run, error)
        if owned:
            await say_stopped(run, failure)
        if save and not isinstance(failure, OwnedError | LeaseLostError):
            await report_on(run, run.stage, (), failure)
        raise failure from failure.__cause__
    except BaseException as error:  # cancelled, or the process is told to end
        with anyio.move_on_after(CLEANUP_GRACE_SECONDS, shield=True):
            if owned:
                await say_stopped(run, error)
            if save:
                await report_on(run, run.stage, (), error)
        with noting_commit(run):
            raise


async def undo_half_way(
    run: CommitContext,
    error: BaseException,
    roll_back: Callable[[], Awaitable[AbortReport]],
    say: Callable[[AbortReport], object],
) -> None:
    """Roll back a commit that failed half-way, and let its error say what became of that.

    Args:
        run: the commit.
        error: what stopped it; where that is another owner, there is nothing to undo here.
        roll_back: does it.
        say: is told of one that was done to its end.
    """
    half_way = run.phase is Phase.CHANGING and run.epoch > 0
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
    """Return why a job that was to be committed was not: a rollback of it has been finished."""
    text = "it was being rolled back, which is done now"
    if report.left:
        text += f", though these are not as they were before: {named(report.left)}"
    return f"{text}: run it again"


async def report_ended(run: CommitContext, report: JobReport) -> JobReport:
    """Save the summary of a commit that has ended, and return ``report`` with its place."""
    error = None
    if report.rolled_back:
        error = CommitError(run.layout.job_id, "job_stage_abort", (), "it was rolled back")
    with noting_commit(run):
        saved = await report_on(run, "committer_commit_job", report.filenames, error)
    return replace(
        report,
        report=saved,
        seconds=run.seconds["committer_commit_job"],
        warnings=tuple(run.warnings),
    )


def job_report(run: CommitContext, plan: Plan | None = None) -> JobReport:
    """Return what a job commit has done, or would do."""
    traffic = run.traffic()
    report = JobReport(
        job_id=run.layout.job_id,
        dest=str(run.layout.dest),
        seconds=run.seconds.get("committer_commit_job", 0.0),
        stages=dict(run.seconds),
        requests={name: counted.n for name, counted in run.counted.items() if counted.n},
        refused=traffic.refused,
        recovered=traffic.recovered,
        waited=traffic.waited,
        warnings=tuple(run.warnings),
        success=run.success,
        resumed=run.epoch > 1,
        epoch=max(run.epoch, 1),
    )
    if plan is None:
        return report
    loaded = plan.loaded
    moved = [aside.path for aside in (*plan.replaced, *plan.aside)]
    moved = [path for path in moved if path != run.layout.success]
    return replace(
        report,
        files=loaded.files,
        bytes=loaded.bytes,
        tasks=dict(loaded.tasks),
        directories=len(plan.make),
        replaced=len(moved),
        replacing=tuple(moved[:SAMPLE]),
        replaced_files=plan.old.count,
        filenames=tuple(plan.sample),
        ignored=tuple(run.layout.url(path) for path in loaded.ignored),
    )

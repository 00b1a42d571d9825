"""The steps of a commit by renames, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.job.reporting import bare_report
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.lease import close_place, require_place, say_stopped
from asynccommit.commit.paths import SAMPLE, leaves
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.steps.cleanup import clean_up, find_attempts
from asynccommit.commit.steps.kept_manifests import keep_manifests
from asynccommit.commit.steps.make_directories import MakeDirectories, remove_emptied
from asynccommit.commit.steps.move_aside import MoveAside
from asynccommit.commit.steps.rename_directories import RenameDirectories
from asynccommit.commit.steps.rename_files import RenameFiles, StageFiles
from asynccommit.commit.steps.step import CommitStep
from asynccommit.commit.steps.success_marker import write_success
from asynccommit.commit.steps.swap import SwapUnits, restore_late
from asynccommit.errors import LeaseLostError, PreconditionError, StoreError
from asynccommit.formats.commit_owner import Outcome as CompletionFacts
from asynccommit.options.job import OnCleanupFailure
from asynccommit.results import JobReport
from asynccommit.runtime.concurrency import alongside, both
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there

STEPS: Sequence[CommitStep] = (
    MoveAside(),
    RenameDirectories(),
    MakeDirectories(),
    StageFiles(),
    SwapUnits(),
    RenameFiles(),
)
"""The steps of a commit, in order; a rollback undoes the last one first."""


async def conclude(run: CommitContext, plan: Plan, marker: Info | None = None) -> None:
    """Tell readers that the job is committed, and delete its files."""
    await keep_manifests(run)
    _, (_, attempts) = await alongside(
        lambda: _show(run, plan, marker),
        lambda: both(lambda: require_place(run), lambda: find_attempts(run)),
    )
    await restore_late(run, plan)
    await close_place(run, CompletionFacts.COMMITTED, looked=True)
    if not await clean(run, attempts) and await is_there(run.store, run.layout.record):
        await say_stopped(run)


async def _show(run: CommitContext, plan: Plan, marker: Info | None) -> None:
    """Write ``_SUCCESS``, and tell the caller."""
    await write_success(run, plan, marker)
    await remove_emptied(run, plan)
    await run.end(CompletionFacts.COMMITTED, plan.loaded.files)
    run.tell_visible(lambda: job_report(run, plan))


async def clean(run: CommitContext, attempts: Sequence[Info] | None = None) -> bool:
    """Clean up; return whether it worked, or raise if so configured.

    ``attempts`` is what ``find_attempts`` has found.
    """
    action = run.options.on_cleanup_failure
    stage = run.meter.stage
    try:
        return await clean_up(run, attempts) is not CleanupResult.DISABLED
    except LeaseLostError:
        run.meter.stage = stage
        run.warn(f"{run.layout.job_dir} is left to the process that took its clean-up over")
        return False
    except StoreError as error:
        if isinstance(error, PreconditionError) and await directory_of(run).restore_begun(run):
            return await clean(run)  # an abort had the directory
        if action is OnCleanupFailure.FAIL:
            raise
        run.meter.stage = stage
        if action is OnCleanupFailure.WARN:
            kept = isinstance(error, PreconditionError)
            how = "is kept" if kept else "could not be deleted; delete it by hand"
            run.warn(f"{run.layout.job_dir} {how}: {error}")
        return False


def job_report(run: CommitContext, plan: Plan | None = None) -> JobReport:
    """Return what a job commit has done, or would do."""
    if plan is None:
        return bare_report(run)
    loaded = plan.loaded
    run.note_sizes(loaded.sizes)
    report = bare_report(run)
    moved = [aside.path for aside in (*plan.replaced, *plan.aside)]
    moved = [path for path in moved if path != run.layout.success]
    return replace(
        report,
        files=loaded.files,
        bytes=loaded.bytes,
        tasks=dict(loaded.tasks),
        directories=len(leaves([*plan.make, *plan.came])),
        replaced=len(moved),
        replacing=tuple(moved[:SAMPLE]),
        replaced_files=plan.old.count,
        filenames=tuple(plan.sample),
        ignored=tuple(run.layout.url(path) for path in loaded.ignored),
        workers={name: dict(work) for name, work in plan.workers.items()},
    )

"""Continue an interrupted commit: finish it or roll it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asynccommit.commit.by_rename.record import recorded_options, refuse_other_attempts
from asynccommit.commit.by_rename.steps import STEPS, clean, conclude, job_report
from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.errors import lease_lost
from asynccommit.commit.job.cleanup import remove_if_empty
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.ownership.lease import Lease, close_place
from asynccommit.commit.ownership.outcome import decide, find_decision
from asynccommit.commit.ownership.own_record import require_own_record
from asynccommit.commit.ownership.status import CommitState
from asynccommit.commit.ownership.takeover import refuse_in_flight, take_over
from asynccommit.commit.paths import within
from asynccommit.commit.planning.concurrent_jobs import look_before_going_on
from asynccommit.commit.planning.jobs import status_of
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.plan_file import load_plan
from asynccommit.commit.steps.cleanup import begun_attempts, clean_up_rolled_back
from asynccommit.commit.steps.rename_files import reconcile
from asynccommit.commit.steps.runner import backward, forward, settle
from asynccommit.commit.steps.step import RollbackResult
from asynccommit.errors import CommitError, CommittedError, DeniedError, UnsupportedError
from asynccommit.formats.commit_owner import Decision
from asynccommit.formats.commit_owner import Outcome as CompletionFacts
from asynccommit.formats.commit_record import CommitRecord
from asynccommit.results import AbortReport, JobReport, JobState, JobStatus
from asynccommit.stores.base import Info
from asynccommit.stores.urls import decode_uri


async def resume(run: CommitContext, standing: CommitState, *, force: bool = False) -> JobReport:
    """Finish a commit as decided; without a decision, commit it.

    Raises ``OwnedError`` if its owner lives.
    """
    refuse_other_attempts(run, await begun_attempts(run, others=True))
    await require_own_record(run, standing)
    async with await _taken(run, standing, force=force) as lease:
        run = replace(lease.run, options=recorded_options(lease.run, standing.record)).acts()
        decision = await find_decision(run)
        if _is_committed(decision):
            run.reach(Phase.COMMITTED)
        elif standing.is_committed and not lease.closed:
            text = f"its outcome, which said committed, is gone: look at {run.layout.attempt_dir}"
            raise CommitError(run.layout.job_id, run.meter.stage, (), text)
        if decision is not None and decision.outcome is CompletionFacts.ROLLBACK:
            undone = await _undo(run, standing.record, done=lease.closed or lease.bare)
            return replace(job_report(run), rolled_back=True, not_restored=tuple(undone.left))
        if lease.closed and decision is None:
            raise lease_lost(run, "another process ended it a moment ago")
        if lease.bare:
            text = "it was aborted as its commit began: only a rollback can end it"
            raise CommitError(run.layout.job_id, run.meter.stage, (), text)
        if lease.closed:
            run.reach(Phase.COMMITTED)
            await clean(run)
            record = standing.record
            return replace(
                job_report(run), files=record.files, bytes=record.bytes, tasks=dict(record.tasks)
            )
        with LoadedManifests(run.options, run.store.traits) as loaded:
            plan = await load_plan(run, standing.record, loaded)
            marker = None
            if decision is None:
                marker = await _go_on(run, plan, standing.record)
            else:
                await plan.take_sample()
            await conclude(run, plan, marker)
            return job_report(run, plan)


async def _taken(run: CommitContext, standing: CommitState, *, force: bool) -> Lease:
    try:
        return await take_over(run, standing, force=force)
    except UnsupportedError as error:  # not of a commit of which nothing is done yet
        text = f"{error}. Completed changes remain, and everything else is kept"
        raise CommitError(run.layout.job_id, run.meter.stage, (error,), text) from error


def _is_committed(decision: Decision | None) -> bool:
    return decision is not None and decision.outcome is CompletionFacts.COMMITTED


async def _go_on(run: CommitContext, plan: Plan, record: CommitRecord) -> Info | None:
    settled = await settle(run, plan, STEPS)
    if not settled:
        await look_before_going_on(run, plan, record)
    return await forward(run, plan, STEPS, settled)


async def roll_back_job(
    run: CommitContext, standing: CommitState, *, force: bool = False
) -> AbortReport:
    """Undo a commit that has begun. Raises ``OwnedError``, ``CommittedError``."""
    if standing.is_committed:
        text = "it is committed and cannot be rolled back"
        raise CommittedError(run.layout.job_id, run.meter.stage, (), text)
    await require_own_record(run, standing)
    if not force:
        await refuse_in_flight(run, standing)
    async with await take_over(run, standing, force=force) as lease:
        run = lease.run
        decision = await find_decision(run)
        if _is_committed(decision):
            text = "it was committed a moment ago and cannot be rolled back"
            raise CommittedError(run.layout.job_id, run.meter.stage, (), text)
        if lease.closed and decision is None:
            raise lease_lost(run, "another process ended it a moment ago")
        done = lease.closed or lease.bare
        if not done:
            await decide(run, CompletionFacts.ROLLBACK)
        undone = await _undo(run, standing.record, done=done)
    return AbortReport(
        run.layout.job_id,
        "rolled back",
        rolled_back=True,
        files=undone.files,
        restored=undone.restored,
        not_restored=tuple(undone.left),
        warnings=tuple(run.warnings),
    )


async def _undo(run: CommitContext, record: CommitRecord, *, done: bool) -> RollbackResult:
    """Roll back, unless nothing was moved or all is back, and clean up."""
    undone = RollbackResult()
    if not done:
        with LoadedManifests(run.options, run.store.traits) as loaded:
            plan = await load_plan(run, record, loaded)
            undone = await backward(run, plan, STEPS)
    await run.end(CompletionFacts.ROLLBACK, undone.files)
    if not done:
        await close_place(run, CompletionFacts.ROLLBACK)
    await clean_up_rolled_back(run)
    if record.made_destination:
        await remove_if_empty(run, run.layout.dest.path)
    return undone


async def status(run: CommitContext, standing: CommitState) -> JobStatus:
    """Return the state of a commit, with its published files counted."""
    known = await status_of(run, run.layout, standing)
    if known.state in (JobState.COMMITTED, JobState.ENDED):
        return replace(known, done=known.files)
    run = run.numbered(max(standing.epochs, default=1))
    run = replace(run, options=replace(run.options, allow_outside_destination=True))
    with LoadedManifests(run.options, run.store.traits) as loaded:
        plan = await load_plan(run, standing.record, loaded)
        try:
            settled = await reconcile(run, plan)
        except DeniedError as error:
            if not (standing.foreign and within(error.path, [run.layout.job_dir])):
                raise
            why = f"its directory is not readable here, it belongs to {standing.foreign}"
            return replace(known, why=why)
        done = 0
        async for entry in loaded.spill.each():
            done += settled.has(entry)
    return replace(known, done=done)


def are_named(record: CommitRecord, tasks: Sequence[TaskCommit], overwrite: Sequence[str]) -> bool:
    """Return whether the arguments name all places outside that a commit uses."""
    finals = [decode_uri(uri).path for task in tasks for uri in task.absolute.values()]
    places = {*overwrite, *(path.rpartition("/")[0] for path in finals)}
    return all(within(path, places) for path in record.outside)


def check_messages(run: CommitContext, record: CommitRecord, tasks: Sequence[TaskCommit]) -> None:
    """Refuse to resume a commit with other task attempts."""
    if dict(record.tasks) != {task.task_id: task.attempt_id for task in tasks}:
        text = (
            "its commit began with task attempts other than the ones committed now: finish that "
            "commit or roll it back, and run this job under another id"
        )
        raise CommitError(run.layout.job_id, run.meter.stage, (), text)

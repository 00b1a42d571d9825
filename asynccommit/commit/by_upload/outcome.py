"""The outcome of an upload commit: the first process to write it decides."""

from __future__ import annotations

from contextlib import suppress

from asynccommit.commit.by_upload.context import UploadContext, save
from asynccommit.commit.by_upload.status import find_outcome, has_begun
from asynccommit.commit.context import Phase
from asynccommit.errors import (
    CommitError,
    CommittedError,
    ExistsError,
    LeaseLostError,
    NotFoundError,
    OutcomeUnknownError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.upload_record import UploadOutcome, encode_upload_outcome
from asynccommit.stores.tree import remove_file

_TRIES = 3


async def decide(run: UploadContext, outcome: Outcome) -> None:
    """Decide that the commit ends with ``outcome``; it may be repeated.

    Raises ``CommittedError`` if a rollback finds the commit committed, and ``LeaseLostError`` if a
    commit finds it rolled back or another process has ended the commit.
    """
    owner = run.identity.owner_id or run.host.new_id()
    decision = UploadOutcome(outcome, run.identity.commit_id, owner, int(run.host.now() * 1000))
    with run.meter.timed("job_stage_decide_outcome"):
        there = await write_once(run, run.layout.outcome, decision)
        if there is not outcome:
            raise _otherwise(run, there)
        run.reach(Phase.DECIDING if outcome is Outcome.COMMITTED else run.phase)
        if not await has_begun(run):  # its place was given back before
            run.reach(Phase.CHANGING)
            with suppress(NotFoundError):
                await remove_file(run.pending, run.layout.outcome)
            raise ended(run)
        if outcome is Outcome.COMMITTED:
            run.reach(Phase.COMMITTED)


async def write_once(run: UploadContext, path: str, decision: UploadOutcome) -> Outcome:
    """Write a decision unless there is one; return the final one."""
    data, error = encode_upload_outcome(decision), None
    for _ in range(_TRIES):
        try:
            await save(run, path, data)
            return decision.outcome
        except (ExistsError, OutcomeUnknownError) as problem:
            error = problem
        there = await find_outcome(run, path)
        if there is not None:
            return there.outcome
    raise error or AssertionError


def _otherwise(run: UploadContext, there: Outcome) -> CommitError:
    job_id, stage = run.layout.job_id, run.meter.stage
    if there is Outcome.COMMITTED:
        return CommittedError(job_id, stage, (), "it is committed and cannot be rolled back")
    text = "another process is rolling it back: run the job again when that is finished"
    return LeaseLostError(job_id, stage, (), text)


def ended(run: UploadContext) -> LeaseLostError:
    """Return the error for a commit that another process has ended."""
    text = "another process has ended this commit or rolled it back"
    return LeaseLostError(run.layout.job_id, run.meter.stage, (), text)

"""How a commit of uploads ends: decided once, by whoever writes the outcome first."""

from __future__ import annotations

from contextlib import suppress

from asynccommit.errors import (
    CommitError,
    CommittedError,
    ExistsError,
    LeaseLostError,
    NotFoundError,
    OutcomeUnknownError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.upload_record import (
    MAX_RECORD_BYTES,
    UploadOutcome,
    encode_upload_outcome,
)
from asynccommit.parallel import remove_file
from asynccommit.stages.run import Phase
from asynccommit.stages.uploads.run import UploadRun, read_if_there, save
from asynccommit.stages.uploads.standing import find_outcome, is_closed, read_record

_TRIES = 3


async def decide(run: UploadRun, outcome: Outcome) -> None:
    """Decide that the commit ends with ``outcome``; deciding the same again is fine.

    Raises ``CommittedError`` if a rollback finds it committed, ``LeaseLostError`` the other way
    round and if another has ended the commit.
    """
    owner = run.owner_id or run.host.new_id()
    decision = UploadOutcome(outcome, run.commit_id, owner, int(run.host.now() * 1000))
    with run.timed("job_stage_decide_outcome"):
        await _write(run, decision)
        if not await has_begun(run):  # its place was given back before
            with suppress(NotFoundError):
                await remove_file(run.pending, run.layout.outcome)
            raise ended(run)
        if outcome is Outcome.COMMITTED:
            run.phase = Phase.COMMITTED


async def has_begun(run: UploadRun) -> bool:
    """Whether the record of this very commit is there."""
    data = await read_if_there(run, run.layout.record, MAX_RECORD_BYTES)
    if data is None or is_closed(data):
        return False
    return read_record(run.layout, data).plan_id == run.commit_id


async def _write(run: UploadRun, decision: UploadOutcome) -> None:
    data, error = encode_upload_outcome(decision), None
    for _ in range(_TRIES):
        try:
            await save(run, run.layout.outcome, data)
            return
        except (ExistsError, OutcomeUnknownError) as problem:
            error = problem
        there = await find_outcome(run)
        if there is not None:
            if there.outcome is not decision.outcome:
                raise _otherwise(run, there)
            return
    raise error or AssertionError


def _otherwise(run: UploadRun, there: UploadOutcome) -> CommitError:
    job_id, stage = run.layout.job_id, run.stage
    if there.outcome is Outcome.COMMITTED:
        return CommittedError(job_id, stage, (), "it is committed, and cannot be rolled back")
    text = "another has decided that it is rolled back: run the job again once that is done"
    return LeaseLostError(job_id, stage, (), text)


def ended(run: UploadRun) -> LeaseLostError:
    """Return the error for a commit that another has ended meanwhile."""
    text = "another process has ended this commit, or rolled it back"
    return LeaseLostError(run.layout.job_id, run.stage, (), text)

"""Go on with a commit whose directory an abort has had for a moment.

An abort that looked before the record was written renames the directory of the job attempt, finds
the record there and renames the directory back. Requests of the commit that come in between find
nothing.
"""

from __future__ import annotations

from dataclasses import replace

from asynccommit.commit.by_rename.recovery import resume
from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.reporting import rolled_back_first
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.lease import Lease, say_stopped
from asynccommit.commit.ownership.status import CommitState, read_state
from asynccommit.errors import (
    CommitError,
    LeaseLostError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.stores.tree import is_there

_COUNTED = ("committer_bytes_committed", "committer_files_committed")


async def find_given_back(
    run: CommitContext, lease: Lease, error: BaseException
) -> CommitState | None:
    """Return the state of this commit if only an abort has stopped its owner.

    Args:
        run: the owner.
        lease: its lease, which has ended.
        error: what stopped it.
    """
    if lease.is_lost:
        return None
    try:
        if not (await _is_missed(run, error) and await directory_of(run).is_given_back(run)):
            return None
        state = await read_state(run.store, run.layout)
    except StoreError:
        return None  # what stopped the owner is told, not that nobody could look
    if state is None or state.commit_id != run.identity.commit_id:
        return None
    return state if state.epoch == run.identity.epoch else None


async def _is_missed(run: CommitContext, error: BaseException) -> bool:
    """Return whether a request may have missed the renamed directory."""
    if isinstance(error, LeaseLostError):
        return True
    if not isinstance(error, NotFoundError | OutcomeUnknownError):
        return False
    if await directory_of(run).is_renamed(run):
        return True
    if not isinstance(error, NotFoundError):
        return False
    # A put names the file to write, and fails so without the directory.
    missed = error.path.rpartition("/")[0] if error.op == "put" else error.path
    return await is_there(run.store, missed)


async def finish_given_back(run: CommitContext, state: CommitState) -> None:
    """Finish the commit as its next owner.

    Raises ``CommitError`` if a rollback was decided meanwhile, and the errors of ``resume``.
    """
    place = run.layout.attempt_dir
    await say_stopped(run, PreconditionError("rename", place, "an abort has had the directory"))
    run.warn("an abort of this job began as its commit did, and gave way to it")
    for name in _COUNTED:
        run.meter.statistics.counters.pop(name, None)
    run.count_renamed(-run.promise.renamed, 0)
    # Who asked for the commit has named the places outside.
    run = replace(run, options=replace(run.options, allow_outside_destination=True))
    report = await resume(run, await read_state(run.store, run.layout) or state)
    if report.rolled_back:
        text = rolled_back_first(report)
        raise CommitError(run.layout.job_id, "job_stage_abort", (), text)

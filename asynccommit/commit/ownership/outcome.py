"""The outcome of a commit: the first process to write it decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.driver.drafts import draft_in, put_drafted
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.lease import require_place
from asynccommit.commit.ownership.status import read_decision
from asynccommit.commit.ownership.takeover import set_aside
from asynccommit.errors import (
    CommitError,
    CommittedError,
    ExistsError,
    LeaseLostError,
    OutcomeUnknownError,
    StoreError,
)
from asynccommit.formats.commit_owner import MAX_OWNER_BYTES, Decision, Outcome, encode_decision
from asynccommit.formats.commit_record import is_blank
from asynccommit.runtime.concurrency import both, together
from asynccommit.stores.base import Info
from asynccommit.stores.tree import read_if_there

_TRIES = 3


async def find_decision(run: CommitContext) -> Decision | None:
    """Return the decision for this job attempt, or ``None`` if open."""
    path = run.layout.outcome
    data = await read_if_there(run.store, path, MAX_OWNER_BYTES)
    if data is None:
        return await directory_of(run).find_end(run)
    decision = _read(run, data)
    if decision is None:  # nobody has acted upon it
        await set_aside(run, path, lambda data: _read(run, data) is None)
    return decision


def _read(run: CommitContext, data: bytes) -> Decision | None:
    """Return a decision; ``None`` for a damaged file or another commit's."""
    return None if is_blank(data) else read_decision(data, run.layout, run.identity.commit_id)


async def decide(
    run: CommitContext,
    outcome: Outcome,
    *,
    after: Callable[[], Awaitable[None]] | None = None,
    reserved: str | None = None,
) -> None:
    """Record that the commit ends with ``outcome``.

    The same decision may be recorded again.

    Args:
        run: the owner.
        outcome: how its commit ends.
        after: what must succeed before; the outcome is written ahead meanwhile, and this owner
            looks whether another has taken the commit over.
        reserved: the file in the job's directory to write it to.

    Raises ``CommittedError`` if a rollback finds it committed, ``CommitError`` the other way round.
    """
    decision = Decision(
        outcome,
        run.identity.epoch,
        run.identity.owner_id,
        int(run.host.now() * 1000),
        run.identity.commit_id,
    )

    async def ready() -> None:
        await together(*([] if after is None else [after]), lambda: require_place(run))
        run.check_lease()

    run.check_lease()
    data = encode_decision(decision)
    ahead, _ = await both(lambda: draft_in(run.store, run.layout, reserved, data), ready)
    with run.meter.timed("job_stage_decide_outcome"):
        await _write(run, decision, data, ahead)
        if not run.store.traits.fences:
            run.reach(Phase.DECIDING if outcome is Outcome.COMMITTED else run.phase)
            await _require_still(run)
        if outcome is Outcome.COMMITTED:
            run.reach(Phase.COMMITTED)
        await make_durable(run, run.layout.outcome, run.layout.attempt_dir)


async def _require_still(run: CommitContext) -> None:
    """Check that the commit had not ended before the decision.

    Raises ``LeaseLostError``.
    """
    try:
        await require_place(run)
    except LeaseLostError:
        run.reach(Phase.CHANGING)
        await directory_of(run).take_back(run, run.layout.outcome)
        raise


async def _write(run: CommitContext, decision: Decision, data: bytes, ahead: Info | None) -> None:
    error: StoreError | None = None
    for number in range(_TRIES):
        try:
            once = None if number else ahead
            await put_drafted(run.store, run.layout, run.layout.outcome, data, once)
            return
        except (ExistsError, OutcomeUnknownError) as problem:
            error = problem
        there = await find_decision(run)
        if there is not None:
            if there.outcome is not decision.outcome:
                raise _otherwise(run, there)
            return
    raise error or AssertionError


def _otherwise(run: CommitContext, there: Decision) -> CommitError:
    job_id, stage = run.layout.job_id, run.meter.stage
    if there.outcome is Outcome.COMMITTED:
        return CommittedError(job_id, stage, (), "it is committed and cannot be rolled back")
    return CommitError(job_id, stage, (), f"owner {there.epoch} is rolling this commit back")

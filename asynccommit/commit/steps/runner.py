"""Take the steps of a commit: forward, also after a crash, or backward.

What every commit by renames has in common is here: which requests are sent beside one another, and
from where on the job is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.drafts import reserve
from asynccommit.commit.ownership.outcome import decide
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.steps.identity import Settled
from asynccommit.commit.steps.restored import verify
from asynccommit.commit.steps.step import CommitStep, RollbackResult
from asynccommit.commit.steps.success_marker import prepare_success
from asynccommit.commit.steps.swap import bring_late
from asynccommit.commit.steps.validate import validate_output
from asynccommit.errors import RejectedError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.runtime.concurrency import alongside, both
from asynccommit.stores.base import Info


async def settle(run: CommitContext, plan: Plan, steps: Sequence[CommitStep]) -> Settled:
    """Find what earlier owners of the commit have done."""
    settled = Settled(run, plan)
    for step in steps:
        settled = await step.settle(run, plan, settled)
    return settled


async def forward(
    run: CommitContext, plan: Plan, steps: Sequence[CommitStep], settled: Settled
) -> Info | None:
    """Do what is not done, and decide that the job is committed.

    Beside the last stage the file of the outcome is made, beside the validation the temporary file
    of ``_SUCCESS``: neither says anything before it has its name. Returns the latter, if it was
    written.
    """
    *first, last = [list(stage) for _, stage in groupby(steps, key=lambda step: step.stage)]
    for stage in first:
        await _take(run, plan, stage, settled)
    _, reserved = await alongside(
        lambda: _take(run, plan, last, settled), lambda: reserve(run.store, run.layout.job_dir)
    )
    valid = partial(validate_output, run, plan)
    try:
        marker, _ = await both(
            lambda: prepare_success(run, plan),
            lambda: decide(run, Outcome.COMMITTED, after=valid, reserved=reserved),
        )
    except RejectedError:
        # On HDFS an open file takes a block of the quota of space: one file at a time takes less.
        if not run.store.traits.nested_zones:
            raise
        await decide(run, Outcome.COMMITTED, after=valid)
        return None
    return marker


async def _take(
    run: CommitContext, plan: Plan, stage: Sequence[CommitStep], settled: Settled
) -> None:
    """Do the steps of one stage that this commit needs."""
    counts = {step: count for step in stage if (count := step.count(run, plan)) is not None}
    if counts:
        with run.meter.timed(stage[0].stage, sum(counts.values())):
            for step in counts:
                await step.do(run, plan, settled)


async def backward(run: CommitContext, plan: Plan, steps: Sequence[CommitStep]) -> RollbackResult:
    """Undo every step, the last one first, and verify the result."""
    undone = RollbackResult()
    for step in steps:
        await step.fence(run, plan, undone)
    with run.meter.timed("job_stage_roll_back", plan.loaded.files):
        for step in reversed(steps):
            await step.undo(run, plan, undone)
        undone.end()
        await verify(run, plan, undone)
        await bring_late(run, plan, undone)
        undone.warn(run)
    return undone

"""Undo the changes of a commit: every step, and what was moved aside."""

from __future__ import annotations

from asynccommit.commit.context import CommitContext
from asynccommit.commit.planning.plan import (
    Plan,
)
from asynccommit.commit.steps.make_directories import remove_empty
from asynccommit.commit.steps.move_aside import restorer
from asynccommit.commit.steps.restored import verify
from asynccommit.commit.steps.step import RollbackResult
from asynccommit.commit.steps.swap import bring_late, remove_units
from asynccommit.commit.steps.undo_renames import fence, take_back
from asynccommit.runtime.concurrency import for_each


async def roll_back(run: CommitContext, plan: Plan) -> RollbackResult:
    """Undo what the commit of ``plan`` has changed under the destination."""
    undone = RollbackResult()
    await fence(run, plan, undone)
    with run.meter.timed("job_stage_roll_back", plan.loaded.files):
        await take_back(run, plan, undone)
        await remove_units(run, plan)
        await remove_empty(run, plan, plan.missing)
        asides = [*plan.replaced, *plan.aside]
        await for_each(asides, restorer(run, undone), workers=run.workers)
        undone.end()
        await verify(run, plan, undone)
        await bring_late(run, plan, undone)
        undone.warn(run)
    return undone

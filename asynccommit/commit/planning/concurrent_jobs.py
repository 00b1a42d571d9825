"""Look for commits of other jobs that this one must not cross.

A commit that replaces directories checks before it lists them, and again once its record exists. Of
two commits that begin at once at least one then sees the record of the other. A job that was not
committed at the first look and is at the last, or is gone, may have put files there while the
directories were listed: then they are listed again.
"""

from __future__ import annotations

from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.job.places import TARGETS, refuse_within, related, resolve_places
from asynccommit.commit.planning.conflicts import displaced, one_a_directory, refuse_others
from asynccommit.commit.planning.jobs import find_neighbours
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.planning.write_modes import list_replaced
from asynccommit.errors import NotFoundError, PreconditionError
from asynccommit.formats.commit_record import CommitRecord
from asynccommit.options.job import Mode
from asynccommit.stores.tree import walk


async def look_before_listing(run: CommitContext, plan: Plan, *, looking: bool = False) -> None:
    """Refuse to replace directories of an unfinished commit.

    Args:
        run: the commit under way.
        plan: names the directories, and takes the jobs that were seen.
        looking: write nothing, not even to ask the store for the time.

    Raises ``PreconditionError`` that names the job.
    """
    if plan.targets:
        found = await find_neighbours(run, related(run.layout, plan.targets), looking=looking)
        refuse_within(plan.targets, found.commits)
        plan.undecided = found.undecided


async def look_before_record(run: CommitContext, plan: Plan, *, looking: bool = False) -> None:
    """Refuse to move files aside that an unfinished commit may own.

    Args: see ``look_before_listing``.

    Raises ``PreconditionError`` that names the job.
    """
    asides = [aside for aside in plan.aside if aside.path != run.layout.success]
    if files := one_a_directory(asides):
        found = await find_neighbours(run, related(run.layout, files), looking=looking)
        refuse_within(files, found.commits)


async def look_after_record(run: CommitContext, plan: Plan) -> None:
    """Refuse to continue if another commit began or ended meanwhile.

    Raises ``PreconditionError`` that names the job or the file.
    """
    mine = displaced(run, plan)
    if not mine and plan.mode is not Mode.FAIL:
        return
    found = await find_neighbours(run, related(run.layout, mine))
    refuse_others(run, plan, found.commits, plan.mode)
    if plan.undecided - found.undecided:
        await _refuse_torn(run, plan)


async def look_before_going_on(run: CommitContext, plan: Plan, record: CommitRecord) -> None:
    """Repeat ``look_after_record`` for an owner that died early.

    That owner died before its first change.

    Its plan may be older than what other jobs have committed since. Raises ``PreconditionError``.
    """
    targets = record.options.get(TARGETS)
    if not targets or await _has_moved_aside(run):
        return
    plan.targets = resolve_places(run.layout, str(targets))
    found = await find_neighbours(run, related(run.layout, plan.targets))
    refuse_within(plan.targets, found.commits)
    await _refuse_torn(run, plan)


async def _has_moved_aside(run: CommitContext) -> bool:
    with suppress(NotFoundError):
        async for info in walk(run.store, f"{run.epoch_dir}/aside"):
            if not info.is_dir:
                return True
    return False


async def _refuse_torn(run: CommitContext, plan: Plan) -> None:
    """Refuse to replace only a part of another job's output."""
    with Fingerprints(run.options.spill_directory) as planned:
        async for old in plan.old.each():
            planned.add([(old.dest, old.etag)])
        async for batch in list_replaced(run, plan.targets):
            with Fingerprints(run.options.spill_directory) as there:
                there.add([(entry.dest, entry.etag) for entry in batch])
                if new := there.missing(planned):
                    path = next(e.dest for e in batch if fingerprint((e.dest, e.etag)) in new)
                    text = "another job committed while this commit was planned: commit again"
                    raise PreconditionError("rename", path, text)

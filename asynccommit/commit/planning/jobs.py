"""The other jobs under a destination: active or interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from asynccommit.commit.context import CommitContext, of_commit
from asynccommit.commit.driver.liveness import status_without_commit
from asynccommit.commit.driver.owners import describe
from asynccommit.commit.job.places import OtherCommit, resolve_places
from asynccommit.commit.layouts.file_output import recorded
from asynccommit.commit.layouts.layout import ENDED, MANIFEST_SUFFIX, Layout
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.directory_owner import as_found
from asynccommit.commit.ownership.status import CommitState, is_over, read_state
from asynccommit.commit.ownership.takeover import is_alive, is_expired, is_silent
from asynccommit.commit.planning.load_manifests import LoadedManifests
from asynccommit.commit.planning.plan_file import load_plan
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    OptionError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.grant import unpinned
from asynccommit.stores.tree import list_if_there

_DECIDED = (JobState.COMMITTED, JobState.ENDED)
_UNREADABLE = (ManifestError, PreconditionError, RejectedError)
"""The errors for a record that is damaged, a directory, or too large."""
_PASSED_OVER = (DeniedError, PreconditionError, RejectedError)
"""The errors for a listing of another destination's jobs that is not available."""


async def find_jobs(run: CommitContext, *, looking: bool = True) -> list[Layout]:
    """Return the unfinished job attempts under the destination, in order.

    A commit that an abort has renamed and not put back is put back, unless only ``looking``.
    """
    found: list[Layout] = []
    directory = directory_of(run)
    for job in await _directories(run, run.layout.temporary):
        name = job.path.rpartition("/")[2]
        for attempt in await _directories(run, job.path):
            number = attempt.path.rpartition("/")[2].removesuffix(".aborted")
            if not _is_attempt(number):
                continue
            with suppress(OptionError):  # no name of ours
                named = Layout(run.layout.dest, name, int(number))
                layout = await as_found(run.store, named)
                whole = attempt.path == layout.attempt_dir
                if not whole and not looking:
                    whole = await directory.restore_begun(replace(run, layout=layout))
                if whole and layout not in found:
                    found.append(layout)
    return found


def _is_attempt(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) >= 2


async def find_ended(run: CommitContext) -> list[str]:
    """Return directories of ended job attempts that were not fully deleted."""
    found: list[str] = []
    for job in await _directories(run, run.layout.temporary):
        attempts = [attempt.path for attempt in await _directories(run, job.path)]
        found += [path for path in attempts if path.rpartition(".")[2] in ENDED]
    return found


class Neighbours(NamedTuple):
    """Other jobs: begun commits, and directories of uncommitted jobs."""

    commits: list[OtherCommit]
    undecided: frozenset[str]


async def find_others(run: CommitContext) -> list[OtherCommit]:
    """Return the begun commits of other jobs, oldest first."""
    return (await find_neighbours(run)).commits


async def find_neighbours(
    run: CommitContext, destinations: Sequence[str] = (), *, looking: bool = False
) -> Neighbours:
    """Return the other active jobs here; commits oldest first.

    Args:
        run: the commit under way.
        destinations: decoded paths of further destinations whose jobs count. Entries that cannot be
            listed or read are skipped, and so is a ``_temporary`` that is not a directory.
        looking: judge by this machine's clock whether an owner is silent. Without it, the store's
            clock decides, for which a file is written beside the record.
    """
    found: list[OtherCommit] = []

    undecided: set[str] = set()

    async def ask(layout: Layout) -> None:
        other = await _other(run, layout, looking=looking)
        if other is not None:
            found.append(other)
        if not (other is None and await directory_of(run).is_late(run, layout)):
            undecided.add(layout.attempt_dir)

    async def find(path: str) -> None:
        elsewhere = replace(run, layout=Layout(run.layout.dest.at(path), run.layout.job_id))
        with suppress(*_PASSED_OVER), unpinned():
            await for_each(await find_jobs(elsewhere, looking=looking), glance, workers=run.workers)

    async def glance(layout: Layout) -> None:
        with suppress(DeniedError):
            await ask(layout)

    jobs = await find_jobs(run, looking=looking)
    others = [job for job in jobs if job.job_id != run.layout.job_id]
    await for_each(others, ask, workers=run.workers)
    await for_each(destinations, find, workers=run.workers)
    found.sort(key=lambda other: (other.status.started_ms, other.status.job_id))
    undecided -= {one.layout.attempt_dir for one in found if one.status.state in _DECIDED}
    return Neighbours(found, frozenset(undecided))


async def _other(run: CommitContext, layout: Layout, *, looking: bool) -> OtherCommit | None:
    """Return the state of another job's commit, or ``None`` if not begun."""
    try:
        standing = await read_state(run.store, layout)
        if standing is not None:
            layout = recorded(layout, standing.record.options)
    except _UNREADABLE as error:
        return OtherCommit(_unreadable(layout, error), layout, resolve_places(layout, ""))
    if standing is None:
        return None
    silent = None
    if not looking:
        with suppress(DeniedError):  # no file may be made there: this machine's clock decides
            silent = await is_expired(run, layout, standing)
    status = await status_of(run, layout, standing, silent=silent)
    places = str(standing.record.options.get("places") or "")
    return OtherCommit(status, layout, resolve_places(layout, places))


async def find_statuses(run: CommitContext) -> list[JobStatus]:
    """Return the status of every job attempt under the destination."""
    found: list[JobStatus] = []

    async def ask(layout: Layout) -> None:
        try:
            standing = await read_state(run.store, layout)
        except _UNREADABLE as error:
            found.append(_unreadable(layout, error))
            return
        if standing is None and await directory_of(run).is_late(run, layout):
            return
        if standing is None:
            found.append(await _not_begun(run, layout))
        else:
            found.append(await status_of(run, layout, standing))

    await for_each(await find_jobs(run), ask, workers=run.workers)
    return sorted(found, key=lambda status: (status.started_ms, status.job_id, status.attempt))


async def checked(run: CommitContext, other: OtherCommit) -> JobStatus:
    """Return the status of a commit; unreadable if its plan is refused."""
    layout = other.layout
    if other.status.unreadable or layout.outside:  # of a move its journal tells, which is elsewhere
        return other.status
    look = replace(run, options=replace(run.options, allow_outside_destination=True))
    with LoadedManifests(run.options, run.store.traits) as loaded:
        try:
            standing = await read_state(run.store, layout)
            if standing is not None and standing.decision is None:
                named = of_commit(run.store, layout, standing.commit_id)
                look = replace(look, layout=named)
                await load_plan(look, standing.record, loaded)
        except _UNREADABLE as error:
            return _unreadable(layout, error)
    return other.status


def _unreadable(layout: Layout, error: Exception) -> JobStatus:
    return JobStatus(layout.job_id, layout.attempt, JobState.STOPPED, error=str(error), alive=False)


async def _not_begun(run: CommitContext, layout: Layout) -> JobStatus:
    listing = await list_if_there(run.store, layout.manifests_dir)
    tasks = sum(info.path.endswith(MANIFEST_SUFFIX) for info in listing)
    return await status_without_commit(replace(run, layout=layout), run.store, tasks)


async def status_of(
    run: CommitContext, layout: Layout, standing: CommitState, *, silent: bool | None = None
) -> JobStatus:
    """Return the known state of a commit for users.

    Args:
        run: whose store and clock are used.
        layout: the job attempt.
        standing: the known state of its commit.
        silent: whether its lease is over by the store's time; this machine's clock is asked if
            that is not known.
    """
    if silent is None:
        silent = is_silent(run.host, standing)
    record, claim = standing.record, standing.claim
    alive = await is_alive(run.host, standing)
    return JobStatus(
        job_id=layout.job_id,
        attempt=layout.attempt,
        state=_state(standing, alive, silent),
        started_ms=record.started_ms,
        files=record.files,
        bytes=record.bytes,
        done=None,
        tasks=len(record.tasks),
        epoch=standing.epoch,
        owner=describe(claim.owner),
        seen_ms=int(standing.seen * 1000),
        lease=claim.lease,
        error=standing.stop.error if standing.stop else "",
        key=record.key,
        alive=False if silent and not alive else alive,
        belongs_to=standing.foreign,
    )


def _state(standing: CommitState, alive: bool | None, silent: bool) -> JobState:
    if is_over(standing):
        return JobState.ENDED
    if standing.decision is not None:
        rolled = standing.decision.outcome is Outcome.ROLLBACK
        return JobState.ROLLING_BACK if rolled else JobState.COMMITTED
    if alive is False:
        return JobState.STOPPED
    return JobState.EXPIRED if silent else JobState.COMMITTING


async def _directories(run: CommitContext, path: str) -> list[Info]:
    return [info for info in await list_if_there(run.store, path) if info.is_dir]

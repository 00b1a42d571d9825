"""The liveness of an uncommitted job, by owner file and directory.

An abort deletes what the tasks of a job are writing just now. So one that does not come from the
job's own driver looks here first, and is refused while the job may be alive.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.heartbeat import LEASE, is_held
from asynccommit.commit.driver.own_tasks import own_tasks
from asynccommit.commit.driver.owners import clock_file, describe, time_of
from asynccommit.commit.hints import job_command
from asynccommit.commit.layouts.layout import ENDED, Layout
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.errors import ManifestError, NotFoundError, OwnedError
from asynccommit.formats.commit_record import ABORTED, MAX_RECORD_BYTES, is_blank
from asynccommit.formats.job_owner import MAX_JOB_OWNER_BYTES, JobOwner, decode_job_owner
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_if_there, read_if_there, walk

QUIET = 86_400.0
"""Seconds without a change after which a job without heartbeats counts as dead."""
_CLOCK_SKEW_SECONDS = 2.0
"""Maximum rounding error of the store's times in seconds."""


@dataclass(frozen=True, slots=True)
class Life:
    """The known state of a job's driver.

    Attributes:
        state: ``RUNNING``, ``DEAD`` or ``UNKNOWN``.
        why: what tells, for people.
        owner: the driver, if the job's setup has said who it is.
        seen: the store's time of its last heartbeat; of a job that gives none, of the last
            change in its directory; 0.0 if that is unknown.
        bare: whether its set-up has made nothing but its directory.
    """

    state: JobState
    why: str
    owner: JobOwner | None = None
    seen: float = 0.0
    bare: bool = False

    def status(self, layout: Layout, tasks: int) -> JobStatus:
        """Return the status of the job attempt."""
        owner = self.owner
        return JobStatus(
            layout.job_id,
            layout.attempt,
            self.state,
            tasks=tasks,
            owner="" if owner is None else describe(owner.owner),
            seen_ms=0 if owner is None else int(self.seen * 1000),
            lease=0.0 if owner is None else owner.lease or 0.0,
            alive={JobState.RUNNING: True, JobState.DEAD: False}.get(self.state),
            why=self.why,
        )


async def life_of(run: CommitContext, store: Store, *, exact: bool = False) -> Life | None:
    """Return whether a job attempt is alive.

    ``None`` if it does not exist, or its commit has begun.

    Args:
        run: context of the job attempt.
        store: where the job's own directory is.
        exact: ask the store for its time before the job counts as dead by age; that takes a file
            written for it. This machine's clock is asked otherwise.
    """
    layout = run.layout
    found = {info.path: info for info in await list_if_there(store, layout.attempt_dir)}
    if not found:
        return await _without_files(run, store, exact=exact)
    if layout.record in found:
        record = await read_if_there(store, layout.record, MAX_RECORD_BYTES)
        if record == ABORTED:
            return Life(JobState.DEAD, "its abort has begun")
        if record is not None and not is_blank(record):
            return None
    owner = await _read(store, layout.job_owner) if layout.job_owner in found else None
    if layout.job_ended in found:
        return Life(JobState.DEAD, "its driver gave it up", owner)
    if owner is None:
        is_job = any(_tells_of_job(layout, path) for path in found)
        return await _unowned(run, store, list(found.values()), exact=exact) if is_job else None
    return await _owned(run, store, owner, found[layout.job_owner].modified, exact=exact)


async def _without_files(run: CommitContext, store: Store, *, exact: bool) -> Life | None:
    """Judge a job attempt in whose own directory nothing is."""
    layout = run.layout
    tasks = await own_tasks(run)  # of a job whose directories are shared with others
    if not tasks:
        try:
            there = await store.head(layout.attempt_dir)
        except NotFoundError:
            return None
        if isinstance(layout, UploadLayout):
            return await _unowned(run, store, [there], exact=exact)
        return await _bare(run, store, there.modified, exact=exact)
    for info in await list_if_there(store, layout.job_dir):
        if info.path in [layout.ended(how) for how in ENDED]:
            return Life(JobState.DEAD, "it is being ended")
    return await _unowned(run, store, tasks, exact=exact)


async def _bare(run: CommitContext, store: Store, made: float, *, exact: bool) -> Life:
    """Judge a directory in which a set-up has made nothing yet.

    A set-up takes less than a lease. One that goes on later makes the directory again: there is
    nothing to lose.
    """
    silent = await _silence(run, store, made, LEASE, exact=exact)
    why = f"its set-up, {silent:,.0f} s ago, has made nothing but its directory"
    state = JobState.UNKNOWN if silent <= LEASE + _CLOCK_SKEW_SECONDS else JobState.DEAD
    return Life(state, why, seen=made, bare=True)


def _tells_of_job(layout: Layout, path: str) -> bool:
    """Return whether tasks write, or have committed, to a path.

    Otherwise its content is only rubbish.
    """
    return isinstance(layout, UploadLayout) or path in (layout.committed_dir, layout.tasks_dir)


async def status_without_commit(run: CommitContext, store: Store, tasks: int) -> JobStatus:
    """Return the status of a job attempt whose commit has not begun.

    Args:
        run: context of the job attempt.
        store: where the job's own directory is.
        tasks: how many tasks have committed.
    """
    life = await life_of(run, store) or Life(
        JobState.UNKNOWN, "it has just ended or begun its commit"
    )
    return life.status(run.layout, tasks)


async def refuse_living(run: CommitContext, store: Store, *flags: str) -> None:
    """Raise ``OwnedError`` if the job may be alive.

    The process that runs the job may always end it.

    Args:
        run: context of the job attempt to delete.
        store: where the job's own directory is.
        flags: what else the command has that was given.
    """
    life = await life_of(run, store, exact=True)
    if life is None or life.state is JobState.DEAD:
        return
    if life.owner is not None and is_own(run.host, life.owner):
        return
    layout = run.layout
    whether = "it is running" if life.state is JobState.RUNNING else "it may be running"
    text = (
        f"{whether}: {life.why}. Nothing was deleted. If its program is dead, abort it anyway: "
        f"{job_command('abort', layout, *flags, '--force')}"
    )
    raise OwnedError(layout.job_id, run.meter.stage, (), text)


async def is_orphaned(run: CommitContext, store: Store) -> bool:
    """Return whether the job exists; its driver has then ended or died.

    Raises ``OwnedError`` if the driver may be alive.
    """
    life = await life_of(run, store, exact=True)
    if life is None or life.bare:
        return False
    quiet = (
        life.state is JobState.UNKNOWN and life.owner is not None and is_own(run.host, life.owner)
    )
    if life.state is JobState.DEAD or quiet:
        return True
    text = (
        f"another driver may be running it: {life.why}. Wait until that has ended, or give up what "
        f"its tasks have written: {job_command('abort', run.layout, '--force')}"
    )
    raise OwnedError(run.layout.job_id, "job_stage_setup", (), text)


def is_own(host: Host, owner: JobOwner) -> bool:
    """Return whether the driver of a job is this process."""
    who = owner.owner
    return bool(who.process) and (who.host, who.process) == (host.name, host.process)


async def _owned(
    run: CommitContext, store: Store, owner: JobOwner, seen: float, *, exact: bool
) -> Life:
    """Return what the owner's process and its last heartbeat tell."""
    who = describe(owner.owner)
    if is_held(owner.owner.id):
        return Life(JobState.RUNNING, f"{who}, this process, is running it", owner, seen)
    alive = await _is_process_alive(run.host, owner)
    if alive is False:
        return Life(JobState.DEAD, f"{who} has ended", owner, seen)
    if owner.lease is None:
        found = await list_if_there(store, run.layout.attempt_dir)
        return replace(await _unowned(run, store, found, exact=exact), owner=owner)
    if is_own(run.host, owner):
        why = f"{who}, this process, set it up and sends no heartbeats for it"
        return Life(JobState.UNKNOWN, why, owner, seen)
    silent = await _silence(run, store, seen, owner.lease, exact=exact)
    said = f"sent its last heartbeat {silent:,.0f} s ago (its lease is {owner.lease:,.0f} s)"
    if silent <= owner.lease + _CLOCK_SKEW_SECONDS:
        return Life(JobState.RUNNING, f"{who} {said}", owner, seen)
    if alive:
        return Life(JobState.UNKNOWN, f"{who} is alive: {said}", owner, seen)
    return Life(JobState.DEAD, f"{who} {said}", owner, seen)


async def _silence(
    run: CommitContext, store: Store, seen: float, lease: float, *, exact: bool
) -> float:
    """Return for how many seconds the owner has been silent."""
    silent = max(0.0, run.host.now() - seen)
    if silent <= lease + _CLOCK_SKEW_SECONDS or not exact:
        return silent
    try:
        now = await time_of(store, clock_file(run, run.layout.attempt_dir))
        for info in await list_if_there(store, run.layout.attempt_dir):
            seen = info.modified if info.path == run.layout.job_owner else seen
    except NotFoundError:
        return silent
    return max(0.0, now - seen)


async def _is_process_alive(host: Host, owner: JobOwner) -> bool | None:
    """Return whether the owner's process is alive; ``None`` if unknown here."""
    process = owner.owner.process
    if owner.owner.host != host.name or not process:
        return None
    return await asyncio.to_thread(host.is_running, process)


async def _unowned(run: CommitContext, store: Store, found: list[Info], *, exact: bool) -> Life:
    """Judge a job without heartbeats, such as Hadoop's, by its changes."""
    last = max((info.modified for info in found), default=0.0)
    since = (await _now(run, store) if exact else run.host.now()) - QUIET
    for info in found:
        if last >= since:
            break
        if info.is_dir:
            async for below in walk(store, info.path):
                last = max(last, below.modified)
                if last >= since:
                    break
    if not last:
        return Life(JobState.UNKNOWN, "it has no heartbeats")
    when = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    if last >= since:
        return Life(JobState.UNKNOWN, f"it has no heartbeats and was changed at {when}")
    return Life(JobState.DEAD, f"nothing in it has changed since {when}", seen=last)


async def _now(run: CommitContext, store: Store) -> float:
    """Return the store's time."""
    try:
        return await time_of(store, clock_file(run, run.layout.attempt_dir))
    except NotFoundError:  # its tasks are in directories that are shared with others
        return await time_of(store, clock_file(run, run.layout.temporary))


async def _read(store: Store, path: str) -> JobOwner | None:
    """Return the owner of a job; ``None`` if the file is damaged."""
    try:
        return decode_job_owner(await store.get(path, MAX_JOB_OWNER_BYTES), path)
    except (NotFoundError, ManifestError):
        return None

"""Upload jobs under one destination: active or interrupted.

Magic jobs are below the destination, and so are staging jobs unless their pending sets were put
elsewhere. Jobs elsewhere are found by staging jobs that use the same place. That place serves all
tables of a user, so only commits whose record names this destination count.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from asynccommit.commit.by_upload.context import UploadContext, read_if_there
from asynccommit.commit.by_upload.load_sets import find_sets
from asynccommit.commit.by_upload.status import read_state, status_of
from asynccommit.commit.driver.liveness import status_without_commit
from asynccommit.commit.hints import STAGING
from asynccommit.commit.job.cleanup import is_phantom
from asynccommit.commit.job.places import OtherCommit, resolve_places
from asynccommit.commit.layouts.layout import TEMPORARY
from asynccommit.commit.layouts.uploads import MagicLayout, StagingLayout, UploadLayout
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    OptionError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.magic_paths import MAGIC
from asynccommit.formats.upload_record import MAX_RECORD_BYTES, UploadRecord, decode_upload_record
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import is_there, list_all
from asynccommit.stores.urls import Address

_SOON = 5 / 7  # of the time after which uploads end: the fifth day of a week
STAGING_NAMES = ("directory", "partitioned")
"""The names of staging committers in records."""
_UNREADABLE = (ManifestError, PreconditionError, RejectedError)

L = TypeVar("L", bound=UploadLayout)


@dataclass(frozen=True, slots=True)
class UploadAttempt:
    """One job attempt under the destination.

    Attributes:
        layout: its paths, with the name of its committer.
        status: its status.
        places: the places that its commit touches, from its record.
    """

    layout: UploadLayout
    status: JobStatus
    places: str = ""


async def find_attempts(
    run: UploadContext, *, own: bool = True, destinations: Sequence[str] = (), lives: bool = False
) -> list[UploadAttempt]:
    """Return every job attempt that is visible from here.

    Args:
        run: the job whose destination is searched.
        own: include the attempts of this job.
        destinations: decoded paths of further destinations whose jobs count.
        lives: find out whether attempts without a commit are alive; otherwise they all count as
            unknown, which saves two requests for each.
    """
    found: list[UploadAttempt] = []

    async def ask(job: UploadLayout) -> None:
        for layout in await attempts_in(store_of(run, job), job):
            one = await _see(run, layout, lives=lives)
            found.extend([] if one is None else [one])

    async def glance(job: UploadLayout) -> None:
        with suppress(DeniedError):
            await ask(job)

    async def find(path: str) -> None:
        with suppress(DeniedError):
            there = await jobs_below(run.store, run.layout.dest.at(path))
            await for_each(there, glance, workers=run.workers)

    jobs = [job for job in await _jobs(run) if own or not _is_own(run, job)]
    await for_each(jobs, ask, workers=run.workers)
    await for_each(destinations, find, workers=run.workers)
    return sorted(found, key=_order)


def _order(found: UploadAttempt) -> tuple[int, str, int]:
    status = found.status
    return status.started_ms, status.job_id, status.attempt


async def sought(run: UploadContext) -> UploadLayout:
    """Return the layout where this attempt was found, or that of ``run``."""
    mine = run.layout
    if await is_there(run.pending, mine.attempt_dir):
        return mine
    for found in await find_attempts(run, own=False):
        if (found.layout.job_id, found.layout.attempt) == (mine.job_id, mine.attempt):
            return found.layout.of_attempt(mine.attempt)
    return mine


async def find_others(run: UploadContext, destinations: Sequence[str] = ()) -> list[OtherCommit]:
    """Return the attempts of all other jobs.

    Args:
        run: the commit under way.
        destinations: decoded paths of further destinations whose jobs count. Places that may not be
            listed or read are skipped.
    """
    found = await find_attempts(run, own=False, destinations=destinations)
    return [
        OtherCommit(one.status, one.layout, resolve_places(one.layout, one.places)) for one in found
    ]


def store_of(run: UploadContext, layout: UploadLayout) -> Store:
    """Return the store of the own files of a job that was found from ``run``."""
    return run.store if layout.pending.same_store(layout.dest) else run.pending


def _is_own(run: UploadContext, job: UploadLayout) -> bool:
    mine = run.layout
    return mine.pending_url(mine.job_dir) == job.pending_url(job.job_dir)


async def _jobs(run: UploadContext) -> list[UploadLayout]:
    """Return the jobs that have directories.

    Jobs in a place shared by many tables may have other destinations.
    """
    mine = run.layout
    found = await jobs_below(run.store, mine.dest)
    if isinstance(mine, StagingLayout) and not _is_beside(mine):
        found += await _of_user(run.pending, mine.dest, mine.tmp)
    return found


async def jobs_below(store: Store, dest: Address) -> list[UploadLayout]:
    """Return the upload jobs that have directories below a destination.

    Staging jobs of users whose directories may not be listed are left out. Raises ``StoreError``.
    """
    found: list[UploadLayout] = []
    names = [name_of(info) for info in await directories(store, dest.path)]
    for name in names:
        with suppress(OptionError):  # no name of ours
            if name.startswith(MAGIC):
                found.append(MagicLayout(dest, name.removeprefix(MAGIC)))
    if TEMPORARY in names:
        found += await _staging_jobs(store, dest)
    return found


def _beside(dest: Address) -> Address:
    return dest.child(TEMPORARY, STAGING)


def _is_beside(layout: StagingLayout) -> bool:
    above = layout.tmp.path.rpartition("/")[0] or "/"
    return layout.tmp.at(above) == _beside(layout.dest)


async def _staging_jobs(store: Store, dest: Address) -> list[StagingLayout]:
    found: list[StagingLayout] = []

    async def ask(user: Info) -> None:
        with suppress(DeniedError):  # of another user, whose jobs we may not see
            found.extend(await _of_user(store, dest, dest.at(user.path)))

    users = await directories(store, _beside(dest).path)
    await for_each(users, ask, workers=store.traits.workers)
    return found


async def _of_user(store: Store, dest: Address, tmp: Address) -> list[StagingLayout]:
    found: list[StagingLayout] = []
    for info in await directories(store, tmp.path):
        with suppress(OptionError):  # no name of ours
            found.append(StagingLayout(dest, name_of(info), tmp=tmp))
    return found


async def attempts_in(store: Store, job: L) -> list[L]:
    """Return the attempts of a job with directories.

    Raises ``StoreError``.
    """
    names = [name_of(info) for info in await directories(store, job.attempts_dir)]
    numbers = sorted({int(n) for n in names if n.isascii() and n.isdigit() and len(n) <= 4})
    return [job.of_attempt(number) for number in numbers]


async def directories(store: Store, path: str) -> list[Info]:
    """Return the directories in ``path``; empty if it is missing or a file."""
    try:
        return [info for info in await list_all(store, path) if info.is_dir]
    except (NotFoundError, PreconditionError):
        return []


def name_of(info: Info) -> str:
    """Return the last component of a path."""
    return info.path.rpartition("/")[2]


async def _see(run: UploadContext, layout: UploadLayout, *, lives: bool) -> UploadAttempt | None:
    """Return a job attempt, or ``None`` unless it writes to this destination."""
    other = replace(
        run, layout=layout, environment=replace(run.environment, pending=store_of(run, layout))
    )
    if isinstance(layout, StagingLayout):
        data = await read_if_there(other, layout.record, MAX_RECORD_BYTES)
        record = record_of(layout, data)
        if not _is_beside(layout) and (record is None or not _is_here(layout, record)):
            return None
        other = replace(other, layout=named_by(layout, record))
    return await _status(other, lives=lives)


def record_of(layout: UploadLayout, data: bytes | None) -> UploadRecord | None:
    """Return the parsed record; ``None`` if it is missing or unreadable."""
    if data is not None:
        with suppress(ManifestError):
            return decode_upload_record(data, layout.pending_url(layout.record))
    return None


def named_by(layout: L, record: UploadRecord | None) -> L:
    """Return the layout with the staging committer's name from the record."""
    if record is None or record.committer not in STAGING_NAMES:
        return layout
    return replace(layout, committer=record.committer)


def _is_here(layout: UploadLayout, record: UploadRecord) -> bool:
    """Return whether a commit's files go to this destination.

    The schemes ``s3`` and ``s3a`` are equal.
    """
    there = str(record.options.get("destination") or "")
    return there.partition("://")[2] == layout.dest.encode().partition("://")[2]


async def _status(run: UploadContext, *, lives: bool) -> UploadAttempt | None:
    """Return a job attempt with its status; ``None`` if nothing is there."""
    named = run.layout.job_id, run.layout.attempt
    try:
        standing = await read_state(run)
    except _UNREADABLE as error:
        stopped = JobStatus(*named, JobState.STOPPED, error=str(error), alive=False)
        return UploadAttempt(run.layout, stopped)
    if standing is not None:
        places = str(standing.record.options.get("places") or "")
        known = await status_of(run.host, run.layout, standing)
        if not standing.is_committed:
            known = _warned(run, known, standing.record.started_ms / 1000)
        return UploadAttempt(run.layout, known, places)
    try:
        found = await find_sets(run)
        sets = len(found)
    except NotFoundError:
        return None  # it has just ended, or only its prefix is listed
    if not sets and await is_phantom(run.pending, run.layout.attempt_dir):
        return None
    if not lives:
        return UploadAttempt(run.layout, JobStatus(*named, JobState.UNKNOWN, tasks=sets))
    known = await status_without_commit(run, run.pending, sets)
    oldest = min((info.modified for info in found.values()), default=0.0)
    return UploadAttempt(run.layout, _warned(run, known, oldest))


def _warned(run: UploadContext, known: JobStatus, since: float) -> JobStatus:
    """Add to the status of a job when its uploads end of themselves, if soon.

    ``since`` is a time at which they were there, which is at most a little later than the last.
    """
    rules = run.store.traits.multipart
    if rules is None or not rules.expires or not since:
        return known
    if run.host.now() - since < rules.expires * _SOON:
        return known
    end = datetime.fromtimestamp(since + rules.expires, UTC)
    text = f"what its tasks have uploaded ends on {end:%Y-%m-%d %H:%M} UTC: finish the job before"
    return replace(known, why=f"{known.why}; {text}" if known.why else text)

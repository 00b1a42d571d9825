"""Find the jobs of committers that complete uploads, and the facts that listings show of them.

Magic jobs are below the destination, and so are staging jobs unless their pending sets were put
elsewhere. To find the latter, a caller has to give that place and the job id.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from asynccommit.commit.by_rename.phantom_prefixes import is_phantom
from asynccommit.commit.by_upload.jobs import (
    attempts_in,
    directories,
    jobs_below,
    name_of,
    named_by,
    record_of,
)
from asynccommit.commit.by_upload.status import is_closed
from asynccommit.commit.hints import STAGING
from asynccommit.commit.layout import OUTCOME, TEMPORARY
from asynccommit.commit.layout_uploads import MagicLayout, StagingLayout, UploadLayout
from asynccommit.errors import NotFoundError, OptionError, PreconditionError
from asynccommit.formats.magic_paths import MAGIC
from asynccommit.formats.upload_record import MAX_RECORD_BYTES
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Store
from asynccommit.stores.tree import list_all
from asynccommit.stores.urls import Address


@dataclass(frozen=True, slots=True)
class UploadAttemptFacts:
    """The facts that the directory of a job attempt shows.

    Attributes:
        layout: the paths of the attempt.
        sets: number of its tasks that have committed.
        begun: whether its commit has begun.
        ended: whether a commit or rollback has ended, or an abort has begun, without its clean-up.
        closed: whether it was an abort.
        modified: when one of its files last changed, in seconds since the epoch; 0.0 if unknown.
    """

    layout: UploadLayout
    sets: int = 0
    begun: bool = False
    ended: bool = False
    closed: bool = False
    modified: float = 0.0


async def find_uploads_jobs(store: Store, dest: Address) -> list[UploadAttemptFacts]:
    """Return the job attempts of uploads below a destination.

    Raises ``StoreError``.
    """
    return await _see_all(store, await jobs_below(store, dest))


async def find_staged(
    store: Store, dest: Address, place: Address, job_id: str
) -> list[UploadAttemptFacts]:
    """Return the attempts of one staging job of any user. Raises ``StoreError``.

    Args:
        store: the store of the pending sets.
        dest: the destination.
        place: the staging path from the options, which contains the users' directories.
        job_id: the job.
    """
    try:
        jobs = await _of_users(store, dest, place, job_id)
    except OptionError:  # a foreign name
        return []
    return await _see_all(store, jobs)


async def _of_users(
    store: Store, dest: Address, place: Address, job_id: str
) -> list[StagingLayout]:
    return [
        StagingLayout(dest, job_id, tmp=place.at(user.path))
        for user in await directories(store, place.path)
    ]


async def see(store: Store, layout: UploadLayout) -> UploadAttemptFacts | None:
    """Return the facts about a job attempt, or ``None`` if there is none.

    The result is also ``None`` if its directory is a mere prefix.

    Args:
        store: the store of its pending sets.
        layout: the paths of the attempt.

    Raises ``StoreError``.
    """
    try:
        infos = await list_all(store, layout.attempt_dir)
    except (NotFoundError, PreconditionError):
        return None
    names = {name_of(info) for info in infos if not info.is_dir}
    if not names and await is_phantom(store, layout.attempt_dir):
        return None
    record = await _record(store, layout) if _last(layout.record) in names else None
    sets = sum(layout.is_set(name) for name in names)
    closed = record is not None and is_closed(record)
    decided = any(name.removeprefix("_").startswith(OUTCOME) for name in names)
    return UploadAttemptFacts(
        named_by(layout, record_of(layout, record)),
        sets=sets,
        begun=record is not None and not closed,
        ended=closed or (record is None and decided and not sets),
        closed=closed,
        modified=max((info.modified for info in infos), default=0.0),
    )


def magic_layout_of(place: Address) -> MagicLayout | None:
    """Return the magic job attempt that a path lies in, or ``None``."""
    names = place.path.split("/")
    for at, name in enumerate(names[:-2]):
        job_id, number = name.removeprefix(MAGIC), names[at + 2]
        if name.startswith(MAGIC) and names[at + 1] == f"job-{job_id}" and _is_attempt(number):
            with suppress(OptionError):
                return MagicLayout(place.at("/".join(names[:at]) or "/"), job_id, int(number))
    return None


def upload_place_of(place: Address) -> Address | None:
    """Return the destination of the upload jobs that a path belongs to.

    The path may lie in a job's directory or above one. The result is ``None`` for a path that is no
    part of such a directory.
    """
    names = place.path.split("/")
    for at, name in enumerate(names):
        if name.startswith(MAGIC) or (name == TEMPORARY and names[at + 1 : at + 2] == [STAGING]):
            return place.at("/".join(names[:at]) or "/")
    return None


async def _see_all(store: Store, jobs: Sequence[UploadLayout]) -> list[UploadAttemptFacts]:
    found: list[UploadAttemptFacts] = []

    async def look(job: UploadLayout) -> None:
        for layout in await attempts_in(store, job):
            seen = await see(store, layout)
            found.extend([] if seen is None else [seen])

    await for_each(jobs, look, workers=store.traits.workers)
    return found


async def _record(store: Store, layout: UploadLayout) -> bytes | None:
    try:
        return await store.get(layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return None


def _is_attempt(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 4


def _last(path: str) -> str:
    return path.rpartition("/")[2]

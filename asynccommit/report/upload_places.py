"""Jobs of the committers that complete uploads: where they are, and what a listing says of each.

Magic jobs are below the destination, and so are staging jobs unless their pending sets were put
elsewhere; who looks for those has to say where, and which job.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from asynccommit.commands import STAGING
from asynccommit.errors import (
    DeniedError,
    ManifestError,
    NotFoundError,
    OptionError,
    PreconditionError,
)
from asynccommit.formats.magic_paths import MAGIC
from asynccommit.formats.upload_record import MAX_RECORD_BYTES, decode_upload_record
from asynccommit.job import OUTCOME, TEMPORARY
from asynccommit.parallel import for_each, list_all
from asynccommit.stages.uploads.standing import is_closed
from asynccommit.store import Info, Store
from asynccommit.upload_job import MagicLayout, StagingLayout, UploadLayout
from asynccommit.urls import Address

L = TypeVar("L", bound=UploadLayout)

STAGING_NAMES = ("directory", "partitioned")
"""The names of staging committers in records."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the directory of a job attempt says.

    Attributes:
        layout: its paths.
        sets: how many of its tasks have committed.
        begun: whether its commit has begun.
        ended: a commit or rollback of it has ended, or an abort begun, but for the clean-up.
        closed: it was an abort.
        modified: when one of its files changed last, seconds since the epoch; 0.0 if unknown.
    """

    layout: UploadLayout
    sets: int = 0
    begun: bool = False
    ended: bool = False
    closed: bool = False
    modified: float = 0.0


async def find_uploads_jobs(store: Store, dest: Address) -> list[Seen]:
    """Return the job attempts of uploads below a destination. Raises ``StoreError``."""
    layouts: list[UploadLayout] = []

    async def look(job_id: str) -> None:
        with suppress(OptionError):  # no name of ours
            layouts.extend(await _attempts(store, MagicLayout(dest, job_id)))

    names = [_name(info) for info in await _directories(store, dest.path)]
    jobs = [name.removeprefix(MAGIC) for name in names if name.startswith(MAGIC)]
    await for_each(jobs, look, workers=store.traits.workers)
    if TEMPORARY in names:
        layouts += await staging_layouts(store, dest, dest.child(TEMPORARY, STAGING))
    return await _see_all(store, layouts)


async def find_staged(store: Store, dest: Address, place: Address, job_id: str) -> list[Seen]:
    """Return the attempts of one staging job, whosever it is. Raises ``StoreError``.

    Args:
        store: where the pending sets are.
        dest: the destination.
        place: what options call the path of staging: users' directories are in it.
        job_id: the job.
    """
    return await _see_all(store, await staging_layouts(store, dest, place, job_id))


async def staging_layouts(
    store: Store, dest: Address, place: Address, job_id: str | None = None
) -> list[StagingLayout]:
    """Return the attempts of staging jobs whose pending sets are below ``place``."""
    found: list[StagingLayout] = []

    async def look(user: Info) -> None:
        tmp = place.at(user.path)
        names: Iterable[str] = [job_id] if job_id else map(_name, await _of_user(store, user))
        for name in names:
            with suppress(OptionError):  # no name of ours
                found.extend(await _attempts(store, StagingLayout(dest, name, tmp=tmp)))

    await for_each(await _directories(store, place.path), look, workers=store.traits.workers)
    return found


async def see(store: Store, layout: UploadLayout) -> Seen | None:
    """Return what is known of a job attempt; ``None`` if it has no directory.

    Args:
        store: where its pending sets are.
        layout: its paths.

    Raises ``StoreError``.
    """
    try:
        infos = await list_all(store, layout.attempt_dir)
    except (NotFoundError, PreconditionError):
        return None
    names = {_name(info) for info in infos if not info.is_dir}
    record = await _record(store, layout) if _last(layout.record) in names else None
    sets = sum(layout.is_set(name) for name in names)
    closed = record is not None and is_closed(record)
    decided = any(name.removeprefix("_").startswith(OUTCOME) for name in names)
    return Seen(
        _named_by(layout, record),
        sets=sets,
        begun=record is not None and not closed,
        ended=closed or (record is None and decided and not sets),
        closed=closed,
        modified=max((info.modified for info in infos), default=0.0),
    )


def magic_layout_of(place: Address) -> MagicLayout | None:
    """Return the magic job attempt that a path lies in, ``None`` if it names none."""
    names = place.path.split("/")
    for at, name in enumerate(names[:-2]):
        job_id, number = name.removeprefix(MAGIC), names[at + 2]
        if name.startswith(MAGIC) and names[at + 1] == f"job-{job_id}" and _is_attempt(number):
            with suppress(OptionError):
                return MagicLayout(place.at("/".join(names[:at]) or "/"), job_id, int(number))
    return None


def upload_place_of(place: Address) -> Address | None:
    """Return the destination of the jobs in whose directories a path is, or that are in it.

    ``None`` for a path that is no part of any such directory.
    """
    names = place.path.split("/")
    for at, name in enumerate(names):
        if name.startswith(MAGIC) or (name == TEMPORARY and names[at + 1 : at + 2] == [STAGING]):
            return place.at("/".join(names[:at]) or "/")
    return None


async def _see_all(store: Store, layouts: Iterable[UploadLayout]) -> list[Seen]:
    found: list[Seen] = []

    async def look(layout: UploadLayout) -> None:
        seen = await see(store, layout)
        found.extend([] if seen is None else [seen])

    await for_each(list(layouts), look, workers=store.traits.workers)
    return found


async def _attempts(store: Store, layout: L) -> list[L]:
    names = [_name(info) for info in await _directories(store, layout.attempts_dir)]
    return [layout.of_attempt(int(name)) for name in sorted(names) if _is_attempt(name)]


async def _of_user(store: Store, user: Info) -> list[Info]:
    try:
        return await _directories(store, user.path)
    except DeniedError:
        return []  # of another user, whose jobs are not ours to see


async def _directories(store: Store, path: str) -> list[Info]:
    try:
        return [info for info in await list_all(store, path) if info.is_dir]
    except (NotFoundError, PreconditionError):
        return []


async def _record(store: Store, layout: UploadLayout) -> bytes | None:
    try:
        return await store.get(layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return None


def _named_by(layout: UploadLayout, record: bytes | None) -> UploadLayout:
    """Return the layout with the name of the staging committer that the commit began with."""
    if record is not None and isinstance(layout, StagingLayout):
        with suppress(ManifestError):
            name = decode_upload_record(record, layout.record).committer
            if name in STAGING_NAMES:
                return replace(layout, committer=name)
    return layout


def _is_attempt(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 4


def _name(info: Info) -> str:
    return _last(info.path)


def _last(path: str) -> str:
    return path.rpartition("/")[2]

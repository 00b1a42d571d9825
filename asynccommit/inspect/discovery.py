"""Find the jobs under a destination and their progress; read-only."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from asynccommit.api import JobRef, OptionsLike, StorageOptions
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_upload.committer import UploadCommitter
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
from asynccommit.commit.job.cleanup import is_phantom
from asynccommit.commit.layouts.file_output import FileLayout, is_number
from asynccommit.commit.layouts.layout import (
    ENDED,
    JOB_OWNER,
    MANIFEST_SUFFIX,
    OUTCOME,
    RECORD,
    TEMPORARY,
    Layout,
)
from asynccommit.commit.layouts.uploads import MagicLayout, StagingLayout, UploadLayout
from asynccommit.commit.ownership import shared_directories
from asynccommit.commit.ownership.directory_owner import as_found
from asynccommit.commit.ownership.status import is_end
from asynccommit.commit.registry import Committer
from asynccommit.errors import NotFoundError, OptionError, PreconditionError
from asynccommit.formats import upload_record
from asynccommit.formats.commit_record import MAX_RECORD_BYTES, is_blank
from asynccommit.formats.magic_paths import MAGIC
from asynccommit.inspect.errors import NothingThereError, SeveralJobsError
from asynccommit.options.job import Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Info, Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, close_store, open_store
from asynccommit.stores.tree import is_there, list_all, read_if_there
from asynccommit.stores.urls import Address, parse_url


@dataclass(frozen=True, slots=True)
class FoundJob:
    """One attempt of a job that is under a destination.

    Attributes:
        layout: the paths of the attempt.
        present: whether the directory of the attempt exists.
        manifests: number of tasks that have committed: manifests, or pending sets.
        begun: whether a job commit has begun.
        ended: whether a commit or rollback has ended and its clean-up was interrupted.
        closed: whether an abort has begun; it was interrupted or is still running.
        modified: when the directory last changed, in seconds since the epoch; 0.0 if unknown.
        staged: whether tasks staged files for places outside the destination.
        classic: whether it is a job of FileOutputCommitter, which has no manifests.
        bare: whether its set-up was cut short before anything but its directory, or on stores
            without directories its owner, was there.
    """

    layout: Layout
    present: bool = False
    manifests: int = 0
    begun: bool = False
    ended: bool = False
    closed: bool = False
    modified: float = 0.0
    staged: bool = False
    classic: bool = False
    bare: bool = False

    @property
    def name(self) -> str:
        """The job id, and the attempt if it is not the first."""
        attempt = f", attempt {self.layout.attempt}" if self.layout.attempt else ""
        return self.layout.job_id + attempt

    @property
    def committer(self) -> str:
        """The name of the job's committer."""
        return committer_of(self.layout)


def committer_of(layout: Layout) -> str:
    """Return the name of the committer whose jobs have such a layout."""
    if isinstance(layout, FileLayout):
        return "file_v1"
    return layout.committer if isinstance(layout, UploadLayout) else "manifest"


_ATTEMPT = re.compile("[0-9]{2,4}", re.ASCII)
_ENDED = re.compile(rf"[0-9]{{2,4}}\.({'|'.join(ENDED)})", re.ASCII)


@asynccontextmanager
async def open_place(place: Address, storage: StorageOptions = None) -> AsyncIterator[Wrapped]:
    """Open the store of a place for reading. Raises ``UnsupportedError``."""
    store = open_store(place, StoreSettings(rng=this_host().rng, options=storage or {}))
    try:
        yield store
    finally:
        await close_store(store)


@asynccontextmanager
async def open_stores(
    layout: Layout, storage: StorageOptions = None
) -> AsyncIterator[tuple[Wrapped, Wrapped]]:
    """Open the stores of a job's destination and of its own files.

    See ``open_place``.
    """
    async with open_place(layout.dest, storage) as store:
        if not isinstance(layout, UploadLayout) or layout.pending.same_store(layout.dest):
            yield store, store
            return
        async with open_place(layout.pending, storage) as pending:
            yield store, pending


@asynccontextmanager
async def open_layout(
    layout: Layout,
    options: OptionsLike,
    storage: StorageOptions = None,
    committer: str | None = None,
) -> AsyncIterator[Committer]:
    """Open the committer of a job, in the layout where the job was found.

    ``committer`` names the committer if the layout fits several.
    """
    if committer is None and isinstance(layout, UploadLayout | FileLayout):
        committer = committer_of(layout)
    staging = layout.tmp if isinstance(layout, StagingLayout) else None
    ref = JobRef(
        str(layout.dest),
        layout.job_id,
        attempt=layout.attempt,
        options=options,
        storage_options=storage,
        committer=committer,
        pending=None if staging is None else str(staging),
    )
    async with ref.open() as made:
        if isinstance(layout, UploadLayout):
            if isinstance(made, UploadCommitter):
                made.layout = layout
        elif isinstance(made, ManifestCommitter):
            made.layout = layout
        yield made


async def find_jobs(store: Store, dest: Address) -> list[FoundJob]:
    """Return the job attempts under a destination, ordered by name.

    Directories that belong to no job are skipped, and so are jobs of the staging committers whose
    pending sets are not below the destination. Raises ``StoreError``.
    """
    found: list[FoundJob] = []
    for info in await children(store, Layout(dest, "any").temporary):
        if info.is_dir:
            found += await _attempts(store, dest, info.path.rpartition("/")[2])
    if any(job.classic for job in found):
        found = await _with_names(store, dest, found)
    if store.traits.multipart is not None:
        found += await _see_all(store, await jobs_below(store, dest))
    return sorted(found, key=lambda job: (job.layout.job_id, job.layout.attempt))


async def _with_names(store: Store, dest: Address, found: list[FoundJob]) -> list[FoundJob]:
    """Name jobs of FileOutputCommitter after their tasks, if the tasks tell."""
    named = await shared_directories.find_jobs(store, dest)
    if not named:
        return found
    begun = {(job.layout.job_id, job.layout.attempt) for job in found if job.begun}
    classic = [
        FoundJob(
            layout,
            present=True,
            manifests=tasks,
            begun=(layout.job_id, layout.attempt) in begun,
            classic=True,
        )
        for layout, tasks in named.items()
    ]
    return [
        job for job in found if not (job.classic or (job.bare and _named(job, named)))
    ] + classic


def _named(job: FoundJob, layouts: Iterable[Layout]) -> bool:
    """Return whether one of ``layouts`` is the job attempt."""
    layout = job.layout
    return (layout.job_id, layout.attempt) in [(one.job_id, one.attempt) for one in layouts]


async def find_jobs_at(
    dest: Address, storage: StorageOptions, options: Options, job_id: str | None
) -> list[FoundJob]:
    """Return the job attempts under a destination and in places from options.

    Args:
        dest: the destination.
        storage: options of the store.
        options: tell where the staging committers keep pending sets.
        job_id: the requested job, if any; jobs of other destinations may be in the same place.

    Raises ``StoreError``.
    """
    async with open_place(dest, storage) as store:
        found = await find_jobs(store, dest)
        place = options.uploads.staging_path
        if store.traits.multipart is None or place is None or job_id is None:
            return found
    there = parse_url(place)
    async with open_place(there, storage) as pending:
        staged = await _find_staged(pending, dest, there, job_id)
    attempts = {job.layout.attempt_dir for job in found}
    return found + [job for job in staged if job.layout.attempt_dir not in attempts]


async def find_rubbish(store: Store, dest: Address) -> dict[str, Layout]:
    """Return directories of ended job attempts that are not fully deleted.

    Each directory comes with its job attempt; the empty directory of a job is one too. Raises
    ``StoreError``.
    """
    found: dict[str, Layout] = {}
    for info in await children(store, Layout(dest, "any").temporary):
        inside = await children(store, info.path) if info.is_dir else []
        job = info.path.rpartition("/")[2]
        if info.is_dir and not inside and await _is_bare(store, info.path):
            found[info.path] = Layout(dest, job)
        for child in inside:
            name = child.path.rpartition("/")[2]
            if _ENDED.fullmatch(name):
                layout = Layout(dest, job, int(name.partition(".")[0]))
                found[child.path] = await as_found(store, layout)
    if found:  # of a job of FileOutputCommitter, whose tasks are still there
        classic = {one.job_id: one for one in await shared_directories.find_jobs(store, dest)}
        found = {
            path: replace(classic[one.job_id], attempt=one.attempt)
            if one.job_id in classic
            else one
            for path, one in found.items()
        }
    return dict(sorted(found.items()))


async def _is_bare(store: Store, path: str) -> bool:
    """Return whether an empty directory in ``_temporary`` is a job's."""
    return not is_number(path.rpartition("/")[2]) and not await is_phantom(store, path)


def choose(
    found: Sequence[FoundJob],
    dest: Address,
    job_id: str | None,
    attempt: int | None,
    *,
    classic: bool = False,
) -> FoundJob:
    """Return the one requested job attempt.

    ``classic`` selects a job of FileOutputCommitter.

    Raises:
        NothingThereError: there is no such job attempt.
        SeveralJobsError: there are several.
    """
    kind = [job for job in found if job.classic is classic and _is_whole(job)]
    ours = [job for job in kind if job_id in (None, job.layout.job_id)]
    meant = [job for job in ours if attempt in (None, job.layout.attempt)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        names = {job.layout.job_id for job in meant}
        option = "--job-id" if len(names) > 1 else "--attempt"
        shown = "; ".join(job.name for job in meant[:20])
        raise SeveralJobsError(meant, f"{len(meant)} jobs are under {dest}: {shown}. Give {option}")
    raise NothingThereError(_missing(found, dest, job_id, attempt))


async def children(store: Store, path: str) -> list[Info]:
    """Return the entries of a directory; empty if there is no directory."""
    try:
        return await list_all(store, path)
    except (NotFoundError, PreconditionError):
        return []


def layout_of(place: Address) -> Layout | None:
    """Return the job attempt that a path lies in, or ``None``.

    The result is ``None`` if the path names no job and attempt. The job is named after its
    directory; see ``as_found``.
    """
    parts = place.path.split("/")
    if TEMPORARY not in parts:
        return None
    start = len(parts) - 1 - parts[::-1].index(TEMPORARY)
    inside = parts[start + 1 : start + 3]
    if len(inside) < 2 or not _ATTEMPT.fullmatch(inside[1]):
        return None
    dest = place.at("/".join(parts[:start]) or "/")
    return Layout(dest, inside[0], int(inside[1]))


async def look_at(store: Store, layout: Layout, modified: float = 0.0) -> FoundJob | None:
    """Return the facts about a job attempt, or ``None`` if there is no job.

    Args:
        store: the store of the job's own files.
        layout: the paths of the attempt.
        modified: the modification time that the store gives for its directory.
    """
    if isinstance(layout, UploadLayout):
        return await _look_at_uploads(store, layout)
    paths = [info.path for info in await children(store, layout.attempt_dir)]
    names = {path.rpartition("/")[2] for path in paths}
    if store.traits.directories:
        bare = not names and await is_there(store, layout.attempt_dir)
    else:
        bare = names == {JOB_OWNER}
    ended = any(is_end(layout, path) for path in paths)  # on buckets it is deleted last
    begun = bare or ended or names & {"manifests", "tasks", RECORD}
    if not begun or await is_phantom(store, layout.attempt_dir):
        return None
    manifests = await children(store, layout.manifests_dir)
    return FoundJob(
        layout,
        present=True,
        manifests=sum(info.path.endswith(MANIFEST_SUFFIX) for info in manifests),
        begun=RECORD in names and await _has_begun(store, layout),
        ended=ended,
        modified=modified,
        staged=bool(await children(store, layout.absolute_dir)),
        bare=bare,
    )


async def _has_begun(store: Store, layout: Layout) -> bool:
    """Return whether there is a commit record; an empty one was never written."""
    record = await read_if_there(store, layout.record, MAX_RECORD_BYTES)
    return record is not None and not is_blank(record)


async def _attempts(store: Store, dest: Address, name: str) -> list[FoundJob]:
    jobs: list[FoundJob] = []
    first = await as_found(store, Layout(dest, name))
    for info in await children(store, first.job_dir):
        child = info.path.rpartition("/")[2]
        if info.is_dir and _ATTEMPT.fullmatch(child):
            job = await look_at(store, replace(first, attempt=int(child)), info.modified)
            jobs += [job] if job is not None else []
        elif name.isdigit() and (child == TEMPORARY or child.startswith("task_")):
            if await is_phantom(store, info.path):
                continue
            return [FoundJob(first, present=True, classic=True)]
    return jobs


def _is_whole(job: FoundJob) -> bool:
    """Return whether the job is identified.

    A job of FileOutputCommitter is identified only by its tasks.
    """
    return not job.classic or isinstance(job.layout, FileLayout)


def _missing(
    found: Sequence[FoundJob], dest: Address, job_id: str | None, attempt: int | None
) -> str:
    which = "job" if job_id is None else f"job {job_id}"
    if attempt is not None:
        which += f", attempt {attempt}"
    text = f"no {which} is under {dest}"
    others = [job.name for job in found if not job.classic]
    if others:
        return f"{text}; there is {', '.join(others[:20])}"
    if found:
        return (
            f"{text}, but there is a job of Hadoop's FileOutputCommitter, which has no "
            "manifests: use --committer file_v1"
        )
    return text


# --- jobs of uploads -------------------------------------------------------------------------


async def _find_staged(store: Store, dest: Address, place: Address, job_id: str) -> list[FoundJob]:
    """Return the attempts of a staging job of any user.

    Raises ``StoreError``.

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


async def _look_at_uploads(store: Store, layout: UploadLayout) -> FoundJob | None:
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
    record = None
    if layout.record.rpartition("/")[2] in names:
        record = await read_if_there(store, layout.record, upload_record.MAX_RECORD_BYTES)
    sets = sum(layout.is_set(name) for name in names)
    closed = record is not None and is_closed(record)
    decided = any(name.removeprefix("_").startswith(OUTCOME) for name in names)
    return FoundJob(
        named_by(layout, record_of(layout, record)),
        present=True,
        manifests=sets,
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

    The path may lie in a job's directory or above one. The result is ``None`` for a path outside
    such a directory.
    """
    names = place.path.split("/")
    for at, name in enumerate(names):
        if name.startswith(MAGIC) or (name == TEMPORARY and names[at + 1 : at + 2] == [STAGING]):
            return place.at("/".join(names[:at]) or "/")
    return None


async def _see_all(store: Store, jobs: Sequence[UploadLayout]) -> list[FoundJob]:
    found: list[FoundJob] = []

    async def look(job: UploadLayout) -> None:
        for layout in await attempts_in(store, job):
            seen = await _look_at_uploads(store, layout)
            found.extend([] if seen is None else [seen])

    await for_each(jobs, look, workers=store.traits.workers)
    return found


def _is_attempt(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 4

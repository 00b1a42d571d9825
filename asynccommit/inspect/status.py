"""Report the jobs under a destination, their progress, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from asynccommit.api import StorageOptions
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.load_sets import load_sets
from asynccommit.commit.by_upload.loaded import LoadedSets
from asynccommit.commit.by_upload.open_uploads import missing_uploads
from asynccommit.commit.context import CommitContext, Environment
from asynccommit.commit.driver.liveness import status_without_commit
from asynccommit.commit.hints import job_command
from asynccommit.commit.job.success import marker_bytes
from asynccommit.commit.layouts.file_output import recorded
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.move import PREFIX
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.commit.ownership.status import read_state
from asynccommit.commit.planning.entries import decode_entries
from asynccommit.errors import AsyncCommitError, CommitError, ManifestError, NotFoundError
from asynccommit.formats.manifest import SUFFIX, decode_manifest
from asynccommit.formats.success import decode_success
from asynccommit.inspect.advice import Advice, on_abort, on_resume
from asynccommit.inspect.discovery import (
    FoundJob,
    children,
    committer_of,
    find_jobs_at,
    find_rubbish,
    open_place,
    open_stores,
)
from asynccommit.inspect.errors import NothingThereError
from asynccommit.inspect.files import moment
from asynccommit.options.job import MAX_MANIFEST_BYTES, Options
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import Host, this_host
from asynccommit.runtime.terminal import count_of
from asynccommit.stores.base import Store
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.tree import walk
from asynccommit.stores.urls import Address

_NOT_SET_UP = "nothing: its set-up was cut short"
_JUST_ENDED = "it has just ended"
_AT_ONCE = 8
"""Number of jobs that are read at the same time."""


@dataclass(frozen=True, slots=True)
class JobView:
    """One job attempt as ``status`` shows it.

    Attributes:
        status: the status of the job; ``None`` if its record cannot be read.
        layout: the paths of the job.
        age: seconds since its commit began or, if it has not, since its directory changed.
        silent: seconds since the owner's last heartbeat.
        problem: why the status cannot be determined; ``""`` if it can.
        resume: what a resume would do.
        abort: what an abort would do.
    """

    status: JobStatus | None
    layout: Layout
    age: float | None = None
    silent: float | None = None
    problem: str = ""
    resume: Advice = field(default_factory=lambda: Advice(""))
    abort: Advice = field(default_factory=lambda: Advice(""))

    @property
    def committer(self) -> str:
        """The name of the job's committer."""
        return committer_of(self.layout)

    @property
    def name(self) -> str:
        """The job id, and the attempt if it is not the first."""
        attempt = f", attempt {self.layout.attempt}" if self.layout.attempt else ""
        return self.layout.job_id + attempt

    @property
    def needs_help(self) -> bool:
        """Return whether somebody must finish or abort the job, or examine it."""
        if self.status is None:
            return self.problem != _JUST_ENDED
        return self.status.unfinished or self.status.state is JobState.DEAD

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        named = {"job_id": self.layout.job_id, "attempt": self.layout.attempt}
        return {
            **(named if self.status is None else self.status.to_json()),
            "committer": self.committer,
            "age": self.age,
            "silent": self.silent,
            "problem": self.problem,
            "resume": {"does": self.resume.does, "command": self.resume.command},
            "abort": {"does": self.abort.does, "command": self.abort.command},
        }


@dataclass(frozen=True, slots=True)
class LastSuccess:
    """The last successful job at a destination, from its ``_SUCCESS``.

    Attributes:
        at_ms: the time of the marker, in milliseconds since the epoch.
        job_id: the job; empty if the marker does not name one, as those of classic committers.
    """

    at_ms: int
    job_id: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation under a destination.

    Attributes:
        dest: the destination.
        last: the last job that has succeeded there; ``None`` without ``_SUCCESS``.
        jobs: the job attempts that need or may need attention.
        rubbish: half-deleted directories of jobs that have ended: decoded path -> the command that
            deletes it.
        classic: ids of jobs of Hadoop's classic committer.
    """

    dest: Address
    jobs: Sequence[JobView] = ()
    rubbish: Mapping[str, str] = field(default_factory=dict)
    classic: Sequence[str] = ()
    last: LastSuccess | None = None

    @property
    def sound(self) -> bool:
        """Return whether no job waits for somebody: each runs, or has ended."""
        return not any(job.needs_help for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "destination": str(self.dest),
            "sound": self.sound,
            "last_success": None if self.last is None else asdict(self.last),
            "jobs": [job.to_json() for job in self.jobs],
            "rubbish": [{"path": path, "command": values} for path, values in self.rubbish.items()],
            "classic": list(self.classic),
        }


async def look_under(
    dest: Address,
    storage: StorageOptions = None,
    options: Options | None = None,
    job_id: str | None = None,
    attempt: int | None = None,
) -> Situation:
    """Return the situation under a destination; change nothing.

    Args:
        dest: the destination.
        storage: options of the store.
        options: tell where the staging committers keep pending sets.
        job_id: the only job to read; all by default.
        attempt: the only attempt to read; all by default.

    Raises ``NothingThereError`` if the directory does not exist, and ``StoreError``.
    """
    async with open_place(dest, storage) as store:
        await _need_place(store, dest, options)
        there = await find_jobs_at(dest, storage, options or Options(), job_id)
        found = [job for job in there if _is_meant(job.layout, job_id, attempt)]
        views: dict[str, JobView] = {}

        async def look(job: FoundJob) -> None:
            async with open_stores(job.layout, storage) as (_, pending):
                views[job.layout.attempt_dir] = await view(store, job, pending)

        ours = [job for job in found if not job.classic]
        await for_each(ours, look, workers=_AT_ONCE)
        rubbish = await find_rubbish(store, dest)
        return Situation(
            dest,
            [views[job.layout.attempt_dir] for job in ours],
            {
                path: job_command("abort", layout)
                for path, layout in rubbish.items()
                if _is_meant(layout, job_id, attempt)
            },
            [job.layout.job_id for job in found if job.classic and not job.begun],
            await _last_success(store, dest),
        )


async def _last_success(store: Store, dest: Address) -> LastSuccess | None:
    path = Layout(dest, "any").success
    data = await marker_bytes(store, path)
    if data is None:
        return None
    with suppress(ManifestError):
        marker = decode_success(data, path)
        return LastSuccess(marker.timestamp_ms, marker.job_id) if marker.success else None
    try:  # the empty marker of a classic committer
        return LastSuccess(int((await store.head(path)).modified * 1000))
    except NotFoundError:
        return None


async def _need_place(store: Store, dest: Address, options: Options | None) -> None:
    try:
        await store.head(dest.path)
    except NotFoundError:
        elsewhere = options is not None and options.uploads.staging_path is not None
        if not elsewhere:  # staging elsewhere: the destination may be missing before the commit
            raise NothingThereError(f"{dest} does not exist") from None


def _is_meant(layout: Layout, job_id: str | None, attempt: int | None) -> bool:
    return job_id in (None, layout.job_id) and attempt in (None, layout.attempt)


async def view(
    store: Store, job: FoundJob, pending: Store | None = None, host: Host | None = None
) -> JobView:
    """Return how far a job is; report what cannot be read as a problem.

    Args:
        store: the store of its destination.
        job: the job.
        pending: the store of its own files, if that is another one.
        host: its clock tells ages; the real one by default.
    """
    layout, host = job.layout, host or this_host()
    try:
        if isinstance(layout, UploadLayout):
            status, moved = await _look_at_uploads(cast(MultipartStore, store), job, pending, host)
        else:
            status, moved = await _look(store, job, host)
            if job.begun and layout.job_id.startswith(PREFIX):
                layout = await _as_recorded(store, layout)
    except AsyncCommitError as error:
        causes = error.failures if isinstance(error, CommitError) else ()
        return JobView(None, layout, problem=str(next(iter(causes), error)))
    if status is None:
        return JobView(None, layout, problem=_JUST_ENDED)
    now = host.now()
    began = status.started_ms / 1000 or job.modified
    return JobView(
        status,
        layout,
        age=max(now - began, 0.0) if began else None,
        silent=max(now - status.seen_ms / 1000, 0.0) if status.seen_ms else None,
        resume=on_resume(status, layout, *moved) if not job.bare else Advice(_NOT_SET_UP),
        abort=on_abort(status, layout, moved[0]),
    )


async def _as_recorded(store: Store, layout: Layout) -> Layout:
    """Return the layout of the commit record, which names a move's journal."""
    found = await read_state(store, layout)
    return layout if found is None else recorded(layout, found.record.options)


async def how_far(store: Store, job: FoundJob, facts: dict[str, Any]) -> str:
    """Describe a commit that has begun, with the command that continues it.

    Args:
        store: the store of its destination.
        job: the job.
        facts: receives all other facts.
    """
    text = "a commit of this job has begun"
    found = await view(store, job)
    status = found.status
    if status is None:
        return f"{text}, but its progress is unknown: {found.problem}"
    facts.update(state=str(status.state), owner=status.owner)
    if not isinstance(job.layout, UploadLayout):  # a commit of uploads has no owner
        facts["epoch"] = status.epoch
    facts.update(committed_tasks=status.tasks, files=status.files, bytes=status.bytes)
    if status.done is not None:
        facts["done"] = f"{status.done:,} of {count_of(status.files, 'file')}"
    text += f": at {moment(status.started_ms)}, by {status.owner}; it is {status.state}"
    if status.error:
        text += f" because of: {status.error}"
    return f"{text}. {found.resume.command}".rstrip(". ")


async def _look(
    store: Store, job: FoundJob, host: Host
) -> tuple[JobStatus | None, tuple[int, int]]:
    """Return the status of a job with manifests, and its moved / total files."""
    layout = job.layout
    status = await ManifestCommitter(store, layout, Options(), host).job_status()
    if status is not None or job.begun:
        return status, (0, 0)
    run = CommitContext.new(Environment(store, host, store), layout, Options())
    return await status_without_commit(run, store, job.manifests), await _moved(store, job)


async def _moved(store: Store, job: FoundJob) -> tuple[int, int]:
    """Return the moved / total number of files of manifests.

    A commit by this package writes its record first. If files were moved and there is no record,
    Hadoop's committer has begun the commit.
    """
    infos = await children(store, job.layout.manifests_dir)
    paths = [info.path for info in infos if info.path.endswith(SUFFIX)]
    sources: set[str] = set()

    async def read(path: str) -> None:
        data = await store.get(path, MAX_MANIFEST_BYTES)
        entries, _ = decode_entries(job.layout, decode_manifest(data, job.layout.url(path)))
        sources.update(entry.source for entry in entries)

    await for_each(paths, read, workers=min(store.traits.workers, 32))
    files = len(sources)
    try:
        async for info in walk(store, job.layout.tasks_dir):
            sources.discard(info.path)
    except NotFoundError:
        pass  # all task directories are gone, and so are their files
    return len(sources), files


async def _look_at_uploads(
    store: MultipartStore, job: FoundJob, pending: Store | None, host: Host
) -> tuple[JobStatus | None, tuple[int, int]]:
    """Return the job's status and its ended / total uploads before a commit.

    Args:
        store: the store of its destination.
        job: the job.
        pending: the store of its own files, if that is another one.
        host: its clock tells ages.

    Raises ``AsyncCommitError`` if the status cannot be determined.
    """
    layout = job.layout
    assert isinstance(layout, UploadLayout)
    if job.ended:
        over = JobStatus(layout.job_id, layout.attempt, JobState.ENDED, tasks=job.manifests)
        return replace(over, epoch=0 if job.closed else 1), (0, 0)
    if job.begun:
        committer = UploadCommitter(store, layout, Options(), host, pending=pending)
        return await committer.job_status(), (0, 0)
    run = run_of(store, layout, pending, host)
    status_so_far = await status_without_commit(run, run.pending, job.manifests)
    if not job.manifests:
        return status_so_far, (0, 0)
    with LoadedSets(run.options) as loaded:
        await load_sets(run, loaded, None)
        ended = await missing_uploads(run, loaded)
        status = replace(status_so_far, files=loaded.files, bytes=loaded.bytes)
        return status, (len(ended or ()), loaded.files)


def run_of(
    store: MultipartStore, layout: UploadLayout, pending: Store | None, host: Host | None = None
) -> UploadContext:
    """Return a context for steps of a commit that only read."""
    environment = Environment(store, host or this_host(), store if pending is None else pending)
    return UploadContext.new(environment, layout, Options())

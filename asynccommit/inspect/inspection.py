"""Inspect what jobs left: a file, a job attempt or a destination. Nothing is changed."""

from __future__ import annotations

from typing import Any, cast

from asynccommit.api import StorageOptions
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.directory_owner import as_found
from asynccommit.commit.by_rename.entries import decode_entries
from asynccommit.commit.layout import SUCCESS, TEMPORARY, Layout
from asynccommit.commit.layout_uploads import UploadLayout
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    ManifestError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.formats.manifest import SUFFIX, TaskManifest, decode_manifest
from asynccommit.inspect.discovery import (
    FoundJob,
    NothingThereError,
    children,
    find_jobs,
    layout_of,
    look_at,
    open_place,
)
from asynccommit.inspect.files import SHOWN, Inspection, Rename, read_success, reader_of, rename_of
from asynccommit.inspect.status import how_far
from asynccommit.inspect.upload_discovery import upload_place_of
from asynccommit.inspect.upload_inspection import inspect_uploads
from asynccommit.options.job import MAX_MANIFEST_BYTES, Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Kind, Store
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.urls import Address


async def inspect(place: Address, storage: StorageOptions = None) -> Inspection:
    """Return an inspection of ``place``.

    Args:
        place: a file or a directory.
        storage: credentials and other options of its store.

    Raises:
        NothingThereError: there is nothing, or nothing that a job left.
        ManifestError: a file belongs to no job, or is damaged.
        StoreError: the place cannot be read.
    """
    async with open_place(place, storage) as store:
        try:
            info = await store.head(place.path)
        except NotFoundError:
            raise NothingThereError(f"there is nothing at {place}") from None
        if info.kind is Kind.FILE:
            return await _file(store, place)
        return await _directory(store, place)


async def _directory(store: Store, place: Address) -> Inspection:
    layout = layout_of(place)
    dest = upload_place_of(place) if store.traits.multipart is not None else None
    if dest is not None:
        return await _destination(store, dest, place.path)
    if layout is not None:
        found = await look_at(store, await as_found(store, layout))
        if found is None:
            raise NothingThereError(f"{place} is no directory of a job with manifests")
        return await _job(store, found)
    above, _, name = place.path.rpartition("/")
    if name == TEMPORARY:
        return await _destination(store, place.at(above or "/"))
    grandparent, _, parent = above.rpartition("/")
    if parent == TEMPORARY:
        return await _destination(store, place.at(grandparent or "/"), place.path)
    return await _destination(store, place)


async def _destination(store: Store, dest: Address, only: str | None = None) -> Inspection:
    jobs = [job for job in await find_jobs(store, dest) if only is None or _is_in(job, only)]
    jobs = [job for job in jobs if not (job.classic and job.begun)]
    parts = [_classic(job) if job.classic else await _job(store, job) for job in jobs]
    facts = {"jobs": len(jobs)}
    marker = dest.child(SUCCESS)
    if only is None and any(i.path == marker.path for i in await children(store, dest.path)):
        parts.append(await _marker(store, marker))
    if not parts:
        raise NothingThereError(f"no job and no {SUCCESS} is under {only or dest}")
    return Inspection("destination", str(dest), facts, parts=parts)


async def _marker(store: Store, place: Address) -> Inspection:
    try:
        return read_success(await store.get(place.path, MAX_MANIFEST_BYTES), place)
    except ManifestError as error:
        return Inspection("success", str(place), problems=[str(error)])


def _is_in(job: FoundJob, directory: str) -> bool:
    """Return whether a directory is, contains or lies in a job's directory."""
    own = job.layout.attempt_dir if isinstance(job.layout, UploadLayout) else job.layout.job_dir
    return f"{own}/".startswith(f"{directory}/") or f"{directory}/".startswith(f"{own}/")


def _classic(job: FoundJob) -> Inspection:
    facts = {
        "committer": "FileOutputCommitter: it has no manifests, say --committer file_v1",
        "job": job.layout.job_id,
        "tasks committed": job.manifests,
    }
    shared = job.layout.sources_dir if job.layout.shared else job.layout.job_dir
    return Inspection("job", str(job.layout.dest.at(shared)), facts)


async def _file(store: Store, place: Address) -> Inspection:
    data = await store.get(place.path, MAX_MANIFEST_BYTES)
    read = reader_of(place, data)
    if read is not None:
        return read(data, place)
    return await _manifest(store, decode_manifest(data, str(place)), place)


async def _manifest(store: Store, manifest: TaskManifest, place: Address) -> Inspection:
    facts: dict[str, Any] = {
        "job_id": manifest.job_id,
        "attempt": manifest.job_attempt,
        "task_id": manifest.task_id,
        "task_attempt_id": manifest.task_attempt_id,
        "files": len(manifest.files),
        "bytes": sum(entry.size for entry in manifest.files),
        "directories": len(manifest.directories),
    }
    problems: list[str] = []
    layout = layout_of(place)
    if layout is None:
        facts["where"] = "outside of its job: sources and destinations were not looked at"
    else:
        problems = await _conflicts(store, await as_found(store, layout), manifest)
    renames = [rename_of(entry) for entry in manifest.files[:SHOWN]]
    return Inspection("manifest", str(place), facts, renames=renames, problems=problems)


async def _conflicts(store: Store, layout: Layout, manifest: TaskManifest) -> list[str]:
    if (manifest.job_id, manifest.job_attempt) != (layout.job_id, layout.attempt):
        return [f"is of job {manifest.job_id}, attempt {manifest.job_attempt}"]
    try:
        entries, _ = decode_entries(layout, manifest)
    except AsyncCommitError as error:
        return [str(error)]
    problems: list[str] = []

    async def look(index: int) -> None:
        entry = entries[index]
        source, dest = await _head(store, entry.source), await _head(store, entry.dest)
        if source is None:
            problems.append(f"missing: {entry.source}")
        elif source != (Kind.FILE, entry.size):
            problems.append(f"not the file of {entry.size} bytes that was committed: {source}")
        if dest is not None:
            problems.append(f"there already: {entry.dest}")

    await for_each(range(len(entries)), look, workers=store.traits.workers)
    return sorted(problems)


async def _head(store: Store, path: str) -> tuple[Kind, int] | None:
    try:
        info = await store.head(path)
    except (NotFoundError, PreconditionError):
        return None
    return info.kind, info.size


async def _job(store: Store, job: FoundJob) -> Inspection:
    """Inspect a job attempt: its manifests and the verdict of a preflight."""
    if isinstance(job.layout, UploadLayout):
        return await inspect_uploads(cast(MultipartStore, store), job)
    layout = job.layout
    look = _ManifestInspector(store, layout)
    infos = await children(store, layout.manifests_dir)
    paths = sorted(info.path for info in infos if info.path.endswith(SUFFIX))
    await for_each(paths, look.read, workers=min(store.traits.workers, 32))
    look.tasks.sort(key=lambda row: str(row["task_id"]))
    facts = _facts_of(job, look)
    problems = list(look.problems)
    if job.begun:
        problems.insert(0, await how_far(store, job, facts))
    if job.staged:
        problems.append("files are staged for other places; only the tasks' messages know where")
    if not problems:
        problems += await _refusal(store, layout, facts)
    place = layout.dest.at(layout.attempt_dir)
    return Inspection("job", str(place), facts, look.tasks, look.renames, problems=problems)


def _facts_of(job: FoundJob, look: _ManifestInspector) -> dict[str, Any]:
    return {
        "job_id": job.layout.job_id,
        "attempt": job.layout.attempt,
        "destination": str(job.layout.dest),
        "layout": "Hadoop before 3.4.1" if job.layout.prefix else "current",
        "commit_begun": job.begun,
        "manifests": job.manifests,
        "files": sum(row["files"] for row in look.tasks),
        "bytes": sum(row["bytes"] for row in look.tasks),
    }


class _ManifestInspector:
    """A reader of a job's manifests that keeps what will be shown."""

    def __init__(self, store: Store, layout: Layout) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.renames: list[Rename] = []
        self.problems: list[str] = []
        self._store = store
        self._layout = layout

    async def read(self, path: str) -> None:
        """Read one manifest; record what is wrong with it as a problem."""
        url = self._layout.url(path)
        try:
            manifest = decode_manifest(await self._store.get(path, MAX_MANIFEST_BYTES), url)
            decode_entries(self._layout, manifest)
        except AsyncCommitError as error:
            text = str(error)
            self.problems.append(text if text.startswith(url) else f"{url}: {text}")
            return
        self.tasks.append(
            {
                "task_id": manifest.task_id,
                "task_attempt_id": manifest.task_attempt_id,
                "files": len(manifest.files),
                "bytes": sum(entry.size for entry in manifest.files),
            }
        )
        self.renames += [rename_of(e) for e in manifest.files[: SHOWN - len(self.renames)]]


async def _refusal(store: Store, layout: Layout, facts: dict[str, Any]) -> list[str]:
    """Return the preflight's objection to a commit; note what it would do."""
    try:
        plan = await ManifestCommitter(store, layout, Options(), this_host()).plan_job()
    except CommitError as error:
        return [str(reason) for reason in error.failures] or [str(error)]
    facts["directories"] = plan.directories
    return []

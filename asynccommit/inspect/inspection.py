"""Inspect files, job attempts and destinations, without changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeVar, cast

from asynccommit.api import StorageOptions
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.load_sets import entries_of
from asynccommit.commit.by_upload.open_uploads import fingerprints_of_open
from asynccommit.commit.fingerprints import Fingerprints
from asynccommit.commit.layouts.layout import SUCCESS, TEMPORARY, Layout
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.commit.ownership.directory_owner import as_found
from asynccommit.commit.planning.entries import decode_entries
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    DeniedError,
    ManifestError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.formats.manifest import SUFFIX, TaskManifest, decode_manifest
from asynccommit.formats.pending_set import MAX_PENDING_SET_BYTES, decode_pending_set
from asynccommit.inspect.discovery import (
    FoundJob,
    children,
    find_jobs,
    layout_of,
    look_at,
    open_place,
    upload_place_of,
)
from asynccommit.inspect.errors import NothingThereError
from asynccommit.inspect.files import (
    SHOWN,
    Inspection,
    Rename,
    UploadCompletion,
    read_success,
    reader_of,
    rename_of,
)
from asynccommit.inspect.status import how_far, run_of
from asynccommit.options.job import MAX_MANIFEST_BYTES, Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.runtime.host import this_host
from asynccommit.runtime.terminal import count_of
from asynccommit.stores.base import Kind, Store
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.urls import Address

F = TypeVar("F", Rename, UploadCompletion)
_SETS_AT_ONCE = 4  # each may have many megabytes


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
            raise NothingThereError(f"{place} does not exist") from None
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
            raise NothingThereError(f"{place} is not the directory of a job with manifests")
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
        raise NothingThereError(f"there is neither a job nor {SUCCESS} under {only or dest}")
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
        "committer": "FileOutputCommitter: it has no manifests; use --committer file_v1",
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
        facts["where"] = "outside its job: sources and destinations were not checked"
    else:
        problems = await _conflicts(store, await as_found(store, layout), manifest)
    renames = [rename_of(entry) for entry in manifest.files[:SHOWN]]
    return Inspection("manifest", str(place), facts, renames=renames, problems=problems)


async def _conflicts(store: Store, layout: Layout, manifest: TaskManifest) -> list[str]:
    if (manifest.job_id, manifest.job_attempt) != (layout.job_id, layout.attempt):
        return [f"belongs to job {manifest.job_id}, attempt {manifest.job_attempt}"]
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
            problems.append(f"not the committed file of {entry.size} bytes: {source}")
        if dest is not None:
            problems.append(f"exists already: {entry.dest}")

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
        return await _inspect_uploads(cast(MultipartStore, store), job)
    layout = job.layout
    look = _ManifestInspector(store, layout)
    infos = await children(store, layout.manifests_dir)
    paths = [info.path for info in infos if info.path.endswith(SUFFIX)]
    await look.read(paths, min(store.traits.workers, 32))
    facts = {
        "job_id": layout.job_id,
        "attempt": layout.attempt,
        "destination": str(layout.dest),
        "layout": "Hadoop before 3.4.1" if layout.prefix else "current",
        "commit_begun": job.begun,
        "manifests": job.manifests,
        **look.facts(),
    }
    problems = list(look.problems)
    if job.begun:
        problems.insert(0, await how_far(store, job, facts))
    if job.staged:
        problems.append(
            "files are staged for other places, which only the messages of the tasks name"
        )
    if not problems:
        problems += await _refusal(store, layout, facts)
    place = layout.dest.at(layout.attempt_dir)
    return Inspection("job", str(place), facts, look.tasks, look.files, problems=problems)


class _Inspector(ABC, Generic[F]):
    """A reader of committed output that keeps what will be shown."""

    most: ClassVar[int]

    def __init__(self, store: Store) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.files: list[F] = []
        self.problems: list[str] = []
        self._store = store

    @abstractmethod
    def url(self, path: str) -> str:
        """Return the URL of a manifest or pending set, for errors."""

    @abstractmethod
    def decode(self, data: bytes, path: str) -> tuple[str, str, list[F]]:
        """Return the id of a task, that of its attempt, and its files.

        Raises ``AsyncCommitError``.
        """

    async def read(self, paths: Iterable[str], workers: int) -> None:
        """Read all manifests or pending sets; record their problems."""
        await for_each(sorted(paths), self._read, workers=workers)
        self.tasks.sort(key=lambda row: str(row["task_id"]))

    async def _read(self, path: str) -> None:
        url = self.url(path)
        try:
            task, attempt, files = self.decode(await self._store.get(path, self.most), path)
        except AsyncCommitError as error:
            text = str(error)
            self.problems.append(text if text.startswith(url) else f"{url}: {text}")
            return
        counted = {"files": len(files), "bytes": sum(file.size for file in files)}
        self.tasks.append({"task_id": task, "task_attempt_id": attempt, **counted})
        self.files += files[: SHOWN - len(self.files)]

    def facts(self) -> dict[str, Any]:
        """Return the number and the size of all files."""
        return {name: sum(row[name] for row in self.tasks) for name in ("files", "bytes")}


class _ManifestInspector(_Inspector[Rename]):
    """A reader of manifests."""

    most = MAX_MANIFEST_BYTES

    def __init__(self, store: Store, layout: Layout) -> None:
        super().__init__(store)
        self._layout = layout

    def url(self, path: str) -> str:
        return self._layout.url(path)

    def decode(self, data: bytes, path: str) -> tuple[str, str, list[Rename]]:
        found = decode_manifest(data, self.url(path))
        decode_entries(self._layout, found)
        return found.task_id, found.task_attempt_id, list(map(rename_of, found.files))


class _SetInspector(_Inspector[UploadCompletion]):
    """A reader of pending sets."""

    most = MAX_PENDING_SET_BYTES

    def __init__(self, store: MultipartStore, layout: UploadLayout, planned: Fingerprints) -> None:
        super().__init__(store)
        self._layout = layout
        self._wanted = planned

    def url(self, path: str) -> str:
        return self._layout.pending_url(path)

    def decode(self, data: bytes, path: str) -> tuple[str, str, list[UploadCompletion]]:
        layout, url = self._layout, self.url(path)
        found = decode_pending_set(data, url)
        files = list(entries_of(layout, found, url))
        self._wanted.add([(file.dest, file.upload_id) for file in files])
        attempts = ", ".join(sorted({commit.task_id for commit in found.commits} - {""})[:2])
        uploads = [UploadCompletion(layout.url(f.dest), f.upload_id, f.size) for f in files]
        return layout.task_of(path.rpartition("/")[2]), attempts or "unknown", uploads


async def _refusal(store: Store, layout: Layout, facts: dict[str, Any]) -> list[str]:
    """Return the preflight's objection to a commit; note what it would do."""
    options, host = Options(), this_host()
    try:
        if isinstance(layout, UploadLayout):
            await UploadCommitter(cast(MultipartStore, store), layout, options, host).plan_job()
        else:
            plan = await ManifestCommitter(store, layout, options, host).plan_job()
            facts["directories"] = plan.directories
    except CommitError as error:
        return [str(reason) for reason in error.failures] or [str(error)]
    return []


async def _inspect_uploads(store: MultipartStore, job: FoundJob) -> Inspection:
    """Inspect a job attempt whose own files are in the store of its data.

    This takes one request for each pending set, one for each thousand open uploads, and the
    requests of a commit's preflight. Raises ``StoreError``.
    """
    layout = job.layout
    assert isinstance(layout, UploadLayout)
    with Fingerprints() as planned:
        look = _SetInspector(store, layout, planned)
        infos = await children(store, layout.sets_dir)
        paths = [i.path for i in infos if not i.is_dir and layout.is_set(i.path.rpartition("/")[2])]
        await look.read(paths, _SETS_AT_ONCE)
        facts = {
            "job_id": layout.job_id,
            "attempt": layout.attempt,
            "committer": job.committer,
            "destination": str(layout.dest),
            "commit_begun": job.begun,
            "pending_sets": job.manifests,
            **look.facts(),
        }
        await _note_open(store, layout, planned, facts)
    problems = sorted(look.problems)
    if job.ended:
        problems.insert(0, "this job has ended, but was not fully deleted")
    elif job.begun:
        problems.insert(0, await how_far(store, job, facts))
    elif not problems:
        problems += await _refusal(store, layout, facts)
    place = str(layout.pending.at(layout.attempt_dir))
    look.files.sort(key=lambda file: file.dest)
    return Inspection("job", place, facts, look.tasks, uploads=look.files, problems=problems)


async def _note_open(
    store: MultipartStore, layout: UploadLayout, planned: Fingerprints, facts: dict[str, Any]
) -> None:
    """Count the open uploads of the job, and those that no task has committed."""
    try:
        there = await fingerprints_of_open(run_of(store, layout, None))
    except DeniedError:
        there = None
    if there is None:
        facts["open_uploads"] = "unknown: no permission to list them"
        return
    with there:
        ours, others = len(planned.common(there)), len(there.missing(planned))
    facts["open_uploads"] = f"{ours:,} of {count_of(facts['files'], 'file')}"
    facts["uploads_of_others"] = others

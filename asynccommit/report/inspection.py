"""A look at what jobs left: one of their files, a job attempt, a destination. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from asynccommit.api import StorageOptions
from asynccommit.committers.manifest import ManifestCommitter
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    ManifestError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.formats.commit_record import TYPE as RECORD
from asynccommit.formats.commit_record import decode_record
from asynccommit.formats.manifest import (
    MAX_MANIFEST_BYTES,
    SUFFIX,
    FileEntry,
    TaskManifest,
    decode_manifest,
)
from asynccommit.formats.success import NAME as MARKER
from asynccommit.formats.success import decode_success
from asynccommit.host import this_host
from asynccommit.job import SUCCESS, TEMPORARY, Layout
from asynccommit.options import Options
from asynccommit.parallel import for_each
from asynccommit.report.jobs import (
    FoundJob,
    NothingThereError,
    children,
    find_jobs,
    layout_of,
    look_at,
    open_place,
)
from asynccommit.stages.load import decode_entries
from asynccommit.store import Kind, Store
from asynccommit.urls import Address, decode_uri

SHOWN = 100
"""How many renames are named."""


@dataclass(frozen=True, slots=True)
class Rename:
    """One file to commit: decoded paths or, of what cannot be decoded, the texts that are there."""

    source: str
    dest: str
    size: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is at a path.

    Attributes:
        kind: ``manifest``, ``success``, ``commit record``, ``job`` or ``destination``.
        path: as a user writes it.
        facts: what is to be said of it; JSON values.
        tasks: of a job, one row a manifest.
        renames: the first of the files that a commit would move.
        problems: why a commit would be refused.
        parts: of a destination, its jobs and its marker.
    """

    kind: str
    path: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    tasks: Sequence[Mapping[str, Any]] = ()
    renames: Sequence[Rename] = ()
    problems: Sequence[str] = ()
    parts: Sequence[Inspection] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against a commit, here or in the parts."""
        return not self.problems and all(part.sound for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


async def inspect(place: Address, storage: StorageOptions = None) -> Inspection:
    """Return what is at ``place``.

    Args:
        place: a file or a directory.
        storage: credentials and the like for its store.

    Raises:
        NothingThereError: there is nothing, or nothing that a job left.
        ManifestError: a file is none of a job, or damaged.
        StoreError: it cannot be read.
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
    if layout is not None:
        found = await look_at(store, layout)
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
    jobs = [job for job in await find_jobs(store, dest) if only in (None, job.layout.job_dir)]
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
        return _success(await store.get(place.path, MAX_MANIFEST_BYTES), place)
    except ManifestError as error:
        return Inspection("success", str(place), problems=[str(error)])


def _classic(job: FoundJob) -> Inspection:
    facts = {"committer": "Hadoop's FileOutputCommitter: it has no manifests, and is not ours"}
    return Inspection("job", str(job.layout.dest.at(job.layout.job_dir)), facts)


async def _file(store: Store, place: Address) -> Inspection:
    data = await store.get(place.path, MAX_MANIFEST_BYTES)
    read = _reader(place.path.rpartition("/")[2], data)
    if read is not None:
        return read(data, place)
    return await _manifest(store, decode_manifest(data, str(place)), place)


def _reader(name: str, data: bytes) -> Callable[[bytes, Address], Inspection] | None:
    """Return how to read a file, by what it says that it is, then by its name."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    said = (value.get("type"), value.get("name")) if isinstance(value, dict) else (None, None)
    if said[0] == RECORD or (value is None and name == "commit-record.json"):
        return _record
    if said[1] == MARKER or (value is None and name.startswith((SUCCESS, "summary-"))):
        return _success
    return None


def _success(data: bytes, place: Address) -> Inspection:
    if not data:
        said = "a classic committer: its marker is empty and says no more"
        return Inspection("success", str(place), {"committer": said})
    found = decode_success(data, str(place))
    counters = found.statistics.counters
    facts: dict[str, Any] = {
        "success": found.success,
        "job_id": found.job_id,
        "job_id_source": found.job_id_source,
        "date": found.date,
        "host": found.hostname,
        "committer": found.committer,
        "files": counters.get("committer_files_committed", 0),
        "bytes": counters.get("committer_bytes_committed", 0),
        "diagnostics": dict(found.diagnostics),
        "filenames": [_decoded(uri) for uri in found.filenames],
    }
    return Inspection("success", str(place), facts)


def _record(data: bytes, place: Address) -> Inspection:
    found = decode_record(data, str(place))
    started = datetime.fromtimestamp(found.started_ms / 1000, UTC)
    facts = {
        "job_id": found.job_id,
        "attempt": found.attempt,
        "started": started.isoformat(timespec="seconds"),
        "host": found.host,
        "user": found.user,
        "files": found.files,
        "bytes": found.bytes,
        "tasks": dict(found.tasks),
    }
    return Inspection("commit record", str(place), facts)


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
        problems = await _conflicts(store, layout, manifest)
    renames = [_rename(entry) for entry in manifest.files[:SHOWN]]
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
    """Return a job attempt: its manifests, and what the preflight says to them all."""
    layout = job.layout
    look = _Look(store, layout)
    infos = await children(store, layout.manifests_dir)
    paths = sorted(info.path for info in infos if info.path.endswith(SUFFIX))
    await for_each(paths, look.read, workers=min(store.traits.workers, 32))
    look.tasks.sort(key=lambda row: str(row["task_id"]))
    facts = _facts_of(job, look)
    problems = list(look.problems)
    if job.begun:
        problems.insert(0, await _who_began(store, layout))
    if job.staged:
        problems.append("files are staged for other places; only the tasks' messages know where")
    if not problems:
        problems += await _refusal(store, layout, facts)
    place = layout.dest.at(layout.attempt_dir)
    return Inspection("job", str(place), facts, look.tasks, look.renames, problems)


def _facts_of(job: FoundJob, look: _Look) -> dict[str, Any]:
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


class _Look:
    """Reads the manifests of a job one by one and keeps what is to be shown."""

    def __init__(self, store: Store, layout: Layout) -> None:
        self.tasks: list[dict[str, Any]] = []
        self.renames: list[Rename] = []
        self.problems: list[str] = []
        self._store = store
        self._layout = layout

    async def read(self, path: str) -> None:
        """Read one manifest; what is wrong with it is a problem, not an error."""
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
        self.renames += [_rename(e) for e in manifest.files[: SHOWN - len(self.renames)]]


async def _who_began(store: Store, layout: Layout) -> str:
    text = "a commit of this job has begun"
    try:
        record = decode_record(await store.get(layout.record, MAX_MANIFEST_BYTES), layout.record)
    except AsyncCommitError as error:
        return f"{text}, and its record cannot be read: {error}"
    when = datetime.fromtimestamp(record.started_ms / 1000, UTC).isoformat(timespec="seconds")
    return f"{text}: at {when}, by {record.user} on {record.host}"


async def _refusal(store: Store, layout: Layout, facts: dict[str, Any]) -> list[str]:
    """Return what the preflight of a commit says against it; note what it would do."""
    try:
        plan = await ManifestCommitter(store, layout, Options(), this_host()).plan_job()
    except CommitError as error:
        return [str(reason) for reason in error.failures] or [str(error)]
    facts["directories"] = plan.directories
    return []


def _rename(entry: FileEntry) -> Rename:
    return Rename(_decoded(entry.source), _decoded(entry.dest), entry.size)


def _decoded(uri: str) -> str:
    try:
        return str(decode_uri(uri))
    except AsyncCommitError:
        return uri

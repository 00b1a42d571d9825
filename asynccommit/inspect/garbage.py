"""Find what dead jobs left under a destination; read-only.

A job is judged as ``status`` does. A directory without an owner, such as Spark's or that of a
classic committer, or a file, counts as dead once nothing in it has changed for a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

from asynccommit.api import StorageOptions
from asynccommit.commit.context import CommitContext, Environment
from asynccommit.commit.driver.liveness import QUIET
from asynccommit.commit.driver.own_tasks import own_tasks
from asynccommit.commit.driver.owners import on_store_time
from asynccommit.commit.hints import STAGING, job_command
from asynccommit.commit.job.modes import STAGING as SPARK_STAGING
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import MANIFEST_SUFFIX, TEMPORARY, Layout
from asynccommit.commit.layouts.uploads import StagingLayout, UploadLayout
from asynccommit.errors import DeniedError, NotFoundError
from asynccommit.formats.magic_paths import ANY_MAGIC
from asynccommit.inspect.discovery import (
    FoundJob,
    children,
    find_jobs_at,
    find_rubbish,
    open_place,
    open_stores,
)
from asynccommit.inspect.errors import NothingThereError
from asynccommit.inspect.open_uploads import OpenUpload, OpenUploads, find_uploads
from asynccommit.inspect.open_uploads import choose as choose_uploads
from asynccommit.inspect.status import JobView, view
from asynccommit.options.job import Options
from asynccommit.results import NOT_BEGUN, JobState
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.tree import walk
from asynccommit.stores.urls import Address, parse_url

_KEPT = "-kept"
"""The end of the marker beside copies that a rollback could not put back."""


class GarbageKind(StrEnum):
    """A kind of garbage."""

    JOB = "dead job"
    REMAINS = "remains of an ended job"
    SPARK = "staging directory of Spark"
    UNOWNED = "directory without an owner"
    FILE = "file without an owner"
    MANIFESTS = "kept manifests"
    UPLOAD = "upload of no job"


@dataclass(frozen=True, slots=True)
class Garbage:
    """One thing that can be deleted.

    Attributes:
        kind: its kind.
        path: decoded path of the directory, or of the file of an upload.
        age: seconds since its last change; ``None`` if unknown.
        files: number of files.
        bytes: total size of the files.
        changed: time of the last change, in seconds since the epoch.
        layout: the job, if it is one.
        upload: the upload, if it is one.
    """

    kind: GarbageKind
    path: str
    age: float | None
    files: int = 0
    bytes: int = 0
    changed: float = 0.0
    layout: Layout | None = None
    upload: OpenUpload | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "kind": str(self.kind),
            "path": self.path,
            "age": self.age,
            "files": self.files,
            "bytes": self.bytes,
            "job_id": "" if self.layout is None else self.layout.job_id,
            "attempt": 0 if self.layout is None else self.layout.attempt,
            "upload_id": "" if self.upload is None else self.upload.upload.upload_id,
        }


@dataclass(frozen=True, slots=True)
class KeptItem:
    """One thing that is not deleted.

    Attributes:
        path: its decoded path.
        reason: why it is kept.
        command: the command that ends it; empty if there is none.
        blocks: whether it is an unfinished commit, so that nothing there may be deleted.
    """

    path: str
    reason: str
    command: str = ""
    blocks: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "path": self.path,
            "reason": self.reason,
            "command": self.command,
            "blocks": self.blocks,
        }


@dataclass(frozen=True, slots=True)
class Sweep:
    """The garbage under a destination, and what is kept.

    Attributes:
        dest: the destination.
        garbage: what can be deleted.
        spared: what is kept, with the reason.
        warnings: places that could not be read.
    """

    dest: Address
    garbage: Sequence[Garbage] = ()
    spared: Sequence[KeptItem] = ()
    warnings: Sequence[str] = field(default_factory=tuple)

    @property
    def blocked(self) -> bool:
        """Return whether an unfinished commit forbids to delete anything."""
        return any(one.blocks for one in self.spared)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "destination": str(self.dest),
            "blocked": self.blocked,
            "garbage": [one.to_json() for one in self.garbage],
            "files": sum(one.files for one in self.garbage),
            "bytes": sum(one.bytes for one in self.garbage),
            "kept": [one.to_json() for one in self.spared],
            "warnings": list(self.warnings),
        }


@dataclass(slots=True)
class Measure:
    """The content of a directory: files, bytes and the last change."""

    files: int = 0
    bytes: int = 0
    changed: float = 0.0
    kept: bool = False

    def add(self, info: Info) -> None:
        """Count one entry."""
        self.changed = max(self.changed, info.modified)
        if not info.is_dir:
            self.files += 1
            self.bytes += info.size
            self.kept = self.kept or info.path.endswith(f"{ANY_MAGIC}{_KEPT}")


async def measure(store: Store, *paths: str) -> Measure:
    """Return the content of directories, or files; a missing one is empty."""
    found = Measure()
    for path in paths:
        try:
            top = await store.head(path)
            found.add(top)
            if not top.is_dir:
                continue
            async for info in walk(store, path):
                found.add(info)
        except NotFoundError:
            continue
    return found


async def find_garbage(
    dest: Address,
    older_than: float,
    host: Host,
    storage: StorageOptions = None,
    options: Options | None = None,
    *,
    exact: bool = False,
) -> Sweep:
    """Return what dead jobs left under a destination; delete nothing.

    Args:
        dest: the destination.
        older_than: minimum age in seconds.
        host: its clock tells ages, unless ``exact``.
        storage: options of the store.
        options: tell where manifests are kept for diagnostics.
        exact: let the store's clock tell ages, by a small file that is written there and deleted.
            Without it nothing is written, and the ages are as wrong as the clock of this machine.

    Raises ``NothingThereError`` if the destination does not exist, and ``StoreError``.
    """
    async with open_place(dest, storage) as store:
        try:
            await store.head(dest.path)
        except NotFoundError:
            raise NothingThereError(f"{dest} does not exist") from None
        if exact:
            host = await on_clock_of(store, dest, host)
        search = _Search(dest, store, storage, options or Options(), older_than, host, exact)
        await search.jobs()
        await search.unowned()
        await search.manifests()
        await search.uploads()
        garbage = sorted(search.garbage, key=lambda one: (one.kind is GarbageKind.UPLOAD, one.path))
        by_path = {one.path: one for one in search.spared}
        spared = sorted(by_path.values(), key=lambda one: (not one.blocks, one.path))
        return Sweep(dest, garbage, spared, search.warnings)


class _Search:
    def __init__(
        self,
        dest: Address,
        store: Store,
        storage: StorageOptions,
        options: Options,
        older_than: float,
        host: Host,
        exact: bool,
    ) -> None:
        self.garbage: list[Garbage] = []
        self.spared: list[KeptItem] = []
        self.warnings: list[str] = []
        self._dest, self._store, self._storage = dest, store, storage
        self._options, self._older_than = options, older_than
        self._host, self._exact = host, exact
        self._owned: set[str] = set()
        self._named: set[str] = set()
        self._staged = ""

    async def jobs(self) -> None:
        """Judge every job, and what ended jobs have left."""
        for job in await find_jobs_at(self._dest, self._storage, self._options, None):
            if job.classic and job.begun:
                self._spare_begun(job.layout)
            if job.classic and (job.begun or not isinstance(job.layout, FileLayout)):
                continue
            self._owned |= {job.layout.job_dir, job.layout.sources_dir}
            if isinstance(job.layout, StagingLayout):
                self._staged = job.layout.job_id
            async with open_stores(job.layout, self._storage) as (store, pending):
                host = await self._host_at(pending, job) if pending is not store else self._host
                await self._judge(job, await view(store, job, pending, host), pending, host)
        for path, layout in (await find_rubbish(self._store, self._dest)).items():
            self._owned.add(layout.job_dir)
            await self._take(GarbageKind.REMAINS, path, await measure(self._store, path), layout)

    async def _host_at(self, pending: Store, job: FoundJob) -> Host:
        """Return the host for ages on another store, where a job's own files are."""
        layout = job.layout
        if not self._exact or not isinstance(layout, UploadLayout):
            return self._host
        return await on_clock_of(pending, layout.pending.at(layout.job_dir), self._host)

    async def _judge(self, job: FoundJob, seen: JobView, pending: Store, host: Host) -> None:
        status, layout = seen.status, job.layout
        path = layout.attempt_dir
        if status is None:
            again = job_command("status", layout)
            self.spared.append(KeptItem(path, f"its state is unknown: {seen.problem}", again))
        elif status.state in NOT_BEGUN and "--adopt" in seen.resume.command:
            why = f"Hadoop's committer has begun its commit; a resume {seen.resume.does}"
            self.spared.append(KeptItem(path, why, seen.resume.command, blocks=True))
        elif status.state is JobState.DEAD or (status.state is JobState.ENDED and not status.epoch):
            content = await self._content(job, seen, pending)
            await self._take(GarbageKind.JOB, path, content, layout, host)
        elif status.state in NOT_BEGUN:
            why = f"the job is {'running' if status.state is JobState.RUNNING else 'maybe running'}"
            self.spared.append(KeptItem(path, f"{why}: {status.why}", seen.abort.command))
        else:
            why = f"a commit has begun and is {status.state}"
            blocks = status.unfinished or status.state is JobState.ROLLING_BACK
            self.spared.append(KeptItem(path, why, seen.resume.command, blocks=blocks))

    def _spare_begun(self, layout: Layout) -> None:
        self._owned |= {layout.job_dir, layout.sources_dir}
        again = job_command("resume", layout)
        why = "a commit has begun and has not ended"
        self.spared.append(KeptItem(layout.attempt_dir, why, again, blocks=True))

    async def _content(self, job: FoundJob, seen: JobView, pending: Store) -> Measure:
        run = CommitContext.new(Environment(pending, self._host, pending), job.layout, Options())
        own = [info.path for info in await own_tasks(run)]
        found = await measure(pending, job.layout.attempt_dir, *own)
        if isinstance(job.layout, UploadLayout) and seen.status is not None:
            self._named.add(job.layout.job_id)
            found.bytes += seen.status.bytes  # of its uploads, which are aborted with it
        return found

    async def unowned(self) -> None:
        """Judge the directories that belong to no job of ours."""
        for info in await children(self._store, self._dest.path):
            name = info.path.rpartition("/")[2]
            if not info.is_dir or info.path in self._owned:
                continue
            if name.startswith(f"{SPARK_STAGING}-"):
                await self._take_quiet(GarbageKind.SPARK, info.path)
            elif name.startswith(ANY_MAGIC) and self._store.traits.multipart is not None:
                await self._take_quiet(GarbageKind.UNOWNED, info.path)
            elif name == TEMPORARY:
                for child in await children(self._store, info.path):
                    if child.path not in self._owned and not child.path.endswith(f"/{STAGING}"):
                        await self._unowned_child(child)

    async def _unowned_child(self, child: Info) -> None:
        if child.kind is Kind.OTHER:
            why = "a link or special file, which no job makes: delete it by hand"
            self.spared.append(KeptItem(child.path, why))
        else:
            kind = GarbageKind.UNOWNED if child.is_dir else GarbageKind.FILE
            await self._take_quiet(kind, child.path)

    async def manifests(self) -> None:
        """Judge the manifests that were kept for diagnostics."""
        if self._options.diagnostics_directory is None:
            return
        place = parse_url(self._options.diagnostics_directory)
        if not place.same_store(self._dest):
            return
        for info in await children(self._store, place.path):
            inside = await children(self._store, info.path) if info.is_dir else []
            if inside and all(one.path.endswith(MANIFEST_SUFFIX) for one in inside):
                content = await measure(self._store, info.path)
                await self._take(GarbageKind.MANIFESTS, info.path, content)

    async def uploads(self) -> None:
        """Judge the open uploads, except those of jobs that are garbage."""
        if self._store.traits.multipart is None:
            return
        store = cast(MultipartStore, self._store)
        found = await find_uploads(store, self._dest, self._host.now())
        self.warnings += found.warnings
        choice = choose_uploads(found, max(self._older_than, QUIET), None)
        if self._staged:  # pending sets of staging jobs are not searched for uploads
            why = f"it may belong to job {self._staged}, which has a directory there"
            self.spared += [KeptItem(one.upload.path, why) for one in choice.uploads]
        else:
            self.garbage += [_upload(found, one) for one in choice.uploads]
        for kept in choice.kept:
            if not {*kept.found.jobs, *kept.found.maybe} <= self._named:
                self.spared.append(KeptItem(kept.found.upload.path, kept.reason))

    async def _take_quiet(self, kind: GarbageKind, path: str) -> None:
        content = await measure(self._store, path)
        silent = self._host.now() - content.changed
        if silent < QUIET:
            why = "changed less than a day ago, and nothing else shows whether its job is alive"
            self.spared.append(KeptItem(path, why))
        else:
            await self._take(kind, path, content)

    async def _take(
        self,
        kind: GarbageKind,
        path: str,
        content: Measure,
        layout: Layout | None = None,
        host: Host | None = None,
    ) -> None:
        now = (host or self._host).now()
        age = max(0.0, now - content.changed) if content.changed else None
        if content.kept:
            self.spared.append(KeptItem(path, "a rollback keeps copies of replaced files in it"))
            return
        if self._older_than and (age is None or age < self._older_than):
            why = f"{kind}, younger than --older-than"
            command = "" if layout is None else job_command("abort", layout)
            self.spared.append(KeptItem(path, why, command))
            return
        self.garbage.append(
            Garbage(kind, path, age, content.files, content.bytes, content.changed, layout)
        )


def _upload(found: OpenUploads, one: OpenUpload) -> Garbage:
    age, path = found.age(one), one.upload.path
    return Garbage(GarbageKind.UPLOAD, path, age, 0, one.size, one.upload.initiated, upload=one)


S3_SKEW = 900.0
"""Maximum clock error in seconds: S3 rejects requests with a larger one."""


async def on_clock_of(store: Store, place: Address, host: Host) -> Host:
    """Return the host with the store's clock, by a file that is deleted.

    A user of S3 may have the right to abort uploads and none to write. There the machine's clock
    tells, put back by the error that S3 accepts.

    Args:
        store: the store.
        place: a directory that exists, if the store has directories.
        host: clock and ids.

    Raises ``StoreError``.
    """
    try:
        return await on_store_time(
            host, store, place.child(f"_asynccommit-clock-{host.new_id()}").path
        )
    except DeniedError as error:
        if store.traits.multipart is None:
            text = f"{error.detail}. The file tells the store's time: be a user who may write there"
            raise DeniedError(error.op, error.path, text) from error
        return replace(host, now=lambda: host.now() - S3_SKEW)

"""Job commit, first step: read and check pending sets.

If there are commit messages of tasks, only the sets that they name count. A set is read once, so
that a late task attempt cannot change the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.loaded import LoadedSets, Pending
from asynccommit.commit.job.messages import digest, tell_of_no_file
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.errors import ManifestError, PreconditionError
from asynccommit.formats.pending import PendingCommit
from asynccommit.formats.pending_set import MAX_PENDING_SET_BYTES, PendingSet, decode_pending_set
from asynccommit.formats.upload_record import SetRow
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import list_all

_ROOM = 8 << 20
"""Bytes of pending sets held at once; a larger one is read alone."""
_BATCH = 4_096


async def load_sets(
    run: UploadContext,
    loaded: LoadedSets,
    tasks: Sequence[TaskCommit] | None,
    *,
    strict: bool = False,
) -> None:
    """Read every pending set that counts into ``loaded``.

    Args:
        run: the commit under way.
        loaded: receives their content.
        tasks: the commit messages of the tasks; ``None`` if there are none; then every set in the
            job attempt's directory counts.
        strict: refuse a job with sets of tasks without a message.

    Raises ``ManifestError`` for an invalid set, ``NotFoundError`` if the job attempt has no
    directory.
    """
    with run.meter.timed("job_stage_load_manifests", None if tasks is None else len(tasks)):
        found = await find_sets(run)
        load = _SetLoader(run, loaded)
        if tasks is None:
            run.meter.total = len(found)
            await for_each(found.values(), load.trust, workers=_window(run))
            tell_of_no_file(run, len(loaded.tasks), loaded.files)
            return
        messages = _by_task(run.layout, tasks)
        named = {run.layout.pending_set(task_id) for task_id in messages}
        _ignore(run, loaded, sorted(found.keys() - named), strict=strict)
        load.found = found
        await for_each(messages.values(), load.verify, workers=_window(run))
        tell_of_no_file(run, len(loaded.tasks), loaded.files)


def _window(run: UploadContext) -> int:
    return min(run.workers, run.options.window)


async def find_sets(run: UploadContext) -> dict[str, Info]:
    """Return the job attempt's pending sets by path. Raises ``NotFoundError``."""
    listing = await list_all(run.pending, run.layout.sets_dir)
    return {
        info.path: info
        for info in listing
        if not info.is_dir and run.layout.is_set(info.path.rpartition("/")[2])
    }


def _by_task(layout: UploadLayout, tasks: Sequence[TaskCommit]) -> dict[str, TaskCommit]:
    messages: dict[str, TaskCommit] = {}
    for task in tasks:
        if task.task_id in messages and messages[task.task_id] != task:
            first = messages[task.task_id]
            raise ManifestError(
                layout.pending_url(layout.pending_set(task.task_id)),
                f"two attempts claim task {task.task_id}: {first.attempt_id} and {task.attempt_id}",
            )
        messages[task.task_id] = task
    return messages


def _ignore(run: UploadContext, loaded: LoadedSets, paths: list[str], *, strict: bool) -> None:
    loaded.ignored = paths
    if strict and paths:
        url = run.layout.pending_url(paths[0])
        raise ManifestError(url, "belongs to a task that was not passed to the job commit")
    for path in paths:
        run.warn(f"ignored {run.layout.pending_url(path)}: no task commit message names it")


@dataclass(slots=True)
class _SetLoader:
    """A reader of pending sets that collects them in one place."""

    run: UploadContext
    loaded: LoadedSets
    found: dict[str, Info] = field(default_factory=dict)
    room: Room = field(default_factory=lambda: Room(_ROOM))

    async def trust(self, info: Info) -> None:
        """Add a set without a commit message."""
        async with self.room.of(info.size):
            data = await self._read(info)
            await self._take(data, info, "")

    async def verify(self, task: TaskCommit) -> None:
        """Add the set that the message ``task`` describes."""
        path = self.run.layout.pending_set(task.task_id)
        url = self.run.layout.pending_url(path)
        info = self.found.get(path)
        if info is None:
            raise ManifestError(url, f"is missing, although {task.attempt_id} committed it")
        async with self.room.of(info.size):
            data = await self._read(info)
            if digest(data) != task.digest:
                raise ManifestError(
                    url,
                    f"is not the one that {task.attempt_id} committed: another attempt of the "
                    "task replaced it. Run the job again",
                )
            await self._take(data, info, task.attempt_id)

    async def _read(self, info: Info) -> bytes:
        url = self.run.layout.pending_url(info.path)
        if info.size == 0:
            raise ManifestError(url, "is empty: the task's commit was cut short; run it again")
        if info.size > MAX_PENDING_SET_BYTES:
            raise ManifestError(url, f"has {info.size} bytes, more than {MAX_PENDING_SET_BYTES}")
        with self.run.meter.counted_as("op_load_manifest"):
            data = await self.run.pending.get(info.path, MAX_PENDING_SET_BYTES)
        self.run.meter.statistics.sample("committer_task_manifest_file_size", len(data))
        return data

    async def _take(self, data: bytes, info: Info, attempt_id: str) -> None:
        layout, loaded = self.run.layout, self.loaded
        url = layout.pending_url(info.path)
        pending = decode_pending_set(data, url)
        name = info.path.rpartition("/")[2]
        attempt = _attempt_of(pending, url) or attempt_id
        if attempt_id and attempt != attempt_id:
            raise ManifestError(
                url, f"belongs to {attempt}, although its digest is that of {attempt_id}"
            )
        uploads = list(entries_of(layout, pending, url))
        loaded.tasks[layout.task_of(name)] = attempt
        loaded.sets.append(SetRow(name, digest(data), len(uploads)))
        loaded.etags[info.path] = info.etag
        self.run.meter.statistics.merge(pending.statistics)
        for start in range(0, len(uploads), _BATCH):
            await loaded.add(uploads[start : start + _BATCH])
        self.run.meter.step()


def _attempt_of(pending: PendingSet, url: str) -> str:
    """Return the task attempt that wrote a set, if the set names it."""
    attempts = {commit.task_id for commit in pending.commits} - {""}
    if len(attempts) > 1:
        raise ManifestError(
            url, f"holds uploads of two attempts: {', '.join(sorted(attempts)[:2])}"
        )
    return next(iter(attempts), "")


def entries_of(layout: UploadLayout, pending: PendingSet, url: str) -> Iterator[Pending]:
    """Yield the uploads of a set.

    Raises ``ManifestError`` for a set of another job, and for an upload that is not a file of this
    job's destination.
    """
    _refuse_other_job(layout, pending.job_id, url)
    for commit in pending.commits:
        _refuse_other_job(layout, commit.job_id, url)
        dest = place_of(layout, commit, url)
        yield Pending(dest, commit.upload_id, commit.length, commit.parts, commit.token)


def _refuse_other_job(layout: UploadLayout, job_id: str, url: str) -> None:
    if job_id not in ("", layout.uuid):
        raise ManifestError(url, f"belongs to another job, {job_id[:200]!r}")


def place_of(layout: UploadLayout, commit: PendingCommit, url: str) -> str:
    """Return the path where the file of an upload appears.

    Raises ``ManifestError`` if the path is in another bucket, outside of the destination or in a
    place that tasks may not write to.
    """
    if commit.bucket != layout.dest.authority:
        raise ManifestError(url, f"names the bucket {commit.bucket[:200]!r}, not that of the job")
    try:
        return checked_place(layout, f"/{commit.key}")
    except PreconditionError as error:
        raise ManifestError(url, f"{error.path} {error.detail}") from None


def checked_place(layout: UploadLayout, path: str) -> str:
    """Return ``path`` if a task of this job may write there.

    Raises ``PreconditionError`` otherwise.
    """
    if not path.startswith(f"{layout.root}/") or {".", "..", ""} & set(path[1:].split("/")):
        raise PreconditionError("complete_upload", path, "is not below the destination")
    if layout.reserves(path):
        raise PreconditionError("complete_upload", path, "is not a place that tasks may write to")
    return path


class Room:
    """A limit on the bytes held at once.

    A request above the limit must be the only one.
    """

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def of(self, size: int) -> AsyncIterator[None]:
        """Hold ``size`` bytes."""
        size = min(size, self._size)
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield
        finally:
            self._free += size
            async with self._changed:
                self._changed.notify_all()

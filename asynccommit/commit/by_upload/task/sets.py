"""The pending set of a task, replaced atomically."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
    UnavailableError,
)
from asynccommit.formats.pending import PendingCommit
from asynccommit.formats.pending_set import (
    MAX_PENDING_SET_BYTES,
    PendingSet,
    decode_pending_set,
    encode_pending_set,
)
from asynccommit.options.uploads import EtagForm
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, remove_file, remove_files


async def save_set(
    run: UploadContext,
    task_id: str,
    attempt_id: str,
    commits: Sequence[PendingCommit],
    aside: str | None = None,
) -> TaskCommit:
    """Write a task's pending set; the last committing attempt counts.

    Args:
        run: the task's.
        task_id: the task.
        attempt_id: the attempt.
        commits: one for each file.
        aside: temporary path, if the store needs a rename to write atomically; its directory is
            created.

    Raises ``StoreError``, and ``ManifestError`` if two files have one place. If the job has ended
    meanwhile, the set is deleted again: ``NotFoundError``.
    """
    pending = PendingSet(run.layout.uuid, tuple(commits), run.meter.statistics)
    data = encode_pending_set(pending, EtagForm(run.options.uploads.etags))
    final = run.layout.pending_set(task_id)
    with run.meter.timed("task_stage_save_task_manifest"):
        try:
            await _put(run, final, data, aside)
        except (OutcomeUnknownError, UnavailableError, PreconditionError):
            if not await _is_in_place(run, final, data):
                raise
        await _refuse_ended(run, task_id, attempt_id, commits)
    return TaskCommit(
        task_id=task_id,
        attempt_id=attempt_id,
        manifest=run.layout.pending_url(final),
        digest=digest(data),
        files=len(commits),
        bytes=sum(commit.length for commit in commits),
    )


async def _refuse_ended(
    run: UploadContext, task_id: str, attempt_id: str, commits: Sequence[PendingCommit]
) -> None:
    """Check that the job has not ended; otherwise delete the set.

    The directory of the sets tells nothing any more: the set itself makes it on a flat store. The
    end of a job looks for files once more after it has deleted the intents, so one of the two finds
    the set. An attempt without uploads has no intents, and its set does no harm.
    """
    if not any(commit.token for commit in commits):
        return
    if await is_there(run.pending, run.layout.intent(attempt_id, 0)):
        return
    own = await own_set(run, task_id, attempt_id)
    if own is not None:
        await remove_set(run, own, attempt_id)
    text = "the job has ended: the output of the task is discarded"
    raise NotFoundError("put", run.layout.pending_set(task_id), text)


async def _put(run: UploadContext, final: str, data: bytes, aside: str | None) -> None:
    if aside is None or run.pending.traits.atomic_put:
        await run.pending.put(final, data)
        return
    await run.pending.mkdir(aside.rpartition("/")[0])
    await run.pending.put(aside, data)
    await _make_durable(run, aside)
    if not run.pending.traits.rename_replaces:
        with suppress(NotFoundError):
            await run.pending.delete(final)
    await run.pending.rename(aside, final, replace=True)
    await _make_durable(run, run.layout.sets_dir)


async def _make_durable(run: UploadContext, path: str) -> None:
    if not run.pending.traits.durable:
        await run.pending.sync(path)


async def _is_in_place(run: UploadContext, final: str, data: bytes) -> bool:
    try:
        return await run.pending.get(final, len(data)) == data
    except StoreError:
        return False


@dataclass(frozen=True, slots=True)
class OwnSet:
    """The pending set of one task attempt, as it was read."""

    info: Info
    data: bytes
    commits: tuple[PendingCommit, ...]


async def own_set(run: UploadContext, task_id: str, attempt_id: str) -> OwnSet | None:
    """Return the pending set if this attempt wrote it.

    An empty set does not show its attempt.

    Raises ``StoreError``.
    """
    path = run.layout.pending_set(task_id)
    try:
        info = await run.pending.head(path)  # before it is read: what is deleted is no newer one
        data = await run.pending.get(path, MAX_PENDING_SET_BYTES)
        commits = decode_pending_set(data, path).commits
    except (NotFoundError, ManifestError):
        return None
    mine = commits and all(commit.task_id == attempt_id for commit in commits)
    return OwnSet(info, data, commits) if mine else None


async def remove_set(run: UploadContext, own: OwnSet, attempt_id: str) -> None:
    """Delete a pending set, but not one that another attempt wrote."""
    store, path = run.pending, own.info.path
    if store.traits.bulk_delete:
        await remove_files(store, [own.info])
        return
    aside = f"{path.rpartition('/')[0]}/_{attempt_id}.aborted"
    with suppress(NotFoundError):
        await store.rename(path, aside, replace=True)
        if await store.get(aside, MAX_PENDING_SET_BYTES) == own.data:
            await remove_file(store, aside)
            return
        with suppress(ExistsError):
            await store.rename(aside, path)

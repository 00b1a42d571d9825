"""Task commit, second half: replace the manifest atomically."""

from __future__ import annotations

from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.durable import make_durable
from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.tasks.scan_task import TaskFiles
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
    UnavailableError,
)
from asynccommit.formats.manifest import (
    UNKNOWN,
    DirEntry,
    FileEntry,
    TaskManifest,
    decode_manifest,
)
from asynccommit.formats.manifest import encode_manifest as encode
from asynccommit.stores.tree import remove_file, remove_tree

ATTEMPTS = 5
"""Number of attempts to write a manifest, as in the reference."""


async def save_manifest(
    run: CommitContext, task_id: str, attempt_id: str, found: TaskFiles
) -> TaskCommit:
    """Write the manifest, and rename it over an earlier attempt's.

    Where a write is seen whole or not at all, it needs no temporary name. Where the store replaces
    atomically there is no moment in which the task has no manifest, and a reader sees one attempt's
    or the other's. If the response to the rename is lost, the file in its place decides. Raises
    ``StoreError`` when that fails ``ATTEMPTS`` times.
    """
    layout = run.layout
    data = encode(_manifest(run, task_id, attempt_id, found))
    final, temp = layout.manifest(task_id), layout.manifest_temp(attempt_id)
    with run.meter.timed("task_stage_save_task_manifest"):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await _put_and_rename(run, temp, final, data)
                break
            except (OutcomeUnknownError, UnavailableError, PreconditionError) as error:
                if await _is_in_place(run, final, data):
                    break
                if attempt == ATTEMPTS:
                    raise
                await _make_way(run, error, temp, final)
    return TaskCommit(
        task_id=task_id,
        attempt_id=attempt_id,
        manifest=layout.url(final),
        digest=digest(data),
        files=len(found.files),
        bytes=found.bytes,
    )


async def _put_and_rename(run: CommitContext, temp: str, final: str, data: bytes) -> None:
    if run.store.traits.atomic_put:
        await run.store.put(final, data)
        return
    await run.store.put(temp, data)
    await make_durable(run, temp)
    if not run.store.traits.rename_replaces:
        with suppress(NotFoundError):
            await run.store.delete(final)
    await run.store.rename(temp, final, replace=True)
    await make_durable(run, run.layout.manifests_dir)


async def _is_in_place(run: CommitContext, final: str, data: bytes) -> bool:
    try:
        return await run.store.get(final, len(data)) == data
    except StoreError:
        return False


async def _make_way(run: CommitContext, error: StoreError, temp: str, final: str) -> None:
    """Remove a directory that has a manifest's name, as the reference does."""
    if not isinstance(error, PreconditionError):
        return
    for path in (temp, final):
        with suppress(NotFoundError):
            if (await run.store.head(path)).is_dir:
                await remove_tree(run.store, path)


def _manifest(run: CommitContext, task_id: str, attempt_id: str, found: TaskFiles) -> TaskManifest:
    layout = run.layout
    statistics = run.meter.statistics
    for entry in found.files:
        statistics.sample("committer_task_file_size", entry.size)
    statistics.sample("committer_task_file_count", len(found.files))
    statistics.sample("committer_task_directory_count", len(found.directories))
    return TaskManifest(
        job_id=layout.job_id,
        job_attempt=layout.attempt,
        task_id=task_id,
        task_attempt_id=attempt_id,
        task_attempt_dir=layout.url(layout.task_attempt_dir(attempt_id)),
        files=tuple(
            FileEntry(layout.url(source), layout.url(dest), size, etag)
            for source, dest, size, etag in found.files
        ),
        # Hadoop's tasks look at each destination; a job commit, theirs and ours, does without.
        directories=tuple(
            DirEntry(layout.url(dest), UNKNOWN, level) for dest, level in found.directories.items()
        ),
        statistics=statistics,
    )


async def remove_own_manifest(run: CommitContext, task_id: str, attempt_id: str) -> None:
    """Delete the manifest of a task if it is the one of this attempt."""
    path = run.layout.manifest(task_id)
    try:
        data = await run.store.get(path, run.options.max_manifest_bytes)
        mine = decode_manifest(data, path).task_attempt_id == attempt_id
    except (NotFoundError, ManifestError):
        return
    if not mine:
        return
    # Another attempt may commit just now: what is deleted must be what was read.
    aside = f"{run.layout.manifest_temp(attempt_id)}.aborted"
    with suppress(NotFoundError):
        await run.store.rename(path, aside, replace=True)
        if await run.store.get(aside, run.options.max_manifest_bytes) == data:
            await remove_file(run.store, aside)
            return
        with suppress(ExistsError):
            await run.store.rename(aside, path)

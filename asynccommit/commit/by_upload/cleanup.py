"""The last step of commit, rollback and abort: delete own files.

The record is deleted after everything that it refers to, and the outcome after the record. A late
process therefore finds either that the commit is decided, or that there is no such commit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import cast

from asynccommit.commit.by_upload.backups import drop_copies
from asynccommit.commit.by_upload.context import UploadContext, read_if_there, save
from asynccommit.commit.by_upload.late_tasks import wait_for_late
from asynccommit.commit.by_upload.status import (
    attempts_among,
    attempts_of,
    begun_attempts,
    is_closed,
    is_held,
)
from asynccommit.commit.by_upload.sweep import Sweeper, Swept, sweep
from asynccommit.commit.job.cleanup import CleanupResult, see_left
from asynccommit.commit.paths import within
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.formats.commit_record import ABORTED
from asynccommit.formats.upload_record import MAX_RECORD_BYTES
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import BulkStore, Info, Kind, Page, Store
from asynccommit.stores.tree import (
    list_if_there,
    remove_below,
    remove_directories,
    remove_directory,
    remove_file,
    remove_files,
    tree_pages,
    walk,
)


def is_kept(run: UploadContext) -> bool:
    """Return whether the options keep the job's files."""
    return run.options.cleanup_skipped or run.options.uploads.keep_magic


async def clean_up(run: UploadContext) -> tuple[CleanupResult, Swept]:
    """Abort open uploads of this job's tasks, and delete the job's files.

    Raises ``StoreError`` if they cannot be deleted.
    """
    with run.meter.timed("job_stage_cleanup"):
        if is_kept(run):
            return CleanupResult.DISABLED, await _sweep_only(run, among_open=True)
        return await _end_job(run, Sweeper(run, among_open=True, swept=Swept()))


async def _sweep_only(run: UploadContext, *, among_open: bool) -> Swept:
    """Abort uploads of a job whose files stay.

    Its tasks learn that the job has ended as well.
    """
    with suppress(NotFoundError):
        await remove_file(run.pending, run.layout.living)
    return await sweep(run, among_open=among_open)


async def _end_job(run: UploadContext, sweeper: Sweeper) -> tuple[CleanupResult, Swept]:
    try:
        return await _delete_job(run, sweeper), sweeper.swept
    finally:
        sweeper.warn()


async def _delete_job(run: UploadContext, sweeper: Sweeper) -> CleanupResult:
    """Delete the files of all attempts of the job, if it has really ended.

    The record is read before anything is deleted: a job that took the same id afterwards, or
    another attempt whose commit has begun, keeps all its files. A file that names uploads is
    deleted after the uploads have ended, and only in the listed version.
    """
    if run.uses_temporary and await is_held(run):
        await _delete_scratch(run)
    found = await _delete_attempts(run, sweeper)
    await _remove_empty(run)
    if run.uses_temporary:
        await _remove_temporary(run)
    return CleanupResult.DELETED if found else CleanupResult.NOTHING


async def _delete_attempts(run: UploadContext, sweeper: Sweeper) -> bool:
    """Delete the files of all attempts; return whether there were any."""
    found, first = False, await _first_page(run)
    if first is None:
        attempts = await attempts_of(run)
    else:
        attempts = attempts_among(run.layout, first.entries)
    for layout in attempts:
        if layout.attempt == run.layout.attempt:
            found |= await _delete_attempt(run, sweeper, first)
            continue
        other = run.of_attempt(layout)
        if await _close_one(other):
            found |= await _delete_attempt(other, sweeper.of(other))
    return found


async def _first_page(run: UploadContext) -> Page | None:
    """Return what all attempts hold, if one request lists it."""
    if not run.pending.traits.bulk_delete:
        return None
    page = await cast(BulkStore, run.pending).list_tree(run.layout.attempts_dir)
    return page if page.token is None else None


async def _delete_scratch(run: UploadContext) -> None:
    """Delete the job's files in ``_temporary``, except copies of its commits."""
    scratch = run.layout.scratch
    await remove_below(run.store, scratch, lambda info: info.path.startswith(f"{scratch}/aside-"))


async def _remove_temporary(run: UploadContext) -> None:
    """Delete ``_temporary``, if no job is in it."""
    try:
        await remove_directory(run.store, run.layout.temporary)
    except (ExistsError, NotFoundError, PreconditionError):
        pass  # another job uses it, or has deleted it
    except StoreError as error:
        run.warn(f"an empty {run.layout.temporary} remains: {error}")


async def _delete_attempt(run: UploadContext, sweeper: Sweeper, first: Page | None = None) -> bool:
    """Delete the files of an attempt: last the record, then the outcome.

    ``first`` is a listing of all attempts.
    """
    below = within(run.layout.aside_dir, [run.layout.attempt_dir])
    held = (below and first is not None) or await is_held(run)
    # A task reads the living file, and its intents, after it has recorded what
    # it has begun. The first round deletes them: the second finds what the task did not undo.
    most = await _delete_most(run, sweeper, first) if held else None
    if run.identity.commit_id and not (below and most is not None):
        await drop_copies(run)
    found = bool(most)
    if most is not None:
        found |= bool(await _delete_most(run, sweeper))
        if not run.identity.commit_id:
            found |= await wait_for_late(run, sweeper, lambda: _deletes(run, sweeper))
        found |= await _remove_record(run)
    if run.identity.commit_id and not run.pending.traits.bulk_delete:
        await _delete_own(run)
    return found


async def _deletes(run: UploadContext, sweeper: Sweeper) -> bool:
    return bool(await _delete_most(run, sweeper))


async def _delete_own(run: UploadContext) -> None:
    """Delete the files that only this commit can have written."""
    last = [i for i in await list_if_there(run.pending, run.layout.attempt_dir) if _is_own(run, i)]
    await for_each(last, lambda info: _remove_unchanged(run, info), workers=run.workers)


def _is_own(run: UploadContext, info: Info) -> bool:
    """Return whether a file tells the state of this commit.

    Such a file is deleted after the record.
    """
    layout = run.layout
    if info.is_dir or not run.identity.commit_id:
        return False
    plans = layout.plan(run.identity.commit_id, 0).removesuffix("00000.json")
    return info.path in (layout.outcome, layout.start, layout.done) or info.path.startswith(plans)


def _stays(run: UploadContext, info: Info) -> bool:
    """Return whether a file must not be deleted before the record.

    Copies belong to the commit that made them, as their names say: no other process deletes them.
    """
    layout = run.layout
    if within(layout.aside_dir, [layout.attempt_dir]):
        name = info.path[len(layout.attempt_dir) + 1 :].partition("/")[0]
        if name.startswith("aside-"):
            own = run.identity.commit_id and within(info.path, [layout.aside_dir])
            return run.keeps_copies or not own
    return info.path == layout.record or _is_own(run, info)


async def _remove_record(run: UploadContext) -> bool:
    """Delete the record of this commit, or an abort's file in its place."""
    path = run.layout.record
    try:
        info = await run.pending.head(path)
    except NotFoundError:
        return False
    known = info.etag is not None and info.etag == run.known.etag
    if not known and not await is_held(run):
        return False
    if run.pending.traits.bulk_delete:
        await remove_files(run.pending, [info])
    else:
        with suppress(NotFoundError):
            await run.pending.delete(path)
    return True


async def _delete_most(
    run: UploadContext, sweeper: Sweeper, first: Page | None = None
) -> bool | None:
    """Delete the files of an attempt, except those with its commit's state.

    The object for the directory is deleted too: once the record is gone, no commit exists. The
    record is read after the files to delete were listed; ``first`` is such a listing.

    Returns whether there were any, and ``None`` if the record is no longer this commit's.
    """
    if not run.pending.traits.bulk_delete:
        return await _delete_walked(run, sweeper)
    store, layout = run.pending, run.layout
    found, directories = False, list[Info]()
    async for page in _pages(store, layout.attempts_dir, first):
        inside = [i for i in page if within(i.path, [layout.attempt_dir]) and not _stays(run, i)]
        directories += [info for info in inside if info.is_dir and info.etag is None]
        files = [info for info in inside if not info.is_dir or info.etag is not None]
        if files and not await _may_delete(run, sweeper, files):
            return None
        most = store.traits.bulk_delete
        batches = [files[at : at + most] for at in range(0, len(files), most)]
        await for_each(batches, lambda some: remove_files(store, some), workers=run.workers)
        found = found or bool(inside)
    if directories and await is_held(run):
        await remove_directories(store, directories)
    return found


async def _pages(store: Store, path: str, first: Page | None) -> AsyncIterator[tuple[Info, ...]]:
    if first is not None:
        yield first.entries
        return
    async for page in tree_pages(store, path):
        yield page


async def _may_delete(run: UploadContext, sweeper: Sweeper, files: Sequence[Info]) -> bool:
    """Abort uploads that listed files name; return whether we own them still."""
    if not await is_held(run):
        return False
    return not await sweeper.take(files) or await is_held(run)


async def _delete_walked(run: UploadContext, sweeper: Sweeper) -> bool | None:
    """Implement ``_delete_most`` for stores with real directories.

    These stores do not delete by etag.
    """
    store = run.pending
    try:
        inside = [i async for i in walk(store, run.layout.attempt_dir) if not _stays(run, i)]
    except NotFoundError:
        return False
    files = [info for info in inside if not info.is_dir]
    if not inside:
        return False
    if not await _may_delete(run, sweeper, files):
        return None
    await for_each(files, lambda info: _remove_unchanged(run, info), workers=run.workers)
    for info in sorted((i for i in inside if i.is_dir), key=lambda i: i.path, reverse=True):
        with suppress(NotFoundError, ExistsError):  # something was added to it
            await store.delete(info.path)
    return True


async def _remove_unchanged(run: UploadContext, info: Info) -> None:
    """Delete a file if it is unchanged since it was listed."""
    with suppress(NotFoundError):
        if (await run.pending.head(info.path)).etag == info.etag:
            await run.pending.delete(info.path)


async def _remove_empty(run: UploadContext) -> None:
    """Delete the last files of a commit, and the empty directories."""
    store, layout = run.pending, run.layout
    if store.traits.bulk_delete:
        await _remove_last(run)
        return
    path = layout.attempt_dir
    while within(path, [layout.job_dir]):
        try:
            await store.delete(path)
        except NotFoundError:
            pass
        except (ExistsError, PreconditionError):
            return
        path = path.rpartition("/")[0]


async def _remove_last(run: UploadContext) -> None:
    """Delete last files and directories where a directory is an object."""
    store, job_dir = run.pending, run.layout.job_dir
    last, objects, empty = list[Info](), list[Info](), True
    async for page in tree_pages(store, job_dir):
        last += [info for info in page if _is_own(run, info)]
        objects += [info for info in page if info.is_dir and info.etag is not None]
        empty = empty and all(info.is_dir or _is_own(run, info) for info in page)
    folders = store.traits.atomic_directory_rename
    if empty:
        last += objects
        last += [] if folders else [Info(job_dir, Kind.DIRECTORY)]
    most = store.traits.bulk_delete
    for at in range(0, len(last), most):
        await remove_files(store, last[at : at + most])
    if empty and folders:
        with suppress(NotFoundError, ExistsError):
            await remove_directory(store, job_dir)


# --- abort -----------------------------------------------------------------------------------


async def clean_up_aborted(run: UploadContext) -> tuple[CleanupResult, Swept]:
    """Abort all uploads of a job without a commit, and delete its files.

    Raises ``StoreError`` if that fails.
    """
    if not await attempts_of(run):
        return CleanupResult.NOTHING, Swept()
    if await begun_attempts(run) or not await _close(run):
        return CleanupResult.KEPT, Swept()
    if is_kept(run):
        return CleanupResult.DISABLED, await _sweep_only(run, among_open=False)
    outcome, swept = await _end_job(run, Sweeper(run, among_open=False, swept=Swept()))
    return await see_left(run, run.pending, run.layout.job_dir, outcome), swept


async def _close(run: UploadContext) -> bool:
    """Occupy the record's place of every attempt, so that no commit begins.

    Returns false if a commit has begun.
    """
    for layout in await attempts_of(run):
        if not await _close_one(run.of_attempt(layout)):
            return False
    return True


async def _close_one(run: UploadContext) -> bool:
    """Occupy the record's place of an attempt; false if its commit has begun."""
    try:
        await save(run, run.layout.record, ABORTED)
    except ExistsError:
        data = await read_if_there(run, run.layout.record, MAX_RECORD_BYTES)
        return data is None or is_closed(data)
    except NotFoundError:
        pass  # its directory is gone
    return True

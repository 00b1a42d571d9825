"""The last step of commit, rollback and abort: this job's own files, and no other job's.

The record goes after all that it speaks of, and what tells how the commit ended goes after the
record: who comes late finds either that it is decided, or that no such commit is.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.formats.commit_record import ABORTED
from asynccommit.formats.upload_record import MAX_RECORD_BYTES
from asynccommit.parallel import (
    for_each,
    list_if_there,
    remove_below,
    remove_directories,
    remove_directory,
    remove_file,
    remove_files,
    remove_tree,
    tree_pages,
)
from asynccommit.stages.cleanup import Outcome, see_left
from asynccommit.stages.plan import within
from asynccommit.stages.uploads.asides import drop_copies
from asynccommit.stages.uploads.outcome import is_held
from asynccommit.stages.uploads.run import UploadRun, read_if_there, save
from asynccommit.stages.uploads.standing import attempts_of, begun_attempts, is_closed
from asynccommit.stages.uploads.sweep import Swept, sweep
from asynccommit.store import Info


def is_kept(run: UploadRun) -> bool:
    """Whether options say that the job's files stay."""
    return run.options.cleanup_skipped or run.options.uploads.keep_magic


async def clean_up(run: UploadRun) -> Outcome:
    """Abort the uploads that this job's tasks have left, and delete its files.

    Raises ``StoreError`` if they cannot be deleted.
    """
    with run.timed("job_stage_cleanup"):
        await sweep(run, among_open=True)
        if is_kept(run):
            return Outcome.DISABLED
        return await delete_job(run)


async def delete_job(run: UploadRun) -> Outcome:
    """Delete the files of all attempts of the job, as long as it is this one that has ended.

    The record's place is looked at before anything is deleted: a job that took the same id
    afterwards, or another attempt whose commit has begun, keeps all that it has.
    """
    found = False
    if await is_held(run):
        await _delete_scratch(run)
    for layout in await attempts_of(run):
        if layout.attempt == run.layout.attempt:
            found |= await _delete_attempt(run)
            continue
        other = replace(run, layout=layout, commit_id="")
        if await _close_one(other):
            found |= await _delete_attempt(other)
    await _remove_empty(run)
    await _remove_temporary(run)
    return Outcome.DELETED if found else Outcome.NOTHING


async def _delete_scratch(run: UploadRun) -> None:
    """Delete what the job has in ``_temporary`` but for the copies of its commits."""
    scratch = run.layout.scratch
    await remove_below(run.store, scratch, lambda info: info.path.startswith(f"{scratch}/aside-"))


async def _remove_temporary(run: UploadRun) -> None:
    """Delete ``_temporary``, if no job is in it."""
    try:
        await remove_directory(run.store, run.layout.temporary)
    except (ExistsError, NotFoundError, PreconditionError):
        pass  # another job is in it, or was quicker
    except StoreError as error:
        run.warn(f"an empty {run.layout.temporary} is left: {error}")


async def _delete_attempt(run: UploadRun) -> bool:
    """Delete the files of an attempt: the record after all others, and the outcome after it."""
    found, held = False, await is_held(run)
    below = within(run.layout.aside_dir, [run.layout.attempt_dir])
    if run.commit_id and not (held and below):
        await drop_copies(run)
    if held:
        # A task that committed meanwhile has looked for its intents, which the first round
        # deletes, after it wrote its set: the second finds what it did not take back.
        found = await _delete_most(run)
        found |= await _delete_most(run)
        found |= await _remove_record(run)
    if run.commit_id:
        await _delete_own(run)
    return found


async def _delete_own(run: UploadRun) -> None:
    """Delete what only this very commit can have written."""
    last = [i for i in await list_if_there(run.pending, run.layout.attempt_dir) if _is_own(run, i)]
    if last and run.pending.traits.bulk_delete:
        await remove_files(run.pending, last)
    elif last:
        await for_each(last, lambda info: _remove(run, info), workers=run.workers)


def _is_own(run: UploadRun, info: Info) -> bool:
    """Whether a file says how this commit stands: it goes after the record."""
    layout = run.layout
    if info.is_dir or not run.commit_id:
        return False
    plans = layout.plan(run.commit_id, 0).removesuffix("00000.json")
    return info.path in (layout.outcome, layout.start, layout.done) or info.path.startswith(plans)


def _stays(run: UploadRun, info: Info) -> bool:
    """Whether something in an attempt's directory is not to go before the record.

    Copies that a commit has made are that one's, by its name: nobody else deletes them.
    """
    layout = run.layout
    if within(layout.aside_dir, [layout.attempt_dir]):
        name = info.path[len(layout.attempt_dir) + 1 :].partition("/")[0]
        if name.startswith("aside-"):
            own = run.commit_id and within(info.path, [layout.aside_dir])
            return run.keeps_copies or not own
    return info.path == layout.record or _is_own(run, info)


async def _remove_record(run: UploadRun) -> bool:
    """Delete the record of this very commit, or what an abort has put in its place."""
    path = run.layout.record
    try:
        info = await run.pending.head(path)
    except NotFoundError:
        return False
    if not await is_held(run):
        return False
    if run.pending.traits.bulk_delete:
        await remove_files(run.pending, [info])
    else:
        with suppress(NotFoundError):
            await run.pending.delete(path)
    return True


async def _delete_most(run: UploadRun) -> bool:
    """Delete the files of an attempt but for those that say how its commit stands.

    The object that stands for the directory goes, too: once the record is gone, there is none. The
    record is looked at after what is deleted was listed.
    """
    store, directory = run.pending, run.layout.attempt_dir
    if store.traits.bulk_delete:
        return await _delete_pages(run)
    children = [i for i in await list_if_there(store, directory) if not _stays(run, i)]
    if children and await is_held(run):
        await for_each(children, lambda info: _remove(run, info), workers=run.workers)
    return bool(children)


async def _delete_pages(run: UploadRun) -> bool:
    store, layout = run.pending, run.layout
    found, directories = False, list[Info]()
    async for page in tree_pages(store, layout.attempts_dir):
        inside = [i for i in page if within(i.path, [layout.attempt_dir]) and not _stays(run, i)]
        directories += [info for info in inside if info.is_dir and info.etag is None]
        files = [info for info in inside if not info.is_dir or info.etag is not None]
        if files and not await is_held(run):
            return found
        most = store.traits.bulk_delete
        batches = [files[at : at + most] for at in range(0, len(files), most)]
        await for_each(batches, lambda some: remove_files(store, some), workers=run.workers)
        found = found or bool(inside)
    if directories and await is_held(run):
        await remove_directories(store, directories)
    return found


async def _remove(run: UploadRun, info: Info) -> None:
    with suppress(NotFoundError):
        await (remove_tree if info.is_dir else remove_file)(run.pending, info.path)


async def _remove_empty(run: UploadRun) -> None:
    """Delete the directories of the job, if no file is in them."""
    store, layout = run.pending, run.layout
    if store.traits.bulk_delete:
        objects: list[Info] = []
        async for page in tree_pages(store, layout.job_dir):
            if any(not info.is_dir for info in page):
                return
            objects += [info for info in page if info.etag is not None]
        if objects:
            await remove_files(store, objects)
        with suppress(NotFoundError, ExistsError):
            await remove_directory(store, layout.job_dir)
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


# --- abort -----------------------------------------------------------------------------------


async def clean_up_aborted(run: UploadRun) -> tuple[Outcome, Swept]:
    """Abort all uploads of a job of which no commit has begun, and delete its files.

    Raises ``StoreError`` if that cannot be done.
    """
    swept = Swept()
    attempts = await attempts_of(run)
    if not attempts:
        return Outcome.NOTHING, swept
    if await begun_attempts(run):
        return Outcome.KEPT, swept
    if not await _close(run):
        return Outcome.KEPT, swept
    swept = await sweep(run, among_open=False)
    if is_kept(run):
        return Outcome.DISABLED, swept
    outcome = await delete_job(run)
    return await see_left(run, run.pending, run.layout.job_dir, outcome), swept


async def _close(run: UploadRun) -> bool:
    """Take the place of the record of every attempt, so that no commit begins; false if one has."""
    for layout in await attempts_of(run):
        if not await _close_one(replace(run, layout=layout, commit_id="")):
            return False
    return True


async def _close_one(run: UploadRun) -> bool:
    """Take the place of the record of an attempt; false if its commit has begun."""
    try:
        await save(run, run.layout.record, ABORTED)
    except ExistsError:
        data = await read_if_there(run, run.layout.record, MAX_RECORD_BYTES)
        return data is None or is_closed(data)
    except NotFoundError:
        pass  # its directory is gone
    return True

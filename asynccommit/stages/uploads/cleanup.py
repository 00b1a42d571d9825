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
from asynccommit.job import OUTCOME, PLAN, RECORD
from asynccommit.parallel import (
    for_each,
    list_if_there,
    remove_below,
    remove_directory,
    remove_file,
    remove_files,
    remove_tree,
)
from asynccommit.stages.cleanup import Outcome
from asynccommit.stages.uploads.run import UploadRun, read_if_there, save
from asynccommit.stages.uploads.standing import attempts_of, begun_attempts, is_closed, read_record
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
    """Delete the files of all attempts of the job."""
    found = False
    for layout in await attempts_of(run):
        mine = layout.attempt == run.layout.attempt
        found |= await _delete_attempt(run if mine else replace(run, layout=layout, commit_id=""))
    with suppress(NotFoundError):
        await remove_tree(run.pending, run.layout.job_dir)
    await _delete_temporary(run)
    return Outcome.DELETED if found else Outcome.NOTHING


async def _delete_temporary(run: UploadRun) -> None:
    """Delete what the job has in ``_temporary``; and that, if no other job is in it."""
    with suppress(NotFoundError):
        await remove_tree(run.store, run.layout.scratch)
    try:
        await remove_directory(run.store, run.layout.temporary)
    except (ExistsError, NotFoundError, PreconditionError):
        pass  # another job is in it, or was quicker
    except StoreError as error:
        run.warn(f"an empty {run.layout.temporary} is left: {error}")


async def _delete_attempt(run: UploadRun) -> bool:
    """Delete the files of an attempt: the record after all others, and the outcome after it."""
    found = await _delete_most(run)
    found |= await _remove_record(run)
    with suppress(NotFoundError):
        await remove_tree(run.pending, run.layout.attempt_dir)
    return found


def _is_last(info: Info) -> bool:
    name = info.path.rpartition("/")[2].removeprefix("_")
    return not info.is_dir and name.startswith((RECORD, OUTCOME, PLAN))


async def _remove_record(run: UploadRun) -> bool:
    """Delete the record of this very commit, or what an abort has put in its place."""
    path = run.layout.record
    try:
        info = await run.pending.head(path)
        data = await run.pending.get(path, MAX_RECORD_BYTES)
    except NotFoundError:
        return False
    mine = is_closed(data) or read_record(run.layout, data).plan_id == run.commit_id
    if not mine:
        raise PreconditionError("delete", path, "is of another commit by now")
    if run.pending.traits.bulk_delete:
        await remove_files(run.pending, [info])
    else:
        with suppress(NotFoundError):
            await run.pending.delete(path)
    return True


async def _delete_most(run: UploadRun) -> bool:
    """Delete the files of an attempt but for those that say how its commit stands."""
    store, directory = run.pending, run.layout.attempt_dir
    depth = directory.count("/") + 1
    if store.traits.bulk_delete:

        def stays(info: Info) -> bool:
            return info.path.count("/") == depth and _is_last(info)

        return await remove_below(store, directory, stays) > 0
    children = [info for info in await list_if_there(store, directory) if not _is_last(info)]

    async def remove(info: Info) -> None:
        with suppress(NotFoundError):
            await (remove_tree if info.is_dir else remove_file)(store, info.path)

    await for_each(children, remove, workers=run.workers)
    return bool(children)


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
    return await delete_job(run), swept


async def _close(run: UploadRun) -> bool:
    """Take the place of the record of every attempt, so that no commit begins; false if one has."""
    for layout in await attempts_of(run):
        try:
            await save(run, layout.record, ABORTED)
        except ExistsError:
            data = await read_if_there(run, layout.record, MAX_RECORD_BYTES)
            if data is not None and not is_closed(data):
                return False
        except NotFoundError:
            continue  # its directory is gone
    return True

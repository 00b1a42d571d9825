"""The last step of commit and abort: delete this job's directory.

The directory of the job attempt is first renamed, if the store can: a commit that begins during an
abort then finds its directory gone, and an interrupted process leaves a name that is not mistaken
for a job attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

from asynccommit.commit.by_rename.flat_namespace import close_record, delete_attempt
from asynccommit.commit.by_rename.job_state import is_set_up_again
from asynccommit.commit.by_rename.lease import haste
from asynccommit.commit.by_rename.shared_directories import delete_own, remove_shared, take_own
from asynccommit.commit.by_rename.status import epoch_of, read_state
from asynccommit.commit.context import CommitContext
from asynccommit.commit.hints import job_command
from asynccommit.commit.job.cleanup import CleanupResult, remove_if_empty, see_left
from asynccommit.commit.job.own_tasks import own_tasks
from asynccommit.commit.layout import ENDED, RECORD
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.formats.commit_record import MAX_RECORD_BYTES
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.grant import granting, unchecked
from asynccommit.stores.tree import (
    is_there,
    list_all,
    list_if_there,
    remove_directory,
    remove_tree,
    walk,
)


async def clean_up(run: CommitContext) -> CleanupResult:
    """Delete a committed job below ``_temporary``, and that if it is empty.

    What other attempts of the job have goes first: one that begins to commit late finds nothing to
    move there, or this one's record. Raises ``StoreError`` if the job's directory cannot be
    deleted, or a commit of another attempt has begun: then the record stays as well.
    """
    if run.options.cleanup_skipped:
        return CleanupResult.DISABLED
    with run.meter.timed("job_stage_cleanup"):
        await _delete_attempts(run, but=run.layout.attempt_dir)
        outcome = await _delete_ended_attempt(run, "committed")
        await _delete_job_dir(run)
        await _delete_parents(run)
    return outcome


async def _delete_job_dir(run: CommitContext) -> None:
    """Delete the job's directory, and files that were added to it late."""
    try:
        await remove_directory(run.store, run.layout.job_dir)
    except NotFoundError:
        return
    except ExistsError:
        if run.store.traits.fences and await is_set_up_again(run):
            return
        try:
            await _delete_attempts(run)
        except PreconditionError:
            return  # of the next job with this id, which has begun to commit
        if run.store.traits.bulk_delete:
            with suppress(NotFoundError, ExistsError):
                await remove_directory(run.store, run.layout.job_dir)
            return
        with suppress(NotFoundError):
            await remove_tree(run.store, run.layout.job_dir)


async def _delete_attempts(run: CommitContext, but: str = "") -> None:
    """Delete the files of all attempts of the job except ``but``.

    Raises ``PreconditionError`` if a commit of one has begun.
    """
    for info in await list_if_there(run.store, run.layout.job_dir):
        if info.path == but or not (info.is_dir and _is_attempt(info.path)):
            continue
        number = int(info.path.rpartition("/")[2])
        layout = replace(run.layout, attempt=number, commit="")
        other = run.of_attempt(layout)
        await restore_begun(other)
        if await _abort(other) is CleanupResult.KEPT:
            text = f"a commit of this attempt has begun too: {job_command('status', layout)}"
            raise PreconditionError("delete", layout.attempt_dir, text)


async def clean_up_aborted(run: CommitContext) -> CleanupResult:
    """Delete an aborted job attempt, unless a commit of it has begun.

    Raises ``StoreError`` if the job attempt's directory cannot be deleted.
    """
    check = haste(run)
    await restore_begun(run)
    if await begun_attempts(run):
        return CleanupResult.KEPT
    if run.options.cleanup_skipped:
        return CleanupResult.DISABLED
    made = await is_there(run.store, run.layout.made_destination)
    outcome = await _abort(run, check)
    if outcome is not CleanupResult.KEPT:
        await _delete_bare_job_dir(run)
        await _delete_parents(run)
        if made:
            await remove_if_empty(run, run.layout.dest.path)
        return await see_left(run, run.store, run.layout.attempt_dir, outcome)
    return outcome


async def _abort(run: CommitContext, check: Callable[[], None] | None = None) -> CleanupResult:
    """Delete a job attempt, and no other, unless its commit has begun."""
    if run.store.traits.bulk_delete:
        return await _delete_unfenced(run)
    await delete_ended(run)
    place = run.layout.attempt_dir
    if run.layout.shared:
        if not (await is_there(run.store, place) or await own_tasks(run, until=run.layout.attempt)):
            return CleanupResult.NOTHING
        await run.store.mkdir(place)  # to be renamed: who begins to commit now learns of it
    if run.store.traits.fences:
        with granting(check=check):
            place = await _set_aside(run, "aborted")
    if place != run.layout.attempt_dir and await _has_record(run, place):
        await _put_back(run, place)
        return CleanupResult.KEPT
    try:
        await _refuse_asides(run, place)
    except PreconditionError:
        await _put_back(run, place)
        raise
    await take_own(run, place)
    return await _delete_attempt(run, place)


async def _refuse_asides(run: CommitContext, place: str) -> None:
    """Refuse to delete a table's own files, moved aside without a record.

    Such files exist only if the record was deleted. Raises ``PreconditionError``.
    """
    for child in await list_if_there(run.store, place):
        if not (child.is_dir and epoch_of(child.path)):
            continue
        for aside in await list_if_there(run.store, f"{child.path}/aside"):
            async for info in walk(run.store, aside.path):
                if not info.is_dir:
                    text = (
                        "a file of the table was moved aside, and no record tells by which commit"
                    )
                    raise PreconditionError("delete", info.path, text)


async def _delete_unfenced(run: CommitContext) -> CleanupResult:
    """Delete an aborted job attempt, once no commit of it can begin."""
    if not await is_there(run.store, run.layout.attempt_dir):
        return CleanupResult.NOTHING
    await _refuse_asides(run, run.layout.attempt_dir)
    record = await close_record(run)
    if record is None:
        return CleanupResult.KEPT
    await delete_attempt(run, record)
    return CleanupResult.DELETED


async def clean_up_rolled_back(run: CommitContext) -> CleanupResult:
    """Delete a job attempt whose commit was undone.

    Raises ``StoreError`` if the job attempt's directory cannot be deleted.
    """
    with run.meter.timed("job_stage_cleanup"):
        outcome = await _delete_ended_attempt(run, "rolledback")
        await _delete_bare_job_dir(run)
        await _delete_parents(run)
    return outcome


async def begun_attempts(run: CommitContext, *, others: bool = False) -> list[str]:
    """Return the directories of this job's attempts that have begun to commit.

    ``others`` leaves out this attempt.
    """
    attempts = await list_if_there(run.store, run.layout.job_dir)
    open_ = [info.path for info in attempts if info.is_dir and _is_attempt(info.path)]
    if others:
        open_ = [path for path in open_ if path != run.layout.attempt_dir]
    return [path for path in open_ if await _has_begun(run, path)]


def _is_attempt(path: str) -> bool:
    """Return whether a directory is named like an unfinished attempt."""
    name = path.rpartition("/")[2]
    digits = name.isascii() and name.isdigit() and len(name) <= 4
    return digits and name == f"{int(name):02d}"


async def _has_begun(run: CommitContext, attempt_dir: str) -> bool:
    if run.store.traits.fences:
        return await _has_record(run, attempt_dir)
    layout = replace(run.layout, attempt=int(attempt_dir.rpartition("/")[2]))
    try:
        return await read_state(run.store, layout) is not None
    except ManifestError:
        return True  # nothing of ours, and nothing to delete


async def _has_record(run: CommitContext, attempt_dir: str) -> bool:
    try:
        record = await run.store.get(f"{attempt_dir}/{RECORD}", MAX_RECORD_BYTES)
    except NotFoundError:
        return False
    except (PreconditionError, RejectedError):
        return True  # a directory, or too large: nothing of ours, and nothing to delete
    return bool(record.strip(b"\0"))


async def _delete_ended_attempt(run: CommitContext, how: str) -> CleanupResult:
    await delete_own(run)  # as long as the record is there
    if run.store.traits.fences:
        lease = run.lease
        if lease is not None:
            await lease.end()
        place = await _set_aside(run, how)
        if lease is not None:
            lease.free()  # nobody begins below the name that the directory has now
        return await _delete_attempt(run, place)
    if not run.store.traits.bulk_delete:
        return await _delete_attempt(run, run.layout.attempt_dir)
    return CleanupResult.DELETED if await delete_attempt(run) else CleanupResult.NOTHING


async def _set_aside(run: CommitContext, what: str) -> str:
    """Rename the job attempt's directory, and return its new path.

    No commit can begin in it then.
    """
    source, place = run.layout.attempt_dir, run.layout.ended(what)
    try:
        await run.store.rename(source, place)
    except NotFoundError:
        return source
    except ExistsError:  # what a process left that died while deleting
        await run.store.delete_tree(place)
        await run.store.rename(source, place)
    if run.identity.commit_id and not await _is_of_commit(run, place):
        with unchecked():
            await _put_back(run, place)  # of a later job with this id
        raise PreconditionError("delete_tree", source, "now belongs to another commit")
    return place


async def _is_of_commit(run: CommitContext, place: str) -> bool:
    """Return whether a directory contains the record of this commit."""
    try:
        record = await run.store.get(f"{place}/{RECORD}", MAX_RECORD_BYTES)
    except NotFoundError:
        return False
    return sha256(record).hexdigest() == run.identity.commit_id


async def _delete_bare_job_dir(run: CommitContext) -> None:
    """Delete the job's directory, and unfinished writes, if it has no attempt."""
    try:
        await remove_directory(run.store, run.layout.job_dir)
    except NotFoundError:
        return
    except ExistsError:
        if not await list_if_there(run.store, run.layout.job_dir):
            with suppress(NotFoundError):
                await remove_tree(run.store, run.layout.job_dir)


async def _put_back(run: CommitContext, place: str) -> None:
    """Undo ``_set_aside``, even if a commit made new directories since."""
    try:
        await run.store.rename(place, run.layout.attempt_dir)
        return
    except ExistsError:
        children = await list_all(run.store, place)
    for child in children:
        with suppress(ExistsError):
            name = child.path.rpartition("/")[2]
            await run.store.rename(child.path, f"{run.layout.attempt_dir}/{name}")


async def restore_begun(run: CommitContext) -> bool:
    """Put back a commit that began while an abort renamed it.

    This applies if the abort died before it could do so.

    Returns whether there was one.
    """
    if not run.store.traits.fences:
        return False  # nothing was renamed
    place = run.layout.ended("aborted")
    begun = await _has_record(run, place)
    if begun:
        await _put_back(run, place)
    return begun


async def delete_ended(run: CommitContext) -> None:
    """Delete the remains of a process that died deleting this job attempt."""
    with suppress(NotFoundError):
        for info in await list_all(run.store, run.layout.job_dir):
            if info.path in [run.layout.ended(how) for how in ENDED]:
                await run.store.delete_tree(info.path)


async def _delete_attempt(run: CommitContext, place: str) -> CleanupResult:
    options, healthy = run.options, False
    if options.parallel_delete:
        if options.delete_base_first and await _delete_at_once(run, place):
            return CleanupResult.DELETED
        healthy = await _delete_task_attempts(run, place)
    try:
        await run.store.delete_tree(place)
    except NotFoundError:
        return CleanupResult.NOTHING
    return CleanupResult.PARALLEL_DELETE if healthy else CleanupResult.DELETED


async def _delete_at_once(run: CommitContext, place: str) -> bool:
    try:
        await run.store.delete_tree(place)
    except StoreError:
        return False  # not there, or too large for one request: the other way tells
    return True


async def _delete_task_attempts(run: CommitContext, place: str) -> bool:
    """Delete all task attempt directories; return whether all went well.

    Return false also if there were none.
    """
    try:
        attempts = await list_all(run.store, f"{place}/tasks")
    except StoreError:
        return False  # the delete of the whole tells what is wrong
    run.meter.total = len(attempts) + 1
    failures: list[StoreError] = []

    async def delete(path: str) -> None:
        try:
            await run.store.delete_tree(path)
        except NotFoundError:
            pass
        except StoreError as error:
            failures.append(error)
        run.meter.step()

    paths = [info.path for info in attempts if info.is_dir]
    await for_each(paths, delete, workers=run.workers)
    return bool(paths) and not failures


async def _delete_parents(run: CommitContext) -> None:
    """Delete ``_temporary`` if no job is left in it; keep a link in its place."""
    if run.layout.shared:
        await remove_shared(run)
    try:
        await remove_directory(run.store, run.layout.temporary)
    except (ExistsError, NotFoundError, PreconditionError):
        pass  # another job is in it, or was quicker
    except StoreError as error:
        run.warn(f"an empty {run.layout.temporary} remains: {error}")

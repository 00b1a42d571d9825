"""The last step of commit and abort: delete this job's directory.

The directory of the job attempt is first renamed, if the store can: a commit that begins during an
abort then finds its directory gone, and an interrupted process leaves a name that is not mistaken
for a job attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.hints import job_command
from asynccommit.commit.job.cleanup import CleanupResult, remove_if_empty, see_left
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.job_state import is_set_up_again
from asynccommit.commit.ownership.lease import haste
from asynccommit.commit.ownership.shared_directories import delete_own, remove_shared
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, StoreError
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_if_there, remove_directory, remove_tree


async def find_attempts(run: CommitContext) -> Sequence[Info] | None:
    """Return the entries of the job's directory; ``None`` if it is not read."""
    if not run.options.cleanup_skipped:
        with suppress(StoreError):  # the clean-up asks again, and reports the error
            return await list_if_there(run.store, run.layout.job_dir)
    return None


async def clean_up(run: CommitContext, attempts: Sequence[Info] | None = None) -> CleanupResult:
    """Delete a committed job below ``_temporary``, and that if it is empty.

    What other attempts of the job have goes first: one that begins to commit late finds nothing to
    move there, or this one's record.

    Args:
        run: the job.
        attempts: what is in the job's directory, if that was read a moment ago.

    Raises ``StoreError`` if the job's directory cannot be
    deleted, or a commit of another attempt has begun: then the record stays as well.
    """
    if run.options.cleanup_skipped:
        return CleanupResult.DISABLED
    with run.meter.timed("job_stage_cleanup"):
        await _delete_attempts(run, run.layout.attempt_dir, attempts)
        outcome = await _delete_ended(run, "committed")
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
        if not run.store.traits.bulk_delete and await is_set_up_again(run):
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


async def _delete_attempts(
    run: CommitContext, but: str = "", attempts: Sequence[Info] | None = None
) -> None:
    """Delete the files of all attempts of the job except ``but``.

    Raises ``PreconditionError`` if a commit of one has begun.
    """
    directory = directory_of(run)
    if attempts is None:
        attempts = await list_if_there(run.store, run.layout.job_dir)
    for info in attempts:
        if info.path == but or not (info.is_dir and _is_attempt(info.path)):
            continue
        number = int(info.path.rpartition("/")[2])
        layout = replace(run.layout, attempt=number, commit="")
        other = run.of_attempt(layout)
        await directory.restore_begun(other)
        if await directory.abort(other) is CleanupResult.KEPT:
            text = f"a commit of this attempt has begun too: {job_command('status', layout)}"
            raise PreconditionError("delete", layout.attempt_dir, text)


async def clean_up_aborted(run: CommitContext) -> CleanupResult:
    """Delete an aborted job attempt, unless a commit of it has begun.

    Raises ``StoreError`` if the job attempt's directory cannot be deleted.
    """
    check, directory = haste(run), directory_of(run)
    await directory.restore_begun(run)
    if await begun_attempts(run):
        return CleanupResult.KEPT
    if run.options.cleanup_skipped:
        return CleanupResult.DISABLED
    made = await is_there(run.store, run.layout.made_destination)
    outcome = await directory.abort(run, check)
    if outcome is not CleanupResult.KEPT:
        await _delete_bare_job_dir(run)
        await _delete_parents(run)
        if made:
            await remove_if_empty(run, run.layout.dest.path)
        return await see_left(run, run.store, run.layout.attempt_dir, outcome)
    return outcome


async def clean_up_rolled_back(run: CommitContext) -> CleanupResult:
    """Delete a job attempt whose commit was undone.

    Raises ``StoreError`` if the job attempt's directory cannot be deleted.
    """
    with run.meter.timed("job_stage_cleanup"):
        outcome = await _delete_ended(run, "rolledback")
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
    return [path for path in open_ if await directory_of(run).has_begun(run, path)]


def _is_attempt(path: str) -> bool:
    """Return whether a directory is named like an unfinished attempt."""
    name = path.rpartition("/")[2]
    digits = name.isascii() and name.isdigit() and len(name) <= 4
    return digits and name == f"{int(name):02d}"


async def _delete_ended(run: CommitContext, how: str) -> CleanupResult:
    await delete_own(run)  # as long as the record is there
    return await directory_of(run).delete_ended(run, how)


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

"""Delete the files of a job attempt once nobody can commit them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.layouts.layout import ENDED
from asynccommit.commit.ownership.status import epoch_of
from asynccommit.errors import NotFoundError, PreconditionError, StoreError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info
from asynccommit.stores.tree import list_all, list_if_there, walk

FEW_TASKS = 4
"""Maximum number of task attempts that are deleted with the job's directory, in one request."""


async def refuse_asides(run: CommitContext, place: str) -> None:
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


async def delete_remains(run: CommitContext) -> None:
    """Delete the remains of a process that died deleting this job attempt."""
    with suppress(NotFoundError):
        for info in await list_all(run.store, run.layout.job_dir):
            if info.path in [run.layout.ended(how) for how in ENDED]:
                await run.store.delete_tree(info.path)


async def find_tasks(run: CommitContext, place: str) -> Sequence[Info] | None:
    """Return the task attempts, if ``delete_whole`` needs them, else ``None``."""
    if run.options.parallel_delete and not run.options.delete_base_first:
        with suppress(StoreError):  # the delete of the whole tells what is wrong
            return await list_all(run.store, f"{place}/tasks")
    return None


async def delete_whole(
    run: CommitContext, place: str, tasks: Sequence[Info] | None = None
) -> CleanupResult:
    """Delete the directory of a job attempt, which may be renamed.

    ``tasks`` is what ``find_tasks`` has found.
    """
    options, healthy = run.options, False
    if options.parallel_delete:
        if options.delete_base_first and await _delete_at_once(run, place):
            return CleanupResult.DELETED
        healthy = await _delete_task_attempts(run, place, tasks)
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


async def _delete_task_attempts(
    run: CommitContext, place: str, attempts: Sequence[Info] | None
) -> bool:
    """Delete all task attempt directories; return whether all went well.

    Return false also if they are few: the delete of the whole takes one request for all of them.
    """
    if attempts is None:
        try:
            attempts = await list_all(run.store, f"{place}/tasks")
        except StoreError:
            return False  # the delete of the whole tells what is wrong
    if len(attempts) <= FEW_TASKS:
        return False
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

"""The last step of commit and abort: this job's directory, and no other's."""

from __future__ import annotations

from enum import Enum

from asynccommit.errors import ExistsError, NotFoundError, StoreError
from asynccommit.parallel import for_each, list_all
from asynccommit.stages.run import Run


class Outcome(Enum):
    """What cleanup did."""

    DISABLED = "switched off"
    NOTHING = "nothing to clean up"
    PARALLEL_DELETE = "task attempt directories deleted in parallel, then the job directory"
    DELETED = "job directory deleted"


async def clean_up(run: Run, stage: str = "job_stage_cleanup") -> Outcome:
    """Delete the job's directory; and ``_temporary`` if no other job is in it.

    Raises ``StoreError`` if the job's directory cannot be deleted.
    """
    if run.options.cleanup_skipped:
        return Outcome.DISABLED
    with run.timed(stage):
        outcome = await _delete_job(run)
        try:
            await run.store.delete(run.layout.temporary)
        except (ExistsError, NotFoundError):
            pass  # another job is in it, or was quicker
        except StoreError as error:
            run.warn(f"an empty {run.layout.temporary} is left: {error}")
    return outcome


async def _delete_job(run: Run) -> Outcome:
    options, healthy = run.options, False
    if options.parallel_delete:
        if options.delete_base_first and await _delete_at_once(run):
            return Outcome.DELETED
        healthy = await _delete_task_attempts(run)
    try:
        await run.store.delete_tree(run.layout.job_dir)
    except NotFoundError:
        return Outcome.NOTHING
    return Outcome.PARALLEL_DELETE if healthy else Outcome.DELETED


async def _delete_at_once(run: Run) -> bool:
    try:
        await run.store.delete_tree(run.layout.job_dir)
    except StoreError:
        return False  # not there, or too large for one request: the other way tells
    return True


async def _delete_task_attempts(run: Run) -> bool:
    """Delete every task attempt's directory; whether there were some and all went well."""
    try:
        attempts = await list_all(run.store, run.layout.tasks_dir)
    except (NotFoundError, StoreError):
        return False  # the delete of the whole tells what is wrong
    run.total = len(attempts) + 1
    failures: list[StoreError] = []

    async def delete(path: str) -> None:
        try:
            await run.store.delete_tree(path)
        except NotFoundError:
            pass
        except StoreError as error:
            failures.append(error)
        run.step()

    paths = [info.path for info in attempts if info.is_dir]
    await for_each(paths, delete, workers=run.workers)
    return bool(paths) and not failures

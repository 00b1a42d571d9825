"""The state of a job before a commit: committed, or with work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from asynccommit.commit.by_rename.shared_directories import holds_files
from asynccommit.commit.by_rename.status import is_end
from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.success import TASKS, read_success
from asynccommit.commit.layout import TaskCommit
from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.formats.commit_owner import MAX_OWNER_BYTES, Outcome, decode_decision
from asynccommit.formats.commit_record import digest_of
from asynccommit.runtime.concurrency import both
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_all, list_if_there, read_if_there, tree_pages


async def is_committed(
    run: CommitContext, tasks: Sequence[TaskCommit] | None = None, *, trusting: bool = False
) -> bool:
    """Return whether this job is committed and its commit record is gone.

    An id may be used again, as for a job of every night. So a marker of this id counts only if the
    job is cleaned up, and if it names the task attempts of the messages in ``tasks``. With
    ``trusting`` there are no commit messages. Then a job without committed tasks counts too,
    because a setup request with a lost response can recreate the job's directory after its
    clean-up.
    """
    # Empty folders of a clean-up that died look as if the job had just been set up.
    ended, committed = await both(lambda: _has_ended(run), lambda: _committed(run))
    trusting = trusting or (ended and not run.store.traits.fences)
    if committed is not None and await _is_set_up(run, committed, trusting=trusting):
        return False
    if ended:
        return True
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    if marker is None or not marker.success or marker.job_id != run.layout.job_id:
        return False
    known = marker.diagnostics.get(TASKS)
    return tasks is None or known is None or known == digest_of_messages(tasks)


async def _has_ended(run: CommitContext) -> bool:
    """Return whether remains of an interrupted cleanup show a committed job."""
    if run.store.traits.fences:
        return await is_there(run.store, run.layout.ended("committed"))
    for info in await list_if_there(run.store, run.layout.attempt_dir):
        if not is_end(run.layout, info.path):
            continue
        data = await read_if_there(run.store, info.path, MAX_OWNER_BYTES)
        with suppress(ManifestError):
            if data and decode_decision(data, info.path).outcome is Outcome.COMMITTED:
                return True
    return False


def digest_of_messages(tasks: Sequence[TaskCommit]) -> str:
    """Return the digest of commit messages in the commit record."""
    return digest_of(
        {task.task_id: task.attempt_id for task in tasks},
        {task.task_id: task.digest for task in tasks},
    )


async def has_work(run: CommitContext) -> bool:
    """Return whether the job attempt's directory has uncommitted task output."""
    if run.layout.shared:
        return await holds_files(run)
    if run.store.traits.fences:
        return bool(await list_if_there(run.store, run.layout.tasks_dir))
    if not run.store.traits.bulk_delete or await _has_ended(run):
        return False
    async for page in tree_pages(run.store, run.layout.tasks_dir):
        if any(not info.is_dir for info in page):
            return True
    return False


async def is_set_up_again(run: CommitContext) -> bool:
    """Return whether the next job with this id may be working here already.

    Late tasks recreate only their own directories; only setup creates the directory of committed
    tasks.
    """
    for info in await list_if_there(run.store, run.layout.job_dir):
        name = info.path.rpartition("/")[2]
        if info.is_dir and name.isascii() and name.isdigit():
            layout = replace(run.layout, attempt=int(name))
            if await is_there(run.store, layout.setup_dirs[0]):
                return True
    return False


async def _committed(run: CommitContext) -> list[Info] | None:
    """Return what is in the directory that setup makes; ``None`` without it."""
    try:
        return await list_all(run.store, run.layout.committed_dir)
    except NotFoundError:
        return None


async def _is_set_up(run: CommitContext, entries: Sequence[Info], *, trusting: bool) -> bool:
    if not trusting and not run.layout.shared:
        return True
    names = [info.path.rpartition("/")[2] for info in entries]
    if any(map(run.layout.has_committed, names)):
        return True
    return not trusting and await is_there(run.store, run.layout.attempt_dir)

"""The state of a job before a commit: committed, or with work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.success import TASKS, read_success
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.ownership.directory_of import directory_of
from asynccommit.commit.ownership.shared_directories import holds_files
from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.formats.commit_record import digest_of
from asynccommit.runtime.concurrency import both
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_all, list_if_there


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
    directory = directory_of(run)
    ended, committed = await both(lambda: directory.has_ended(run), lambda: _committed(run))
    trusting = trusting or (ended and not run.store.traits.fences)
    if committed is not None and await _is_set_up(run, committed, trusting=trusting, ended=ended):
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
    return await directory_of(run).has_work(run)


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


async def _is_set_up(
    run: CommitContext, entries: Sequence[Info], *, trusting: bool, ended: bool
) -> bool:
    """Return whether the job has been set up and not committed since.

    A setup request that is executed late recreates the directories of a job that has ended, but no
    owner file.
    """
    if not trusting and not run.layout.shared:
        return not ended or bool(entries) or await is_there(run.store, run.layout.job_owner)
    names = [info.path.rpartition("/")[2] for info in entries]
    if any(map(run.layout.has_committed, names)):
        return True
    return not trusting and await is_there(run.store, run.layout.attempt_dir)

"""What is known of a job before anything is done: its layout, and whether it is committed."""

from __future__ import annotations

from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.job import MANIFEST_SUFFIX
from asynccommit.parallel import list_all
from asynccommit.stages.run import Run
from asynccommit.stages.summary import read_success


async def find_layout(run: Run) -> None:
    """Let ``run`` have the layout of older Hadoop, if that is the one that the job has."""
    if await is_there(run, run.layout.job_dir):
        return
    older = run.layout.older()
    if await is_there(run, older.job_dir):
        run.layout = older


async def is_committed(run: Run, *, trusting: bool = False) -> bool:
    """Whether this very job has been committed, and its commit record is gone.

    An id may be used again, as for a job of every night. So a marker of this id counts only if the
    job is cleaned up. With ``trusting`` nobody has said what the tasks have committed: then it also
    counts if no task has, because a request of setup whose answer was lost can make the job's
    directory again after its cleanup.
    """
    if await _is_set_up(run, trusting=trusting):
        return False
    if await is_there(run, run.layout.ended("committed")):
        return True
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    return marker is not None and marker.success and marker.job_id == run.layout.job_id


async def _is_set_up(run: Run, *, trusting: bool) -> bool:
    try:
        entries = await list_all(run.store, run.layout.manifests_dir)
    except NotFoundError:
        return False
    return not trusting or any(info.path.endswith(MANIFEST_SUFFIX) for info in entries)


async def is_there(run: Run, path: str) -> bool:
    """Whether anything is at ``path``."""
    try:
        await run.store.head(path)
    except NotFoundError:
        return False
    return True

"""What is known of a job before anything is done: its layout, and whether it is committed."""

from __future__ import annotations

from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.job import MANIFEST_SUFFIX
from asynccommit.parallel import list_all
from asynccommit.stages.record import find_record
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
    """Whether this very job has been committed: its marker says so.

    An id may be used again, as for a job of every night. So a marker of this id counts if the job
    is cleaned up, or if it is younger than the commit record that is still there. With ``trusting``
    nobody has said what the tasks have committed: then it also counts if no task has, because a
    request of setup whose answer was lost can make the job's directory again after its cleanup.
    """
    await find_layout(run)
    record = await find_record(run)
    if record is None and await _is_set_up(run, trusting=trusting):
        return False
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    if marker is None or not marker.success or marker.job_id != run.layout.job_id:
        return False
    return record is None or marker.timestamp_ms >= record.started_ms


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

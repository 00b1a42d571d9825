"""Jobs of the magic committer under one destination: at work, or cut short."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from asynccommit.errors import (
    ManifestError,
    NotFoundError,
    OptionError,
    PreconditionError,
    RejectedError,
)
from asynccommit.formats.magic_paths import MAGIC
from asynccommit.parallel import for_each, list_if_there
from asynccommit.results import JobStatus, State
from asynccommit.stages.uploads.load import find_sets
from asynccommit.stages.uploads.run import UploadRun
from asynccommit.stages.uploads.standing import attempts_of, look, status_of
from asynccommit.upload_job import MagicLayout

_UNREADABLE = (ManifestError, PreconditionError, RejectedError)


async def find_statuses(run: UploadRun) -> list[JobStatus]:
    """Return the status of every job attempt under the destination.

    Jobs of the staging committers are elsewhere, and not found.
    """
    return [status for status, _ in await _find(run)]


async def find_others(run: UploadRun) -> list[tuple[JobStatus, str]]:
    """Return the status of every other job's attempts, and the places that their records name."""
    return [pair for pair in await _find(run) if pair[0].job_id != run.layout.job_id]


async def _find(run: UploadRun) -> list[tuple[JobStatus, str]]:
    if not isinstance(run.layout, MagicLayout):
        return []
    found: list[tuple[JobStatus, str]] = []

    async def ask(job_id: str) -> None:
        with suppress(OptionError):  # no name of ours
            other = replace(run, layout=replace(run.layout, job_id=job_id, commit=""))
            attempts = await attempts_of(other)
            found.extend([await _status(replace(run, layout=layout)) for layout in attempts])

    await for_each(await _jobs(run), ask, workers=run.workers)
    return sorted(found, key=lambda pair: (pair[0].started_ms, pair[0].job_id, pair[0].attempt))


async def _jobs(run: UploadRun) -> list[str]:
    children = await list_if_there(run.store, run.layout.dest.path)
    names = [info.path.rpartition("/")[2] for info in children if info.is_dir]
    return [name.removeprefix(MAGIC) for name in names if name.startswith(MAGIC)]


async def _status(run: UploadRun) -> tuple[JobStatus, str]:
    named = run.layout.job_id, run.layout.attempt
    try:
        standing = await look(run)
    except _UNREADABLE as error:
        return JobStatus(*named, State.STOPPED, error=str(error), alive=False), ""
    if standing is not None:
        places = str(standing.record.options.get("places") or "")
        return await status_of(run.host, run.layout, standing), places
    with suppress(NotFoundError):
        return JobStatus(*named, State.RUNNING, tasks=len(await find_sets(run))), ""
    return JobStatus(*named, State.RUNNING), ""

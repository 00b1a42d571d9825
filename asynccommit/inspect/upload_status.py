"""Report how far a job of uploads is, without changing it."""

from __future__ import annotations

from dataclasses import replace

from asynccommit.commit.by_rename.liveness import status_without_commit
from asynccommit.commit.by_upload.committer import UploadCommitter
from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.load_sets import load_sets
from asynccommit.commit.by_upload.loaded import LoadedSets
from asynccommit.commit.by_upload.open_uploads import missing_uploads
from asynccommit.commit.layout_uploads import UploadLayout
from asynccommit.inspect.discovery import FoundJob
from asynccommit.options.job import Options
from asynccommit.results import JobStatus, State
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Store
from asynccommit.stores.multipart import MultipartStore


async def look_at_uploads(
    store: MultipartStore, job: FoundJob, pending: Store | None = None
) -> tuple[JobStatus | None, tuple[int, int]]:
    """Return the job's status and its ended / total uploads before a commit.

    Args:
        store: the store of its destination.
        job: the job.
        pending: the store of its own files, if that is another one.

    Raises ``AsyncCommitError`` if the status cannot be determined.
    """
    layout = job.layout
    assert isinstance(layout, UploadLayout)
    if job.ended:
        over = JobStatus(layout.job_id, layout.attempt, State.ENDED, tasks=job.manifests)
        return replace(over, epoch=0 if job.closed else 1), (0, 0)
    if job.begun:
        committer = UploadCommitter(store, layout, Options(), this_host(), pending=pending)
        return await committer.job_status(), (0, 0)
    run = run_of(store, layout, pending)
    known = await status_without_commit(run, run.pending, job.manifests)
    if not job.manifests:
        return known, (0, 0)
    with LoadedSets(run.options) as loaded:
        await load_sets(run, loaded, None)
        ended = await missing_uploads(run, loaded)
        status = replace(known, files=loaded.files, bytes=loaded.bytes)
        return status, (len(ended or ()), loaded.files)


def run_of(store: MultipartStore, layout: UploadLayout, pending: Store | None) -> UploadContext:
    """Return a context for steps of a commit that only read."""
    return UploadContext(
        store=store,
        layout=layout,
        options=Options(),
        host=this_host(),
        pending=store if pending is None else pending,
    )

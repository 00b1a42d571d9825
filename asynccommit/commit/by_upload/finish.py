"""Job commit, the end: delete replaced files, write ``_SUCCESS``."""

from __future__ import annotations

import orjson

from asynccommit.commit.by_upload.context import UploadContext, write_over
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.remove import remove_old
from asynccommit.commit.by_upload.status import has_begun, is_finished
from asynccommit.commit.job.success import (
    COMMIT,
    EARLIER,
    MAX_KEYS,
    keys_of,
    marker_bytes,
    read_success,
    summarise,
)
from asynccommit.errors import (
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
)
from asynccommit.formats.success import decode_success, encode_s3a_success
from asynccommit.formats.upload_record import UploadRecord

_TRIES = 3


async def finish_commit(
    run: UploadContext, plan: UploadPlan, record: UploadRecord, *, decided_now: bool = False
) -> bool:
    """Finish a commit that is decided, except for the cleanup.

    Whoever has just decided it need not ask whether another process has finished it: the marker is
    not replaced then, and old files are deleted only while the record exists.

    Returns false if another process has finished and ended the commit meanwhile: a later job may
    have written since, so this one must not change anything any more.
    """
    if not decided_now and await is_finished(run):  # everything was done before
        run.note_success()
        return True
    if not await remove_old(run, plan.old):
        return False
    asked = plan.old.count or run.layout.success in plan.asides
    return await _write_success(run, plan, record, known=decided_now and not asked)


async def _write_success(
    run: UploadContext, plan: UploadPlan, record: UploadRecord, *, known: bool
) -> bool:
    layout = run.layout
    if not run.options.mark_success:
        return True
    with run.meter.timed("job_stage_save_success_marker"):
        run.note_success()
        await _keep_keys(run, plan)
        if not known and not await has_begun(run):
            return False
        try:
            await run.store.put(layout.success, _marker(run, plan), overwrite=False)
        except ExistsError:
            return await _replace_marker(run, plan, record)
    return True


def _marker(run: UploadContext, plan: UploadPlan) -> bytes:
    threads = {"fs.s3a.committer.threads": str(run.workers)}
    run.note_sizes(plan.loaded.sizes)
    return encode_s3a_success(summarise(run, "committer_commit_job", plan.sample, extra=threads))


async def _replace_marker(run: UploadContext, plan: UploadPlan, record: UploadRecord) -> bool:
    """Write the marker over exactly the marker that was read.

    The record is read after the marker: while the record exists, no later job has seen this one's
    end.
    """
    path = run.layout.success
    for _ in range(_TRIES):
        try:
            info = await run.store.head(path)
            if await _stays(run, record):
                return True
            await _remember(run, path)
            if not await has_begun(run):
                return False
            await write_over(run, info, _marker(run, plan))
        except (NotFoundError, PreconditionError, OutcomeUnknownError):
            continue  # another process has deleted or written it since, or it is ours
        return True
    raise PreconditionError("complete_upload", path, "other writers keep changing it")


async def _stays(run: UploadContext, record: UploadRecord) -> bool:
    """Return whether to keep the existing marker.

    It stays if it is ours, or newer than the resumed commit.
    """
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    if marker is None or marker.diagnostics.get(COMMIT) == run.identity.commit_id:
        return marker is not None
    return run.identity.epoch > 1 and marker.timestamp_ms > record.started_ms


async def _keep_keys(run: UploadContext, plan: UploadPlan) -> None:
    """Keep the job keys of the marker that this one replaces."""
    if run.layout.success in plan.asides:
        await _remember(run, run.layout.aside(run.layout.success))


async def _remember(run: UploadContext, place: str) -> None:
    try:
        data = await marker_bytes(run.store, place)
        keys = keys_of(decode_success(data, place)) if data else []
    except (NotFoundError, ManifestError):
        return
    keys += [key for key in orjson.loads(run.promise.notes.get(EARLIER, "[]")) if key not in keys]
    if keys:
        run.note(EARLIER, orjson.dumps(keys[:MAX_KEYS]).decode())

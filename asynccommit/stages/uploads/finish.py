"""Job commit, the end: replaced files go, and ``_SUCCESS`` comes, in Hadoop's form for S3A."""

from __future__ import annotations

import orjson

from asynccommit.errors import ExistsError, ManifestError, NotFoundError
from asynccommit.formats.s3a_success import encode_s3a_success
from asynccommit.formats.success import MAX_SUCCESS_BYTES, decode_success
from asynccommit.formats.upload_record import UploadRecord
from asynccommit.stages.summary import (
    COMMIT,
    EARLIER,
    MAX_KEYS,
    keys_of,
    read_success,
    summarise,
)
from asynccommit.stages.uploads.plan import UploadPlan
from asynccommit.stages.uploads.remove import remove_old
from asynccommit.stages.uploads.run import UploadRun
from asynccommit.stages.uploads.standing import is_finished


async def finish_commit(run: UploadRun, plan: UploadPlan, record: UploadRecord) -> None:
    """Do what is left of a commit that is decided, but for the clean-up."""
    if await is_finished(run):  # then all of it was done before
        run.success = run.layout.url(run.layout.success)
        return
    await remove_old(run, plan.old)
    await _write_success(run, plan, record)


async def _write_success(run: UploadRun, plan: UploadPlan, record: UploadRecord) -> None:
    layout = run.layout
    if not run.options.mark_success:
        return
    with run.timed("job_stage_save_success_marker"):
        run.success = layout.url(layout.success)
        await _keep_keys(run, plan)
        threads = {"fs.s3a.committer.threads": str(run.workers)}
        marker = summarise(run, "committer_commit_job", plan.sample, extra=threads)
        data = encode_s3a_success(marker)
        try:
            await run.store.put(layout.success, data, overwrite=False)
        except ExistsError:
            if not await _is_newer(run, record):
                await run.store.put(layout.success, data)


async def _is_newer(run: UploadRun, record: UploadRecord) -> bool:
    """Whether the marker that is there stays: another's, and of later than a resumed commit."""
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    if marker is None or marker.diagnostics.get(COMMIT) == run.commit_id:
        return marker is not None
    return run.epoch > 1 and marker.timestamp_ms > record.started_ms


async def _keep_keys(run: UploadRun, plan: UploadPlan) -> None:
    """Remember the keys of the marker that this one takes the place of."""
    if run.layout.success not in plan.asides:
        return
    place = run.layout.aside(run.layout.success)
    try:
        data = await run.store.get(place, MAX_SUCCESS_BYTES)
        keys = keys_of(decode_success(data, place)) if data else []
    except (NotFoundError, ManifestError):
        return
    if keys:
        run.diagnostics[EARLIER] = orjson.dumps(keys[:MAX_KEYS]).decode()

"""Job commit, third step: write the record, before any change.

From then on the job cannot be aborted: it is finished, or rolled back. An abort, which deletes the
pending sets, occupies the record's place first, so that one of commit and abort comes first. There
is no owner's claim and no lease: an upload ends once, so two processes may finish one commit
safely, and a process that wants another end must decide that first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from asynccommit.commit.by_upload.context import UploadContext, read_if_there, save
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.plan_file import drop_plan, save_plan
from asynccommit.commit.by_upload.start import refuse_aborted, start
from asynccommit.commit.by_upload.status import is_closed
from asynccommit.commit.context import CommitIdentity, Phase
from asynccommit.commit.driver.owners import owner_of
from asynccommit.commit.job.places import places_text
from asynccommit.errors import (
    CommitError,
    ExistsError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
)
from asynccommit.formats.upload_record import (
    MAX_RECORD_BYTES,
    UploadRecord,
    digest_of_sets,
    encode_upload_record,
)
from asynccommit.options.job import Options

KEPT: dict[str, type] = {
    "mark_success": bool,
    "validate": bool,
    "validate_sample": int,
    "job_id_source": str,
}
"""Options that change the result of the commit: a resume uses those of the record."""


async def begin(
    run: UploadContext, plan: UploadPlan, *, made_destination: bool
) -> tuple[UploadContext, UploadRecord]:
    """Save the plan and write the commit record; return the commit's context.

    Args:
        run: the commit under way.
        plan: the plan of the commit.
        made_destination: whether the job created the destination.

    Raises ``OwnedError`` if a commit of this job attempt has begun already.
    """
    with run.meter.timed("job_stage_save_commit_record"):
        plan_id = run.host.new_id()
        digests = await save_plan(run, plan, plan_id)
        record = _record(run, plan, plan_id, digests, made_destination=made_destination)
        try:
            await _require_driver(run)
            run = run.for_commit(plan_id).acts()
            await _write(run, encode_upload_record(record))
        except (OwnedError, PreflightError):
            await drop_plan(run, plan_id, len(digests))
            raise
        identity = CommitIdentity(plan_id, record.digest, 1, record.owner.id)
        run = replace(run, identity=identity).acts()
        await start(run, record, plan, refuse_aborted)
        return run, record


def _record(
    run: UploadContext,
    plan: UploadPlan,
    plan_id: str,
    digests: list[str],
    *,
    made_destination: bool,
) -> UploadRecord:
    layout, options, loaded = run.layout, run.options, plan.loaded
    sets = tuple(sorted(loaded.sets))
    return UploadRecord(
        job_id=layout.job_id,
        uuid=layout.uuid,
        attempt=layout.attempt,
        committer=layout.committer,
        mode=plan.mode.value,
        owner=owner_of(run),
        started_ms=int(run.host.now() * 1000),
        files=loaded.files,
        bytes=loaded.bytes,
        sets=sets,
        digest=digest_of_sets(sets),
        plan_id=plan_id,
        plan=tuple(digests),
        key=options.job_key,
        options={
            **{name: getattr(options, name) for name in KEPT},
            "places": places_text(run, loaded.parents | set(plan.targets)),
            "targets": places_text(run, plan.targets),
            "destination": layout.dest.encode(),
        },
        made_destination=made_destination,
    )


async def _require_driver(run: UploadContext) -> None:
    """Refuse to begin for a driver that is gone.

    Another driver may be running the job again.
    """
    if run.environment.driver_lives is not None and not await asyncio.to_thread(
        run.environment.driver_lives
    ):
        text = (
            "the process that ran its tasks has ended, and the job may be running again "
            f"elsewhere. Nothing under {run.layout.dest} was changed"
        )
        raise PreflightError(run.layout.job_id, run.meter.stage, (), text)


async def _write(run: UploadContext, data: bytes) -> None:
    path = run.layout.record
    try:
        with run.promise.changing():
            run.known.etag = (await save(run, path, data)).etag
    except ExistsError as error:
        there = await read_if_there(run, path, MAX_RECORD_BYTES)
        if there != data:
            raise _taken(run, closed=there is not None and is_closed(there)) from error
        run.reach(Phase.CHANGING)
    except OutcomeUnknownError:
        if await read_if_there(run, path, MAX_RECORD_BYTES) != data:
            raise


def _taken(run: UploadContext, *, closed: bool) -> CommitError:
    job_id, stage = run.layout.job_id, run.meter.stage
    if closed:
        text = f"the job was aborted. Nothing under {run.layout.dest} was changed"
        return PreflightError(job_id, stage, (), text)
    text = "another process began to commit it a moment ago. Nothing was done"
    return OwnedError(job_id, stage, (), text)


def recorded_options(run: UploadContext, record: UploadRecord) -> Options:
    """Overlay the options of ``run`` with the valid ones from the record."""
    known = {
        name: value
        for name, value in record.options.items()
        if name in KEPT and type(value) in (type(None), KEPT[name])
    }
    return replace(run.options, job_key=record.key, **cast(Mapping[str, Any], known))

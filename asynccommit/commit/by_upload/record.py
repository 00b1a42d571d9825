"""Job commit, third step: write the record, before any change.

From then on the job cannot be aborted: it is finished, or rolled back. An abort, which deletes the
pending sets, occupies the record's place first, so that one of commit and abort comes first. There
is no owner's claim and no lease: an upload ends once, so two processes may finish one commit
safely, and a process that wants another end must decide that first.

Between the record and the first completion, others look for records, so that of two commits that
bar each other one sees the other. Whoever sees that the commit cannot be takes its record back.
That excludes a continuation by another process: both decisions are one file, which the first
process writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from asynccommit.commit.by_upload.context import KnownRecord, UploadContext, read_if_there, save
from asynccommit.commit.by_upload.load_sets import find_sets
from asynccommit.commit.by_upload.open_uploads import missing_uploads
from asynccommit.commit.by_upload.outcome import ended, write_once
from asynccommit.commit.by_upload.plan import UploadPlan
from asynccommit.commit.by_upload.plan_file import drop_plan, save_plan
from asynccommit.commit.by_upload.preflight import refuse_changes, refuse_others
from asynccommit.commit.by_upload.status import (
    begun_attempts,
    find_outcome,
    has_begun,
    is_closed,
    is_set_up,
    refuse_late_sets,
)
from asynccommit.commit.context import CommitIdentity, Phase
from asynccommit.commit.driver.owners import owner_of
from asynccommit.commit.hints import command
from asynccommit.commit.job.places import places_text
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.errors import (
    CommitError,
    ExistsError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    PreconditionError,
    PreflightError,
    StoreError,
)
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.upload_record import (
    MAX_RECORD_BYTES,
    UploadOutcome,
    UploadRecord,
    digest_of_sets,
    encode_upload_record,
)
from asynccommit.options.job import Options
from asynccommit.runtime.concurrency import both
from asynccommit.stores.tree import remove_file

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
            etag = await _write(run, encode_upload_record(record))
        except (OwnedError, PreflightError):
            await drop_plan(run, plan_id, len(digests))
            raise
        identity = CommitIdentity(plan_id, record.digest, 1, record.owner.id)
        run = replace(run, identity=identity, known=KnownRecord(etag)).acts()
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


async def _write(run: UploadContext, data: bytes) -> str | None:
    """Write the record; return its etag, if the store tells."""
    path = run.layout.record
    try:
        with run.promise.changing():
            return (await save(run, path, data)).etag
    except ExistsError as error:
        there = await read_if_there(run, path, MAX_RECORD_BYTES)
        if there != data:
            raise _taken(run, closed=there is not None and is_closed(there)) from error
        run.reach(Phase.CHANGING)
    except OutcomeUnknownError:
        if await read_if_there(run, path, MAX_RECORD_BYTES) != data:
            raise
    return None


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


# --- between the record and the first completion ------------------------------------------------

Check = Callable[[UploadContext, UploadPlan], Awaitable[None]]


async def start(run: UploadContext, record: UploadRecord, plan: UploadPlan, check: Check) -> None:
    """Check that the commit may start, and record it once.

    Args:
        run: the commit under way.
        record: the written record.
        plan: the planned changes.
        check: sees that the job was not aborted meanwhile.

    Raises one of these errors, and then deletes the record: ``CommitError``, ``PreconditionError``,
    ``ExistsError``; ``LeaseLostError`` if another process deleted it, ``OwnedError`` if another
    process continues it.
    """
    there, refused = await both(
        lambda: find_outcome(run, run.layout.start), lambda: _refusal(run, plan, check)
    )
    said = None if there is None else there.outcome
    if said is None:
        if refused is not None:
            if isinstance(refused, CommitError | PreconditionError | ExistsError):
                await _withdraw(run, record)
            raise refused
        said = await write_once(run, run.layout.start, _said(run, Outcome.COMMITTED))
    if said is Outcome.ROLLBACK:
        await _take_back(run, record)
        raise ended(run)
    if not await has_begun(run):  # taken back, and its place given back before
        with suppress(NotFoundError):
            await remove_file(run.pending, run.layout.start)
        raise ended(run)


async def _refusal(run: UploadContext, plan: UploadPlan, check: Check) -> Exception | None:
    """Return why the commit may not start, or why that is unknown."""
    try:
        others, _ = await both(lambda: begun_attempts(run), lambda: check(run, plan))
        refuse_other_attempts(run, others)
        await refuse_others(run, plan)
        await refuse_changes(run, plan)
    except (CommitError, StoreError, ManifestError) as error:
        return error
    return None


def _said(run: UploadContext, outcome: Outcome) -> UploadOutcome:
    owner = run.identity.owner_id or run.host.new_id()
    return UploadOutcome(outcome, run.identity.commit_id, owner, int(run.host.now() * 1000))


async def _withdraw(run: UploadContext, record: UploadRecord) -> None:
    said = await write_once(run, run.layout.start, _said(run, Outcome.ROLLBACK))
    if said is Outcome.COMMITTED:
        text = "another process has checked it and continues it"
        raise OwnedError(run.layout.job_id, run.meter.stage, (), text)
    await _take_back(run, record)


async def _take_back(run: UploadContext, record: UploadRecord) -> None:
    """Delete the record again: nothing was completed."""
    run.reach(Phase.PLANNING)
    if await has_begun(run):
        with suppress(NotFoundError):
            await remove_file(run.pending, run.layout.record)
    run.numbered(0).acts()
    await drop_plan(run, record.plan_id, len(record.plan))
    with suppress(NotFoundError):
        await remove_file(run.pending, run.layout.start)


async def refuse_aborted(run: UploadContext, plan: UploadPlan) -> None:
    """Check that no abort has finished between the load and the record.

    An abort deletes the sets before it gives the record's place back. If the sets are still those
    that were read, there was none; otherwise the uploads tell.
    """
    read = plan.loaded.etags
    if not read and not await is_set_up(run):
        raise _aborted(run)
    try:
        there = {path: info.etag for path, info in (await find_sets(run)).items()}
    except NotFoundError:
        there = {}
    if read.items() <= there.items():
        return
    # Where uploads cannot be aborted, that they are there tells nothing.
    missing = await missing_uploads(run, plan.loaded) if run.store.traits.aborts else None
    if missing or (missing is None and not read.keys() <= there.keys()):
        raise _aborted(run)


async def refuse_ended(run: UploadContext, plan: UploadPlan) -> None:
    """Check that no upload of an unstarted commit has ended."""
    if await missing_uploads(run, plan.loaded):
        raise _aborted(run)


def _aborted(run: UploadContext) -> PreflightError:
    text = f"the job was aborted as its commit began. Nothing under {run.layout.dest} changed"
    return PreflightError(run.layout.job_id, run.meter.stage, (), text)


def refuse_other_attempts(run: UploadContext, others: list[UploadLayout]) -> None:
    """Raise ``CommitError`` if another attempt's commit has begun."""
    if others:
        text = (
            f"another attempt of this job began its commit in {others[0].attempt_dir}: only one "
            f"attempt may be committed. See {command('status', run.layout.dest)}"
        )
        error = PreconditionError("put", run.layout.record, "another attempt has one")
        raise CommitError(run.layout.job_id, run.meter.stage, (error,), text)


async def refuse_leftovers(run: UploadContext, plan: UploadPlan, *, known: bool) -> None:
    """Refuse to commit the remains of an ended job without commit messages.

    An abort that was cut short leaves no set; late task attempts leave theirs, and not the object
    that stands for the directory. ``known``: it is the caller's word that the job has not ended.
    Raises ``PreconditionError``.
    """
    await refuse_late_sets(run)
    if known:
        return
    text = ""
    if not plan.loaded.sets:
        text = "holds no pending set: it was aborted, or no task has committed"
    elif not await is_set_up(run):
        text = "was deleted with the job and now holds files of late task attempts"
    if text:
        text += ". Give the commit messages of the tasks (possibly none), or resume with --adopt"
        raise PreconditionError("list", run.layout.sets_dir, text)

"""Job commit, third step: say that the commit begins, before anything changes.

From this moment on nothing but a commit or a rollback of this very job may touch its directory:
Spark's abort, which comes whenever the driver's commit fails or Python dies, looks for the record
and stops. What the commit will do is saved before, and the record names it by its digest; so the
commit can be finished or undone by whoever finds the record, whatever tasks write afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, cast

from asynccommit.commit.by_rename.cleanup import CleanupResult, begun_attempts, clean_up_aborted
from asynccommit.commit.by_rename.conflicts import TARGETS, places_of, places_text
from asynccommit.commit.by_rename.directories import make_all
from asynccommit.commit.by_rename.flat_namespace import find_record, remove_bare
from asynccommit.commit.by_rename.lease import Lease, lease_of
from asynccommit.commit.by_rename.ownership import owner_of, set_aside, take_manifests
from asynccommit.commit.by_rename.plan import (
    Plan,
    ancestors,
    aside_path,
    leaves,
    outermost,
    staged_path,
)
from asynccommit.commit.by_rename.plan_file import Saved, drop_plan, save_plan
from asynccommit.commit.by_rename.reconcile import content_print, source_print, sources_there
from asynccommit.commit.by_rename.shared_directories import is_aborted, refuse_replaced
from asynccommit.commit.by_rename.status import PLAN_VERSION, is_blank
from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.durable import make_durable
from asynccommit.commit.hints import command
from asynccommit.commit.layout_file_output import RECORDED
from asynccommit.errors import (
    CommitError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    PreconditionError,
    PreflightError,
    StoreError,
)
from asynccommit.formats.commit_record import (
    MAX_RECORD_BYTES,
    CommitRecord,
    digest_of,
    encode_record,
)
from asynccommit.options.job import Mode, Options
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_if_there, remove_files

KEPT: dict[str, type] = {
    "mark_success": bool,
    "validate": bool,
    "validate_sample": int,
    "diagnostics_directory": str,
    "job_id_source": str,
}
"""Options that change what the commit comes to: whoever resumes takes those of the record."""


async def begin(run: CommitContext, plan: Plan, mode: Mode, *, made_destination: bool) -> Lease:
    """Save the plan, write the commit record, and become the first owner of the commit.

    Args:
        run: the commit under way.
        plan: what it will do.
        mode: for the record.
        made_destination: whether the destination was not there before this job.

    Raises ``OwnedError`` if a commit of this job attempt has begun already.
    """
    with run.timed("job_stage_save_commit_record"):
        return await _begin(run, plan, mode, made_destination=made_destination)


async def _begin(run: CommitContext, plan: Plan, mode: Mode, *, made_destination: bool) -> Lease:
    await _make_place(run, plan)
    plan_id = run.host.new_id()
    saved = await save_plan(run, plan, plan_id)
    record = _record(run, plan, plan_id, saved, mode, made_destination=made_destination)
    try:
        await _refuse_aborted(run)
        await _require_driver(run)
        await make_durable(run, run.layout.attempt_dir)
        return await _become_owner(run, record, plan)
    except Exception as error:
        # Not when nobody can tell whether the record was written: then the plan is needed.
        refused = isinstance(error, OwnedError | PreflightError)
        if refused or (run.phase is Phase.PLANNING and not run.store.traits.fences):
            await drop_plan(run, plan_id, len(saved.digests))
            if not run.store.traits.fences:
                await remove_bare(run)  # the plan has brought them along, if the job was aborted
        raise


async def _become_owner(run: CommitContext, record: CommitRecord, plan: Plan) -> Lease:
    run.owner_id = record.owner.id
    lease = Lease(run)
    try:
        info = await _write(run, encode_record(record))
        run.epoch, run.manifests = 1, record.manifests
        if not await take_manifests(run) or not await _is_whole(run, plan):
            if await _withdraw(run, info):
                run.commit_id = ""
                await clean_up_aborted(run)
            raise _aborted(run)
        if run.layout.shared:
            await _refuse_replaced(run, plan, info)
        if others := await begun_attempts(run, others=True):
            await _withdraw(run, info)
            refuse_other_attempts(run, others)
    except BaseException:
        lease.forget()
        raise
    return lease


async def _make_place(run: CommitContext, plan: Plan) -> None:
    """Make every directory in which this commit, whoever owns it, moves something to.

    Before the record, and never again: who takes the commit over renames them all, and what an
    earlier owner still moves then finds none. Where files bring their directories along there is
    nothing to make.
    """
    asides = [aside_path(run.layout, 1, a.path) for a in (*plan.aside, *plan.replaced)]
    places = {path.rpartition("/")[0] for path in asides}
    places.update(staged_path(run.layout, 1, path) for path in plan.unit_directories())
    places.add(run.layout.epoch_dir(1))
    if not run.store.traits.directories:
        return
    await make_all(run, leaves(ancestors(run.layout.attempt_dir, places)))


async def _is_whole(run: CommitContext, plan: Plan) -> bool:
    """Return whether no abort has deleted sources of the plan.

    This applies to stores where nothing is moved out of an abort's way.

    An abort deletes all manifests before it gives the record's place back. If they are those that
    were read, there was none; else nothing has been moved yet, and every file must be there. Where
    jobs share a directory, an abort moves each task away before it ends.
    """
    if run.layout.shared:
        return not await is_aborted(run, plan.loaded.sources)
    if run.store.traits.fences:
        return True
    read = plan.loaded.manifests
    there = {
        info.path: info.etag for info in await list_if_there(run.store, run.layout.manifests_dir)
    }
    if read and read.items() <= there.items():
        return True
    present = await sources_there(run, plan, contents=True)
    async for entry in plan.loaded.spill.each():
        prints = source_print(entry.source, entry.etag), content_print(run, entry)
        if present.isdisjoint(prints):
            return False
    return True


async def _refuse_replaced(run: CommitContext, plan: Plan, record: Info) -> None:
    try:
        await refuse_replaced(run, plan.loaded.manifests)
    except PreconditionError as error:
        await _withdraw(run, record)
        text = f"{error}. Nothing under {run.layout.dest} was changed"
        raise PreflightError(run.layout.job_id, run.stage, (error,), text) from error


async def _refuse_aborted(run: CommitContext) -> None:
    """Refuse to begin if the job was aborted since its manifests were read."""
    try:
        await run.store.head(run.layout.committed_dir)
    except NotFoundError:
        if await clean_up_aborted(run) is CleanupResult.KEPT:
            raise _owned(run) from None
        raise _aborted(run) from None


async def _require_driver(run: CommitContext) -> None:
    """Refuse to begin for a driver that is gone: another may be running the job again."""
    if run.driver_lives is not None and not await asyncio.to_thread(run.driver_lives):
        text = (
            "the process that ran its tasks has ended, and may be running again elsewhere. "
            f"Nothing under {run.layout.dest} was changed"
        )
        raise PreflightError(run.layout.job_id, run.stage, (), text)


async def _withdraw(run: CommitContext, record: Info) -> bool:
    """Take the record back, since nothing was moved, unless another has taken the commit over.

    Returns whether it is not there any more.
    """
    if await is_there(run.store, run.layout.owner(2)):
        return False
    if run.store.traits.bulk_delete:
        await remove_files(run.store, [record])
    else:
        with suppress(NotFoundError):
            await run.store.delete(run.layout.record)
    run.epoch, run.phase = 0, Phase.PLANNING
    return True


def _owned(run: CommitContext) -> OwnedError:
    text = "another began to commit it a moment ago. Nothing was done"
    return OwnedError(run.layout.job_id, run.stage, (), text)


def _aborted(run: CommitContext) -> CommitError:
    text = "the job was aborted, or another owner took the commit over, when it began"
    return CommitError(run.layout.job_id, run.stage, (), text)


def _record(
    run: CommitContext,
    plan: Plan,
    plan_id: str,
    saved: Saved,
    mode: Mode,
    *,
    made_destination: bool,
) -> CommitRecord:
    loaded, options = plan.loaded, run.options
    return CommitRecord(
        job_id=run.layout.job_id,
        attempt=run.layout.attempt,
        started_ms=int(run.host.now() * 1000),
        owner=owner_of(run),
        lease=lease_of(run),
        files=loaded.files,
        bytes=loaded.bytes,
        manifests=digest_of(loaded.tasks, loaded.digests),
        tasks=loaded.tasks,
        mode=mode.value,
        key=options.job_key,
        options={
            **{name: getattr(options, name) for name in KEPT},
            "vouched": loaded.vouched,
            "places": places_of(run, plan),
            **({TARGETS: places_text(run, plan.targets)} if plan.targets else {}),
            **({RECORDED: run.layout.kind} if run.layout.shared else {}),
            **({PLAN_VERSION: saved.version} if run.store.traits.content_etags else {}),
        },
        made_destination=made_destination,
        plan_id=plan_id,
        plan=saved.digests,
        outside=_outside(run, plan),
    )


def _outside(run: CommitContext, plan: Plan) -> tuple[str, ...]:
    inside = run.layout.root + "/"
    touched = plan.loaded.parents | {aside.path for aside in plan.replaced}
    dest = {run.layout.root, run.layout.dest.path}
    return tuple(outermost([p for p in touched - dest if not p.startswith(inside)]))


async def _write(run: CommitContext, data: bytes) -> Info:
    run.act_for(sha256(data).hexdigest())
    run.phase = Phase.CHANGING
    try:
        info = await _put(run, data)
    except ExistsError as error:
        run.phase = Phase.PLANNING
        raise _owned(run) from error
    except CommitError:
        run.phase = Phase.PLANNING
        raise
    except OutcomeUnknownError:
        found = await _in_place(run, data)
        if found is None:
            raise
        info = found
    except StoreError:
        run.phase = Phase.PLANNING
        raise
    await make_durable(run, run.layout.record, run.layout.attempt_dir)
    return info


async def _put(run: CommitContext, data: bytes) -> Info:
    """Write the record where there is none, or one that a power cut left without content."""
    path = run.layout.record
    try:
        return await run.store.put(path, data, overwrite=False)
    except ExistsError:
        if not run.store.traits.fences:
            await _make_way(run)
        elif is_blank(await run.store.get(path, MAX_RECORD_BYTES)):
            await set_aside(run, path, is_blank)
        else:
            raise
    return await run.store.put(path, data, overwrite=False)


async def _make_way(run: CommitContext) -> None:
    """Delete what is in the record's place if it came late, of a commit that has ended.

    Raises ``CommitError`` if an abort has taken the place, ``ExistsError`` if a commit has begun.
    """
    found = await find_record(run)
    if found is None or found.blank:
        raise _aborted(run) from None
    if found.stands:
        raise ExistsError("put", run.layout.record, "a commit has begun")
    await remove_files(run.store, [found.info])


async def _in_place(run: CommitContext, data: bytes) -> Info | None:
    """Return what is there if a write whose answer was lost has happened: this very record."""
    try:
        info = await run.store.head(run.layout.record)
        there = await run.store.get(run.layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return None
    return info if there == data else None


def recorded_options(run: CommitContext, record: CommitRecord) -> Options:
    """Return the options of ``run`` with those that the record keeps, as far as they can be such.

    A diagnostics directory is a place outside of the destination like any other.
    """
    options = run.options
    known = {
        name: value
        for name, value in record.options.items()
        if name in KEPT and type(value) in (type(None), KEPT[name])
    }
    place = known.pop("diagnostics_directory", None)
    if place is not None and place != options.diagnostics_directory:
        if options.outside:
            known["diagnostics_directory"] = place
        else:
            run.warn(
                "the manifests are not kept in the diagnostics directory of the record, "
                "unless asynccommit.resume.outside is set"
            )
    return replace(options, job_key=record.key, **cast(Mapping[str, Any], known))


def refuse_other_attempts(run: CommitContext, others: list[str]) -> None:
    """Raise ``CommitError`` if a commit of another attempt of this job has begun."""
    if others:
        text = (
            f"a commit of this job was begun by another attempt of it, in {others[0]}: only one "
            f"may be committed. See {command('status', run.layout.dest)}"
        )
        error = PreconditionError("put", run.layout.record, "another attempt has one")
        raise CommitError(run.layout.job_id, run.stage, (error,), text)

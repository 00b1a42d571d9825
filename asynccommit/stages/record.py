"""Job commit, third step: say that the commit begins, before anything changes.

From this moment on nothing but a commit or a rollback of this very job may touch its directory:
Spark's abort, which comes whenever the driver's commit fails or Python dies, looks for the record
and stops. What the commit will do is saved before, and the record names it by its digest; so the
commit can be finished or undone by whoever finds the record, whatever tasks write afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, cast

from asynccommit.errors import (
    CommitError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    OwnedError,
    PreconditionError,
    StoreError,
)
from asynccommit.formats.commit_record import (
    MAX_RECORD_BYTES,
    CommitRecord,
    Owner,
    digest_of,
    encode_record,
)
from asynccommit.options import Mode, Options
from asynccommit.stages.durable import make_durable
from asynccommit.stages.lease import Lease, lease_of
from asynccommit.stages.modes import places_of
from asynccommit.stages.owner import owner_of, take_manifests
from asynccommit.stages.plan import Plan, outermost
from asynccommit.stages.plan_file import save_plan
from asynccommit.stages.run import Phase, Run

KEPT: dict[str, type] = {
    "mark_success": bool,
    "validate": bool,
    "validate_sample": int,
    "diagnostics_directory": str,
    "job_id_source": str,
}
"""Options that change what the commit comes to: whoever resumes takes those of the record."""


async def begin(run: Run, plan: Plan, mode: Mode, *, made_destination: bool) -> Lease:
    """Save the plan, write the commit record, and become the first owner of the commit.

    Args:
        run: the commit under way.
        plan: what it will do.
        mode: for the record.
        made_destination: whether the destination was not there before this job.

    Raises ``OwnedError`` if a commit of this job attempt has begun already.
    """
    plan_id, digests = await save_plan(run, plan)
    owner, since = owner_of(run), run.host.clock()
    record = replace(
        _record(run, plan, owner),
        mode=mode.value,
        made_destination=made_destination,
        plan_id=plan_id,
        plan=digests,
    )
    await _write(run, encode_record(record))
    run.epoch, run.owner_id = 1, owner.id
    await run.store.mkdir(run.epoch_dir)
    await take_manifests(run)
    return Lease(run, since)


def _record(run: Run, plan: Plan, owner: Owner) -> CommitRecord:
    loaded, options = plan.loaded, run.options
    return CommitRecord(
        job_id=run.layout.job_id,
        attempt=run.layout.attempt,
        started_ms=int(run.host.now() * 1000),
        owner=owner,
        lease=lease_of(run),
        files=loaded.files,
        bytes=loaded.bytes,
        manifests=digest_of(loaded.tasks, loaded.digests),
        tasks=loaded.tasks,
        mode=Mode.APPEND.value,
        key=options.job_key,
        options={
            **{name: getattr(options, name) for name in KEPT},
            "vouched": loaded.vouched,
            "places": places_of(run, plan),
        },
        made_destination=False,
        plan_id="",
        plan=(),
        outside=_outside(run, plan),
    )


def _outside(run: Run, plan: Plan) -> tuple[str, ...]:
    inside = run.layout.root + "/"
    touched = plan.loaded.parents | {aside.path for aside in plan.replaced}
    dest = {run.layout.root, run.layout.dest.path}
    return tuple(outermost([p for p in touched - dest if not p.startswith(inside)]))


async def _write(run: Run, data: bytes) -> None:
    run.commit_id = sha256(data).hexdigest()
    run.phase = Phase.CHANGING
    try:
        await run.store.put(run.layout.record, data, overwrite=False)
    except ExistsError as error:
        run.phase = Phase.PLANNING
        text = "another began to commit it a moment ago. Nothing was done"
        raise OwnedError(run.layout.job_id, run.stage, (error,), text) from error
    except OutcomeUnknownError:
        if not await _is_in_place(run, data):
            raise
    except StoreError:
        run.phase = Phase.PLANNING
        raise
    await make_durable(run, run.layout.record, run.layout.attempt_dir)


async def _is_in_place(run: Run, data: bytes) -> bool:
    """Whether a write whose answer was lost has happened; what is there is this very record."""
    try:
        there = await run.store.get(run.layout.record, MAX_RECORD_BYTES)
    except NotFoundError:
        return False
    return there == data


def recorded_options(options: Options, record: CommitRecord) -> Options:
    """Return ``options`` with those that the record keeps, as far as they can be such."""
    known = {
        name: value
        for name, value in record.options.items()
        if name in KEPT and type(value) in (type(None), KEPT[name])
    }
    return replace(options, job_key=record.key, **cast(Mapping[str, Any], known))


def refuse_other_attempts(run: Run, others: list[str]) -> None:
    """Raise ``CommitError`` if a commit of another attempt of this job has begun."""
    if others:
        text = (
            f"a commit of this job was begun by another attempt of it, in {others[0]}: finish it "
            f"(asynccommit resume) or undo it (asynccommit abort --rollback) first"
        )
        error = PreconditionError("put", run.layout.record, "another attempt has one")
        raise CommitError(run.layout.job_id, run.stage, (error,), text)

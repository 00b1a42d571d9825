"""Job commit, third step: say that the commit begins, before anything changes.

From this moment on nothing but a commit of this very job may touch its directory: Spark's abort,
which comes whenever the driver's commit fails or Python dies, looks for the record and stops.
"""

from __future__ import annotations

from hashlib import sha256

from asynccommit.errors import (
    CommitError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.formats.commit_record import (
    CommitRecord,
    decode_record,
    digest_of,
    encode_record,
)
from asynccommit.stages.cleanup import begun_attempts
from asynccommit.stages.preflight import Plan
from asynccommit.stages.run import Phase, Run

_LIMIT = 64 * 1024 * 1024


async def write_record(run: Run, plan: Plan) -> None:
    """Write the commit record of this job attempt, which must not have one.

    Raises ``CommitError`` if a commit of this job attempt has begun already.
    """
    loaded = plan.loaded
    record = CommitRecord(
        job_id=run.layout.job_id,
        attempt=run.layout.attempt,
        started_ms=int(run.host.now() * 1000),
        host=run.host.name,
        user=run.host.user,
        files=loaded.files,
        bytes=loaded.bytes,
        manifests=digest_of(loaded.tasks, loaded.digests),
        tasks=loaded.tasks,
    )
    data = encode_record(record)
    run.epoch = sha256(data).hexdigest()
    run.phase = Phase.CHANGING
    try:
        await run.store.put(run.layout.record, data, overwrite=False)
    except ExistsError as error:
        run.phase = Phase.PLANNING
        raise begun_error(run, "a moment ago") from error
    except OutcomeUnknownError:
        if not await _is_in_place(run, data):
            raise
    except StoreError:
        run.phase = Phase.PLANNING
        raise


async def _is_in_place(run: Run, data: bytes) -> bool:
    """Whether a write whose answer was lost has happened; what is there is this very record."""
    try:
        there = await run.store.get(run.layout.record, _LIMIT)
    except NotFoundError:
        return False
    return there == data


async def refuse_begun(run: Run) -> None:
    """Raise ``CommitError`` if a commit of this job has begun, by whichever of its attempts."""
    record = await find_record(run)
    if record is not None:
        raise begun_error(run, f"by {record.user} on {record.host}")
    if others := await begun_attempts(run):
        raise begun_error(run, f"by another attempt of it, in {others[0]}")


def begun_error(run: Run, who: str) -> CommitError:
    """Return the error that says that a commit has begun, and that nothing of it was lost."""
    text = (
        f"a commit of this job was begun before, {who}. If it is running, let it end. If it "
        f"failed, nothing was lost: what it had not yet moved is in {run.layout.attempt_dir}"
    )
    error = PreconditionError("put", run.layout.record, "is there already")
    return CommitError(run.layout.job_id, run.stage, (error,), text)


async def find_record(run: Run) -> CommitRecord | None:
    """Return the commit record of this job attempt, ``None`` if no commit has begun."""
    try:
        data = await run.store.get(run.layout.record, _LIMIT)
    except NotFoundError:
        return None
    return decode_record(data, run.layout.url(run.layout.record))

"""Job commit, third step: say that the commit begins, before anything changes.

From this moment on nothing but a commit of this very job may touch its directory: Spark's abort,
which comes whenever the driver's commit fails or Python dies, looks for the record and stops.
"""

from __future__ import annotations

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
from asynccommit.stages.preflight import Plan
from asynccommit.stages.run import Run

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
    run.begun = True
    try:
        await run.store.put(run.layout.record, encode_record(record), overwrite=False)
    except OutcomeUnknownError:
        raise
    except ExistsError as error:
        raise begun_error(run, "a moment ago") from error
    except StoreError:
        run.begun = False
        raise


async def refuse_begun(run: Run) -> None:
    """Raise ``CommitError`` if a commit of this job attempt has begun already."""
    record = await find_record(run)
    if record is not None:
        raise begun_error(run, f"by {record.user} on {record.host}")


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

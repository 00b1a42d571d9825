"""Job commit, third step: say that the commit begins, before anything changes.

From this moment on nothing but a commit of this very job may touch its directory: Spark's abort,
which comes whenever the driver's commit fails or Python dies, looks for the record and stops.
"""

from __future__ import annotations

from asynccommit.errors import (
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

    Raises ``PreconditionError`` if a commit of this job attempt has begun already.
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
        raise await already_begun(run) from error
    except StoreError:
        run.begun = False
        raise


async def already_begun(run: Run) -> PreconditionError:
    """Return the error that names the commit that has begun."""
    record = await find_record(run)
    who = f"by {record.user} on {record.host}" if record else "by somebody"
    return PreconditionError(
        "put",
        run.layout.record,
        f"a commit of this job has begun already, {who}: if it is dead, nothing was lost; "
        f"its files are in {run.layout.attempt_dir}",
    )


async def find_record(run: Run) -> CommitRecord | None:
    """Return the commit record of this job attempt, ``None`` if no commit has begun."""
    try:
        data = await run.store.get(run.layout.record, _LIMIT)
    except NotFoundError:
        return None
    return decode_record(data, run.layout.url(run.layout.record))

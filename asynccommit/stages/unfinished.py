"""Jobs under a destination, this one aside: which are at work, and which were cut short."""

from __future__ import annotations

from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.job import ENDED, MANIFEST_SUFFIX, Layout
from asynccommit.parallel import for_each, list_all
from asynccommit.results import JobStatus, State
from asynccommit.stages.owner import Standing, describe, is_alive, is_silent, look
from asynccommit.stages.run import Run
from asynccommit.store import Info

OLDER = "manifest_"


async def find_jobs(run: Run) -> list[Layout]:
    """Return every job attempt under the destination that has not ended, in order."""
    found: list[Layout] = []
    for job in await _directories(run, run.layout.temporary):
        name = job.path.rpartition("/")[2]
        prefix = OLDER if name.startswith(OLDER) else ""
        for attempt in await _directories(run, job.path):
            number = attempt.path.rpartition("/")[2]
            if number.isascii() and number.isdigit() and len(number) >= 2:
                job_id = name.removeprefix(prefix)
                found.append(Layout(run.layout.dest, job_id, int(number), prefix))
    return found


async def find_ended(run: Run) -> list[str]:
    """Return directories of job attempts that have ended and were not wholly deleted."""
    found: list[str] = []
    for job in await _directories(run, run.layout.temporary):
        attempts = [attempt.path for attempt in await _directories(run, job.path)]
        found += [path for path in attempts if path.rpartition(".")[2] in ENDED]
    return found


async def find_others(run: Run) -> list[tuple[JobStatus, str]]:
    """Return the status of every commit of another job that has begun, and where it writes."""
    found: list[tuple[JobStatus, str]] = []

    async def ask(layout: Layout) -> None:
        standing = await _look(run, layout)
        if standing is not None:
            places = standing.record.options.get("places")
            found.append((await status_of(run, layout, standing), str(places or "")))

    others = [job for job in await find_jobs(run) if job.job_id != run.layout.job_id]
    await for_each(others, ask, workers=run.workers)
    return sorted(found, key=lambda pair: (pair[0].started_ms, pair[0].job_id))


async def find_statuses(run: Run) -> list[JobStatus]:
    """Return the status of every job attempt under the destination."""
    found: list[JobStatus] = []

    async def ask(layout: Layout) -> None:
        standing = await _look(run, layout)
        if standing is None:
            found.append(await _running(run, layout))
        else:
            found.append(await status_of(run, layout, standing))

    await for_each(await find_jobs(run), ask, workers=run.workers)
    return sorted(found, key=lambda status: (status.started_ms, status.job_id, status.attempt))


async def _look(run: Run, layout: Layout) -> Standing | None:
    """Return what is known of a commit; a record that cannot be read is told as a warning."""
    try:
        return await look(run.store, layout)
    except ManifestError as error:
        run.warn(str(error))
        return None


async def _running(run: Run, layout: Layout) -> JobStatus:
    try:
        listing = await list_all(run.store, layout.manifests_dir)
    except NotFoundError:
        listing = []
    tasks = sum(info.path.endswith(MANIFEST_SUFFIX) for info in listing)
    return JobStatus(layout.job_id, layout.attempt, State.RUNNING, tasks=tasks)


async def status_of(
    run: Run, layout: Layout, standing: Standing, done: int | None = None
) -> JobStatus:
    """Return what is known of a commit as its users see it."""
    record, claim = standing.record, standing.claim
    alive = await is_alive(run.host, standing)
    return JobStatus(
        job_id=layout.job_id,
        attempt=layout.attempt,
        state=_state(run, standing, alive),
        started_ms=record.started_ms,
        files=record.files,
        bytes=record.bytes,
        done=done,
        tasks=len(record.tasks),
        epoch=standing.epoch,
        owner=describe(claim.owner),
        seen_ms=int(standing.seen * 1000),
        lease=claim.lease,
        error=standing.stop.error if standing.stop else "",
        key=record.key,
        alive=False if is_silent(run.host, standing) and not alive else alive,
    )


def _state(run: Run, standing: Standing, alive: bool | None) -> State:
    if standing.decision is not None:
        rolled = standing.decision.outcome is Outcome.ROLLBACK
        return State.ROLLING_BACK if rolled else State.COMMITTED
    if alive is False:
        return State.STOPPED
    return State.EXPIRED if is_silent(run.host, standing) else State.COMMITTING


async def _directories(run: Run, path: str) -> list[Info]:
    try:
        return [info for info in await list_all(run.store, path) if info.is_dir]
    except NotFoundError:
        return []

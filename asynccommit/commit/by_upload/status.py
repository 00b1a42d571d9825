"""The status of a job's commit, as its record and its outcome show it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from asynccommit.commit.by_upload.context import UploadContext, is_at_work, read_if_there
from asynccommit.commit.driver.owners import describe
from asynccommit.commit.job.success import COMMIT, TASKS, read_success
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.layouts.uploads import UploadLayout
from asynccommit.errors import ManifestError, NotFoundError, PreconditionError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.commit_record import ABORTED
from asynccommit.formats.success import SuccessData
from asynccommit.formats.upload_record import (
    MAX_OUTCOME_BYTES,
    MAX_RECORD_BYTES,
    SetRow,
    UploadOutcome,
    UploadRecord,
    decode_upload_outcome,
    decode_upload_record,
    digest_of_sets,
)
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Info
from asynccommit.stores.tree import is_there, list_if_there, tree_pages

LONG = 3_600.0
"""Seconds after which a commit of another host counts as interrupted."""
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True)
class UploadCommitState:
    """The known state of a commit that has begun.

    Attributes:
        record: the commit record.
        outcome: how it ends, ``None`` while that is open.
        is_done: the commit is complete, and its files are kept by option.
    """

    record: UploadRecord
    outcome: UploadOutcome | None = None
    is_done: bool = False

    @property
    def is_committed(self) -> bool:
        """Return whether the outcome is that the commit stands."""
        return self.outcome is not None and self.outcome.outcome is Outcome.COMMITTED

    @property
    def is_undone(self) -> bool:
        """Return whether the outcome is that the commit is rolled back."""
        return self.outcome is not None and self.outcome.outcome is Outcome.ROLLBACK


async def read_state(run: UploadContext) -> UploadCommitState | None:
    """Return the state of this job attempt's commit, or ``None``.

    Raises ``ManifestError`` for an invalid record.
    """
    data = await read_if_there(run, run.layout.record, MAX_RECORD_BYTES)
    if data is None or is_closed(data):
        return None
    record = read_record(run.layout, data)
    run = run.for_commit(record.plan_id)
    standing = UploadCommitState(record, await find_outcome(run))
    if standing.is_committed:
        return replace(standing, is_done=await is_there(run.pending, run.layout.done))
    return standing


def acting_for(run: UploadContext, standing: UploadCommitState) -> UploadContext:
    """Return the context of a commit that has begun."""
    run = run.for_commit(standing.record.plan_id)
    return replace(run, identity=replace(run.identity, manifests=standing.record.digest))


def is_closed(data: bytes) -> bool:
    """Return whether an abort occupies the record's place.

    Then no commit can begin.
    """
    return data == ABORTED


def read_record(layout: UploadLayout, data: bytes) -> UploadRecord:
    """Read the record of a job attempt.

    Raises ``ManifestError`` if it belongs to another job.
    """
    url = layout.pending_url(layout.record)
    record = decode_upload_record(data, url)
    known = (record.uuid, record.attempt, record.committer)
    if known != (layout.uuid, layout.attempt, layout.committer):
        raise ManifestError(url, "belongs to another job, attempt or committer")
    return record


async def has_begun(run: UploadContext) -> bool:
    """Return whether the record of this commit exists.

    The record is read once; afterwards its etag is compared.
    """
    path = run.layout.record
    try:
        etag = (await run.pending.head(path)).etag
    except NotFoundError:
        return False
    if etag is not None and etag == run.known.etag:
        return True
    data = await read_if_there(run, path, MAX_RECORD_BYTES)
    if data is None or is_closed(data):
        return False
    if read_record(run.layout, data).plan_id != run.identity.commit_id:
        return False
    run.known.etag = etag
    return True


async def is_held(run: UploadContext) -> bool:
    """Return whether this commit, or this abort, holds the record's place.

    An abort holds it if this run has no commit. While it is held, everything in the job attempt's
    directory belongs to this job, and not to a later job with the same id.
    """
    if run.identity.commit_id:
        return await has_begun(run)
    return await read_if_there(run, run.layout.record, MAX_RECORD_BYTES) == ABORTED


async def find_outcome(run: UploadContext, path: str = "") -> UploadOutcome | None:
    """Return the outcome at ``path``, by default the commit's, or ``None``."""
    path = path or run.layout.outcome
    data = await read_if_there(run, path, MAX_OUTCOME_BYTES)
    if data is None:
        return None
    url = run.layout.pending_url(path)
    outcome = decode_upload_outcome(data, url)
    if outcome.commit != run.identity.commit_id:
        raise ManifestError(url, "belongs to another commit")
    return outcome


async def is_finished(run: UploadContext) -> bool:
    """Return whether the marker says that the commit of this run is done."""
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    return marker is not None and marker.diagnostics.get(COMMIT) == run.identity.commit_id


async def is_committed(
    run: UploadContext, tasks: Sequence[TaskCommit] | None = None
) -> UploadContext | None:
    """Return the context of a commit of ``tasks`` that the marker names.

    ``None`` if it does not say that this job has committed them. Messages of just the tasks that
    the marker was written for say so, whatever task attempts have left since. Else pending sets say
    that it is not: an id may be used again.

    Raises ``PreconditionError`` for other tasks of a job whose directory its end has deleted: those
    of another job attempt, or late ones, which make it again but not the object that stands for it.
    """
    marker = await _marker(run)
    if marker is None:
        return None
    known = marker.diagnostics.get(TASKS)
    if tasks is not None and known is not None:
        done = known == digest_of_sets(rows_of(run.layout, tasks))
    else:
        done = not await _has_sets(run)
    if tasks is not None and not done and not await is_set_up(run):
        text = (
            "names this job: it was committed with other task attempts, and its directory was "
            "deleted. If this is another job with the same id, set it up, or give it another id"
        )
        raise PreconditionError("get", run.layout.success, text)
    if done and (commit := marker.diagnostics.get(COMMIT, "")) and _ID.fullmatch(commit):
        return run.for_commit(commit).acts()
    return run if done else None


async def is_set_up(run: UploadContext) -> bool:
    """Return whether the object for the job attempt's directory exists.

    The end of a job deletes it before the record; what late tasks write does not make it again.
    """
    layout = run.layout
    if run.pending.traits.directories:
        return True
    async for page in tree_pages(run.pending, layout.attempts_dir):
        if any(info.path == layout.attempt_dir for info in page):
            return True
    return False


async def refuse_late_sets(run: UploadContext) -> None:
    """Refuse late pending sets of a job that is already committed.

    Raises ``PreconditionError``: they may belong to task attempts that were not awaited.
    """
    if await _marker(run) is not None and await _has_sets(run):
        text = (
            "names this job: it is committed, and the pending sets written since belong to late "
            "task attempts. If this is another job with the same id, give its commit messages; "
            "otherwise abort it, which deletes them"
        )
        raise PreconditionError("get", run.layout.success, text)


async def _marker(run: UploadContext) -> SuccessData | None:
    """Return the marker if it says that this job is committed."""
    try:
        marker = await read_success(run)
    except ManifestError:
        return None
    if marker is None or not marker.success or marker.job_id != run.layout.job_id:
        return None
    return marker


async def _has_sets(run: UploadContext) -> bool:
    found = await list_if_there(run.pending, run.layout.sets_dir)
    return any(run.layout.is_set(info.path.rpartition("/")[2]) for info in found)


def rows_of(layout: UploadLayout, tasks: Sequence[TaskCommit]) -> set[SetRow]:
    """Return the pending sets that commit messages describe."""
    return {
        SetRow(layout.pending_set(t.task_id).rpartition("/")[2], t.digest, t.files) for t in tasks
    }


async def begun_attempts(run: UploadContext) -> list[UploadLayout]:
    """Return the other attempts of this job that have begun a commit."""
    found = []
    for layout in await attempts_of(run):
        if layout.attempt == run.layout.attempt:
            continue
        data = await read_if_there(run, layout.record, MAX_RECORD_BYTES)
        if data is not None and not is_closed(data):
            found.append(layout)
    return found


async def attempts_of(run: UploadContext) -> list[UploadLayout]:
    """Return every attempt of this job that has a directory."""
    return attempts_among(run.layout, await list_if_there(run.pending, run.layout.attempts_dir))


def attempts_among(layout: UploadLayout, infos: Iterable[Info]) -> list[UploadLayout]:
    """Return the attempts of a job that a listing shows."""
    start = len(layout.attempts_dir) + 1
    names = {info.path[start:].partition("/")[0] for info in infos}
    numbers = sorted({int(n) for n in names if n.isascii() and n.isdigit() and len(n) <= 4})
    return [layout.of_attempt(number) for number in numbers]


async def status_of(host: Host, layout: UploadLayout, standing: UploadCommitState) -> JobStatus:
    """Return the state of a commit for users, without file counts."""
    record = standing.record
    alive = await is_alive(host, record)
    state = JobState.STOPPED if alive is False else JobState.COMMITTING
    silent = alive is None and host.now() - record.started_ms / 1000 > LONG
    if silent:
        state = JobState.EXPIRED
    if standing.outcome is not None:
        state = JobState.ROLLING_BACK if standing.is_undone else JobState.COMMITTED
    if standing.is_done:
        state = JobState.ENDED
    return JobStatus(
        job_id=layout.job_id,
        attempt=layout.attempt,
        state=state,
        started_ms=record.started_ms,
        files=record.files,
        bytes=record.bytes,
        tasks=len(record.sets),
        epoch=1,
        owner=describe(record.owner),
        seen_ms=record.started_ms,
        key=record.key,
        alive=False if silent else alive,
    )


async def is_alive(host: Host, record: UploadRecord) -> bool | None:
    """Return whether the process that began a commit works on it, if known.

    Return ``None`` if that cannot be determined from here.

    Another process may still continue: each upload ends only once.
    """
    owner = record.owner
    if is_at_work(record.plan_id):
        return True
    if owner.host != host.name or not owner.process:
        return None
    if owner.process == host.process:
        return False  # this very process, and it is not at work on it
    return await asyncio.to_thread(host.is_running, owner.process)

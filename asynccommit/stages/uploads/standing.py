"""How far the commit of a job is, as its record and its outcome say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asynccommit.errors import ManifestError
from asynccommit.formats.commit_owner import Outcome
from asynccommit.formats.commit_record import ABORTED, Owner
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
from asynccommit.host import Host
from asynccommit.job import TaskCommit
from asynccommit.parallel import list_if_there
from asynccommit.results import JobStatus, State
from asynccommit.stages.owner import describe
from asynccommit.stages.summary import COMMIT, TASKS, read_success
from asynccommit.stages.uploads.run import UploadRun, read_if_there
from asynccommit.upload_job import UploadLayout


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a commit that has begun.

    Attributes:
        record: what it is.
        outcome: how it ends, ``None`` while that is open.
    """

    record: UploadRecord
    outcome: UploadOutcome | None = None

    @property
    def is_committed(self) -> bool:
        """Whether it is decided that it stands."""
        return self.outcome is not None and self.outcome.outcome is Outcome.COMMITTED

    @property
    def is_undone(self) -> bool:
        """Whether it is decided that it is rolled back."""
        return self.outcome is not None and self.outcome.outcome is Outcome.ROLLBACK


async def look(run: UploadRun) -> Standing | None:
    """Return how far the commit of this job attempt is, ``None`` if none has begun.

    From here on ``run`` acts for that commit. Raises ``ManifestError`` for a record that is none.
    """
    data = await read_if_there(run, run.layout.record, MAX_RECORD_BYTES)
    if data is None or is_closed(data):
        return None
    record = read_record(run.layout, data)
    run.act_for(record.plan_id)
    run.manifests = record.digest
    return Standing(record, await find_outcome(run))


def is_closed(data: bytes) -> bool:
    """Whether an abort has taken the record's place, so that no commit can begin."""
    return data == ABORTED


def read_record(layout: UploadLayout, data: bytes) -> UploadRecord:
    """Read the record of a job attempt. Raises ``ManifestError`` for another's."""
    url = layout.pending_url(layout.record)
    record = decode_upload_record(data, url)
    known = (record.uuid, record.attempt, record.committer)
    if known != (layout.uuid, layout.attempt, layout.committer):
        raise ManifestError(url, "is of another job, attempt or committer")
    return record


async def find_outcome(run: UploadRun) -> UploadOutcome | None:
    """Return how the commit ends, ``None`` while that is open."""
    path = run.layout.outcome
    data = await read_if_there(run, path, MAX_OUTCOME_BYTES)
    if data is None:
        return None
    url = run.layout.pending_url(path)
    outcome = decode_upload_outcome(data, url)
    if outcome.commit != run.commit_id:
        raise ManifestError(url, "is of another commit")
    return outcome


async def is_finished(run: UploadRun) -> bool:
    """Whether the marker says that the commit of this run is done."""
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    return marker is not None and marker.diagnostics.get(COMMIT) == run.commit_id


async def is_committed(run: UploadRun, tasks: Sequence[TaskCommit] | None = None) -> bool:
    """Whether the marker says that this job is committed, with what ``tasks`` say.

    An id may be used again, as for a job of every night: then there are pending sets.
    """
    layout = run.layout
    names = [i.path.rpartition("/")[2] for i in await list_if_there(run.pending, layout.sets_dir)]
    if any(layout.is_set(name) for name in names):
        return False
    try:
        marker = await read_success(run)
    except ManifestError:
        return False
    if marker is None or not marker.success or marker.job_id != layout.job_id:
        return False
    known = marker.diagnostics.get(TASKS)
    return tasks is None or known is None or known == digest_of_sets(rows_of(layout, tasks))


def rows_of(layout: UploadLayout, tasks: Sequence[TaskCommit]) -> set[SetRow]:
    """Return the pending sets that commit messages speak of."""
    return {
        SetRow(layout.pending_set(t.task_id).rpartition("/")[2], t.digest, t.files) for t in tasks
    }


async def begun_attempts(run: UploadRun) -> list[UploadLayout]:
    """Return the other attempts of this job of which a commit has begun."""
    found = []
    for layout in await attempts_of(run):
        if layout.attempt == run.layout.attempt:
            continue
        data = await read_if_there(run, layout.record, MAX_RECORD_BYTES)
        if data is not None and not is_closed(data):
            found.append(layout)
    return found


async def attempts_of(run: UploadRun) -> list[UploadLayout]:
    """Return every attempt of this job that has a directory."""
    layout = run.layout
    names = [
        i.path.rpartition("/")[2] for i in await list_if_there(run.pending, layout.attempts_dir)
    ]
    numbers = sorted({int(n) for n in names if n.isascii() and n.isdigit() and len(n) <= 4})
    return [layout.of_attempt(number) for number in numbers]


def status_of(host: Host, layout: UploadLayout, standing: Standing) -> JobStatus:
    """Return what is known of a commit as its users see it, its files not counted."""
    record = standing.record
    alive = is_alive(host, record.owner)
    state = State.STOPPED if alive is False else State.COMMITTING
    if standing.outcome is not None:
        state = State.ROLLING_BACK if standing.is_undone else State.COMMITTED
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
        alive=alive,
    )


def is_alive(host: Host, owner: Owner) -> bool | None:
    """Whether who began a commit is there; ``None`` if that cannot be told from here.

    Another may go on all the same: uploads end once, whoever completes or aborts them.
    """
    if owner.host != host.name or not owner.process:
        return None
    return host.is_running(owner.process)

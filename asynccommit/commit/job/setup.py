"""Checks before a job begins: unfinished commits and repeated work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver.record_owner import not_ours
from asynccommit.commit.hints import by_hand, command, job_command
from asynccommit.commit.job.modes import refuse_makers, refuse_mode
from asynccommit.commit.job.success import keys_of, read_success
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import (
    CommittedError,
    ExistsError,
    ManifestError,
    PreconditionError,
    PreflightError,
    UnfinishedError,
)
from asynccommit.options.job import Mode, OnUnfinished
from asynccommit.results import JobState, JobStatus

_NAMED = 5
_OR_SET = "  or set asynccommit.on.unfinished to resume or rollback, and run this job again"


class Unfinished(NamedTuple):
    """A job attempt whose commit was cut short."""

    layout: Layout
    status: JobStatus


@dataclass(frozen=True, slots=True)
class Other:
    """An unfinished commit of another job, and the action for it.

    Attributes:
        layout: the other job attempt.
        resumes: whether it is finished as decided; otherwise it is rolled back.
        finishes: its files will be there.
        key: the user's name for its work.
        told: its caller may know that it is committed; only its clean-up is left.
    """

    layout: Layout
    resumes: bool
    finishes: bool
    key: str | None
    told: bool = False


async def to_settle(run: CommitContext, found: Sequence[Unfinished]) -> list[Other]:
    """Return what the options say about unfinished commits of other jobs.

    A job of which only the clean-up is left is never refused. Raises ``UnfinishedError`` for any
    other if the options refuse it.
    """
    told = await _told(run, found)
    refused = [one for one in found if one not in told]
    if refused and run.options.on_unfinished is OnUnfinished.REFUSE:
        ids = [status.job_id for _, status in refused]
        raise UnfinishedError(run.layout.job_id, "job_stage_setup", ids, _refusal(run, refused))
    return [_other(run, *one, told=one in told) for one in found]


async def _told(run: CommitContext, found: Sequence[Unfinished]) -> list[Unfinished]:
    """Return the committed jobs that readers can see to be committed.

    The marker is written before the call returns. One that is newer than such a job is its own,
    or that of a job that has replaced it.
    """
    committed = [one for one in found if one.status.state is JobState.COMMITTED]
    if not committed or run.options.readers_use_sink_log or not run.options.mark_success:
        return committed
    try:
        marker = await read_success(run)
    except ManifestError:
        return []
    if marker is None or not marker.success:
        return []
    return [one for one in committed if one.status.started_ms <= marker.timestamp_ms]


def _other(run: CommitContext, layout: Layout, status: JobStatus, *, told: bool) -> Other:
    """Return the action for a commit; a recorded decision is carried out."""
    committed, undone = status.state is JobState.COMMITTED, status.state is JobState.ROLLING_BACK
    forward = run.options.on_unfinished is OnUnfinished.RESUME and not undone
    return Other(
        layout=layout,
        resumes=committed or undone or forward,
        finishes=committed or forward,
        key=status.key,
        told=told,
    )


def refuse_repeating(run: CommitContext, other: Other) -> None:
    """Refuse to add output that a just finished job may have written.

    Different job keys say that it has not. Raises ``CommittedError``.
    """
    mine, theirs = run.options.job_key, other.key
    if mine is not None and theirs is not None and mine != theirs:
        return
    text = (
        f"job {other.layout.job_id} had been interrupted and is now finished. If this job does "
        "the same work, nothing is left to do; otherwise run it again"
    )
    raise CommittedError(run.layout.job_id, "job_stage_setup", (), text)


def _refusal(run: CommitContext, found: Sequence[Unfinished]) -> str:
    dest = run.layout.dest
    lines = [f"{_count(found)} interrupted under {dest}, so nothing was written"]
    for layout, status in found[:_NAMED]:
        lines += _remedies(layout, status)
    if found[_NAMED:]:
        lines.append(f"  and {len(found) - _NAMED} more: {command('status', dest)}")
    if not any(status.belongs_to or status.unreadable for _, status in found):
        lines.append(_OR_SET)
    return "\n".join(lines)


def _count(found: Sequence[object]) -> str:
    return "a commit was" if len(found) == 1 else f"{len(found)} commits were"


def _remedies(layout: Layout, status: JobStatus) -> list[str]:
    if status.unreadable:
        return [f"  job {status.job_id}: {status.error}", f"    to end it, {by_hand(layout)}"]
    began = datetime.fromtimestamp(status.started_ms / 1000, UTC).isoformat(timespec="seconds")
    lines = [
        f"  job {status.job_id} ({status.state}), begun {began} by {status.owner or 'unknown'}"
    ]
    if status.belongs_to:
        return [*lines, f"    {not_ours(layout, status.belongs_to)}"]
    lines.append(f"    finish it: {job_command('resume', layout)}")
    if status.state not in (JobState.COMMITTED, JobState.ROLLING_BACK):
        lines.append(f"    or roll it back: {job_command('abort', layout, '--rollback')}")
    return lines


async def check_setup(run: CommitContext, mode: Mode, overwrite: Sequence[str]) -> None:
    """Refuse a mode that the destination forbids, and repeated work.

    Raises ``PreflightError``, also for a job key that no marker would hold, and ``CommittedError``
    if the marker says that work of this key is done.
    """
    run.meter.stage = run.meter.stage or "job_stage_setup"
    try:
        await refuse_mode(run, mode, overwrite)
        await refuse_makers(run, mode, overwrite)
    except (ExistsError, PreconditionError) as error:
        text = f"{error}. {_unwritten(run)}"
        raise PreflightError(run.layout.job_id, "job_stage_setup", (error,), text) from error
    key = run.options.job_key
    if key is None:
        return
    if not run.options.mark_success and not run.options.readers_use_sink_log:
        text = (
            f"asynccommit.job.key is {key!r}, but "
            "mapreduce.fileoutputcommitter.marksuccessfuljobs is false; a second run needs the "
            f"marker to know that the first is done: set only one of them. {_unwritten(run)}"
        )
        raise PreflightError(run.layout.job_id, "job_stage_setup", (), text)
    try:
        marker = await read_success(run)
    except ManifestError:
        return
    if marker is not None and marker.success and key in keys_of(marker):
        when = datetime.fromtimestamp(marker.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
        text = (
            f"the work of {key!r} was done before (marker of job {marker.job_id}, {when}). "
            f"{_unwritten(run)}. Set another asynccommit.job.key to do it again"
        )
        raise CommittedError(run.layout.job_id, "job_stage_setup", (), text)


def _unwritten(run: CommitContext) -> str:
    """Return a text: nothing was written, and which jobs were settled."""
    if run.warnings:
        return f"Nothing of this job was written; {'; '.join(run.warnings)}"
    return "Nothing was written"

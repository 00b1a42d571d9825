"""Tell a rejected application master who owns the commit."""

from __future__ import annotations

from asynccommit.errors import (
    CommitError,
    CommittedError,
    CommitUnknownError,
    OwnedError,
    PreflightError,
)
from asynccommit.mapreduce.commit_window import STAGE
from asynccommit.mapreduce.marker_store import MarkerStore
from asynccommit.mapreduce.markers import STARTED, CommitVerdict, MarkerState, Start

ABORT = "job_stage_abort"


def refusal(
    place: MarkerStore, verdict: CommitVerdict, standing: MarkerState, now: float
) -> CommitError:
    """Return the error for a verdict that forbids the commit.

    Args:
        place: location of the markers.
        verdict: a verdict that does not allow the commit.
        standing: state of the commit that was judged.
        now: seconds since the epoch.
    """
    job_id = place.job_id
    if verdict is CommitVerdict.FAILED:
        reason = standing.fail.error if standing.fail else "Hadoop gives no reason"
        return CommitError(job_id, STAGE, (), f"its commit failed before: {reason}")
    if verdict is CommitVerdict.MISSING:
        return PreflightError(
            job_id, STAGE, (), f"{place.path} does not exist. Nothing was written"
        )
    if verdict is CommitVerdict.STRAY:
        text = f"{place.path} holds an end marker without {STARTED}: check its owner, and delete it"
        return PreflightError(job_id, STAGE, (), f"{text}. Nothing was written")
    text = f"{who(standing.start)} {_why(verdict, standing, now)}. Nothing was written"
    return OwnedError(job_id, STAGE, (), text)


def refuse_abort(
    place: MarkerStore, standing: MarkerState, owner_id: str, *, done: bool, failed: bool
) -> None:
    """Raise an error if an abort may not undo the job.

    Args:
        place: location of the markers.
        standing: state of the markers; this process has no commit under way.
        owner_id: owner that asks.
        done: this process has committed the job, whatever the markers say.
        failed: the commit of this process has failed, although the marker may be missing.
    """
    markers, mine = standing.markers, standing.start and standing.start.owner.id == owner_id
    if done or (markers.started and markers.success):
        raise CommittedError(place.job_id, ABORT, (), "it is committed: nothing was undone")
    if not markers.started or standing.is_failed or (mine and failed):
        return
    if not mine:
        text = f"{who(standing.start)} is committing it: nothing was undone"
        raise OwnedError(place.job_id, ABORT, (), text)
    text = "it is unknown whether it is committed: nothing was undone"
    raise CommitUnknownError(place.job_id, ABORT, (), text)


def who(start: Start | None) -> str:
    """Return the display name of an owner."""
    if start is None:
        return "an application master of Hadoop"
    process = start.owner.process.partition(".")[0]
    name = f"{start.owner.user}@{start.owner.host}" + (f", process {process}" if process else "")
    return f"attempt {start.epoch} ({name})"


def _why(verdict: CommitVerdict, standing: MarkerState, now: float) -> str:
    if verdict is CommitVerdict.UNREPEATABLE:
        return "has begun to commit it, and a commit that cannot be repeated cannot be taken over"
    if verdict is CommitVerdict.LATER:
        return "is later, or is this attempt in another process"
    if standing.start is None:
        return "is committing it: it has no lease, so it is unknown whether it is alive"
    age, lease = max(0.0, now - standing.seen), standing.start.lease
    return (
        f"is committing it; its last heartbeat was {age:,.0f} s ago (its lease is {lease:,.0f} s)"
    )

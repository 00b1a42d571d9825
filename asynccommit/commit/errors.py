"""Failures of a commit: job, stage, remedy, and a report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from asynccommit.commit.context import CommitContext, Phase
from asynccommit.commit.hints import by_hand, job_command
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommittedError,
    CommitUnknownError,
    LeaseLostError,
    ManifestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    PreflightError,
    ValidationError,
)
from asynccommit.results import AbortReport

NAMED = 20
"""Maximum number of conflicts that an error names; it counts the others."""
COMMITTED = "the job is committed, do not run it again"
"""The text of every error after the decision."""
DECIDING = (
    "the job is committed unless another process ended its commit before, which could not be "
    "checked. Do not run it again before that is known"
)
"""The text of every error between the write and the confirmation of the decision."""

_KEPT = ", and the output of the tasks is kept until the job is aborted"
_NO_MARKER = ", there is no new _SUCCESS"

TAKEN = "another process took the commit over"
"""The usual reason why an owner stops."""


@asynccontextmanager
async def commit_failures(run: CommitContext) -> AsyncIterator[None]:
    """Raise every error as a ``CommitError`` that names its stage."""
    try:
        yield
    except CommitError:
        raise
    except Exception as error:
        run = run.now
        text = removed(run, error)
        raise CommitError(run.layout.job_id, run.meter.stage, (error,), text) from error


def job_commit_error(run: CommitContext, error: Exception) -> CommitError:
    """Return the error for a failed job commit.

    The kind of the error tells what the caller can rely on.

    Args:
        run: the commit; its ``phase`` tells what may have changed.
        error: the cause.
    """
    if isinstance(error, CommitError):
        return _committed_too(error) if run.phase is Phase.COMMITTED else error
    failure = _explained(run, error)
    failure.__cause__ = error
    return failure


def _explained(run: CommitContext, error: Exception) -> CommitError:
    job_id, stage = run.layout.job_id, run.meter.stage
    why = reason(error)
    if run.phase is Phase.COMMITTED:
        text = (
            f"the job is committed, but its marker or clean-up failed: {why}. Do not run it "
            f"again. {finish(run)}"
        )
        return CommitError(job_id, stage, (error,), text)
    if run.phase is Phase.DECIDING:
        text = f"{DECIDING}: {why}. {finish(run)}"
        return CommitUnknownError(job_id, stage, (error,), text)
    if run.phase is Phase.BEGUN:
        return CommitError(job_id, stage, (error,), _begun(run, why, error))
    if run.phase is Phase.PLANNING:
        gone = removed(run, error)
        kept = "" if gone or run.layout.outside else _KEPT
        text = f"{gone or why}. Nothing under {run.layout.dest} was changed{kept}"
        return PreflightError(job_id, stage, (error,), text)
    least = "at least " if run.promise.miscounted or run.identity.epoch > 1 else ""
    left = (
        f"{least}{run.promise.renamed} files are at their destinations"
        f"{'' if run.layout.outside else _NO_MARKER}, and everything else is kept in "
        f"{run.layout.sources_dir if run.layout.outside else run.layout.attempt_dir}. {finish(run)}"
    )
    if isinstance(error, OutcomeUnknownError):
        text = f"{why}. It is unknown whether that happened; {left}"
        return CommitUnknownError(job_id, stage, (error,), text)
    differs = isinstance(error, NotFoundError | PreconditionError)
    validating = stage == "job_stage_optional_validate_output"
    kind = ValidationError if validating and differs else CommitError
    return kind(job_id, stage, (error,), f"{why}; {left}")


def removed(run: CommitContext, error: Exception) -> str:
    """Return the text for a job whose directory is gone, or none."""
    if not isinstance(error, NotFoundError) or error.path != run.layout.committed_dir:
        return ""
    return (
        f"{error.path} is gone: another process has aborted the job, or deleted its directory. Run "
        "the job again"
    )


def _committed_too(error: CommitError) -> CommitError:
    """Prefix the text of an error with the fact that the job is committed.

    This is for errors that keep their class, such as a lost lease.
    """
    if not isinstance(error, CommittedError) and COMMITTED not in error.summary:
        error.summary = f"{COMMITTED}. After that: {error.summary or reason(error)}"
    return error


@contextmanager
def noting_commit(run: CommitContext) -> Iterator[None]:
    """Add a note that the job is committed to any error in the block.

    This includes a cancellation.
    """
    try:
        yield
    except BaseException as error:
        said = {Phase.COMMITTED: COMMITTED, Phase.DECIDING: DECIDING}.get(run.phase)
        if said and not isinstance(error, CommitError):
            error.add_note(f"job {run.layout.job_id}: {said}. {finish(run)}")
        raise


def _begun(run: CommitContext, why: str, error: Exception) -> str:
    text = (
        f"{why}. A commit of this job has begun. Its changes so far remain, and the files needed "
        f"to continue it are in {run.layout.attempt_dir}. "
    )
    damaged = isinstance(error, ManifestError)
    return text + (f"To end it, {by_hand(run.layout)}" if damaged else finish(run))


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether a user or a program has ended the work."""
    return isinstance(error, asyncio.CancelledError | KeyboardInterrupt)


def reason(error: BaseException) -> str:
    """Return the reason for a failure as one text."""
    kind = type(error).__name__
    if is_interrupt(error):
        return "it was interrupted"
    try:
        text = str(error)
    except Exception:  # from an exception whose text cannot be formatted
        return kind
    return text if isinstance(error, AsyncCommitError) else f"{kind}: {text}"


def say_undone(run: CommitContext, error: BaseException, report: AbortReport) -> None:
    """Add to a failed commit's error that it was rolled back, and how far."""
    text = f"it was rolled back: {_state(run, report)}"
    if isinstance(error, CommitError) and error.failures:
        error.summary = f"{reason(error.failures[0])}; {text}"
    else:
        error.add_note(text)
    for warning in report.warnings:
        error.add_note(warning)


def _state(run: CommitContext, report: AbortReport) -> str:
    if report.not_restored:
        return (
            f"these paths under {run.layout.dest} differ from their state before: "
            f"{named(report.not_restored)}"
        )
    return f"{run.layout.dest} is in its former state"


def finish(run: CommitContext) -> str:
    """Return the commands that finish or undo an interrupted commit."""
    finishing = f"Finish it: {job_command('resume', run.layout)}"
    if run.phase in (Phase.DECIDING, Phase.COMMITTED):
        return finishing
    return f"{finishing} - or roll it back: {job_command('abort', run.layout, '--rollback')}"


def note_interrupt(run: CommitContext, error: BaseException) -> None:
    """Add a note to an interrupt that it has cut a commit short."""
    if is_interrupt(error) and run.phase in (Phase.BEGUN, Phase.CHANGING):
        at = f"job {run.layout.job_id}: its commit was interrupted at {run.meter.stage}"
        error.add_note(f"{at}, and its changes so far remain. {finish(run)}")


def lease_lost(run: CommitContext, why: str = TAKEN) -> LeaseLostError:
    """Return the error of an owner that lost its lease."""
    text = (
        f"this process stopped because {why}; another process may continue the commit with the "
        f"files in {run.layout.attempt_dir}. {finish(run)}"
    )
    return LeaseLostError(run.layout.job_id, run.meter.stage, (), text)


def named(problems: Sequence[str]) -> str:
    """Return the first of ``problems`` as one text, and the number of others."""
    more = len(problems) - NAMED
    return ", ".join(problems[:NAMED]) + (f" and {more} more" if more > 0 else "")


class CommitterWarning(UserWarning):
    """Warning that the chosen committer lacks usual guarantees."""

"""How a commit fails: one error with the job, the stage and the remedy in it, and a report."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from asynccommit.commands import job_command
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommitUnknownError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    PreflightError,
    ValidationError,
)
from asynccommit.stages.run import Phase, Run


@asynccontextmanager
async def commit_failures(run: Run) -> AsyncIterator[None]:
    """Raise every error as a ``CommitError`` that names the stage in which it came."""
    try:
        yield
    except CommitError:
        raise
    except Exception as error:
        raise CommitError(run.layout.job_id, run.stage, (error,)) from error


def job_commit_error(run: Run, error: Exception) -> CommitError:
    """Return the error of a failed job commit; its kind says what the caller can rely on.

    Args:
        run: the commit, whose ``phase`` tells what may have changed.
        error: why it failed.
    """
    if isinstance(error, CommitError):
        return error
    failure = _explained(run, error)
    failure.__cause__ = error
    return failure


def _explained(run: Run, error: Exception) -> CommitError:
    job_id, stage = run.layout.job_id, run.stage
    why = reason(error)
    if run.phase is Phase.COMMITTED:
        text = f"the job is committed, but its marker or clean-up failed: {why}. {finish(run)}"
        return CommitError(job_id, stage, (error,), text)
    if run.phase is Phase.BEGUN:
        text = (
            f"{why}. A commit of this job has begun, and what it has changed so far stays as it "
            f"is; all that is needed to go on is in {run.layout.attempt_dir}. {finish(run)}"
        )
        return CommitError(job_id, stage, (error,), text)
    if run.phase is Phase.PLANNING:
        text = (
            f"{why}. Nothing under {run.layout.dest} was changed, and what the tasks wrote stays "
            "until the job is aborted"
        )
        return PreflightError(job_id, stage, (error,), text)
    left = (
        f"{run.renamed} files are at their destinations, there is no new _SUCCESS, and all the "
        f"rest is kept in {run.layout.attempt_dir}. {finish(run)}"
    )
    if isinstance(error, OutcomeUnknownError):
        text = f"{why}. It cannot be told whether that happened; {left}"
        return CommitUnknownError(job_id, stage, (error,), text)
    differs = isinstance(error, NotFoundError | PreconditionError)
    validating = stage == "job_stage_optional_validate_output"
    kind = ValidationError if validating and differs else CommitError
    return kind(job_id, stage, (error,), f"{why}; {left}")


def reason(error: BaseException) -> str:
    """Return why something failed, in one text."""
    return str(error) if isinstance(error, AsyncCommitError) else f"{type(error).__name__}: {error}"


def say_undone(run: Run, error: BaseException) -> None:
    """Let the error of a failed commit say that it was rolled back."""
    text = f"it was rolled back: {run.layout.dest} is as it was before"
    if isinstance(error, CommitError) and error.failures:
        error.summary = f"{reason(error.failures[0])}; {text}"
    else:
        error.add_note(text)


def finish(run: Run) -> str:
    """Return what to type to finish a commit that was cut short, or to undo it."""
    finishing = f"Finish it: {job_command('resume', run.layout)}"
    if run.phase is Phase.COMMITTED:
        return finishing
    return f"{finishing} - or undo it: {job_command('abort', run.layout, '--rollback')}"

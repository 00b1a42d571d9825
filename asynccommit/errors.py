"""Every error of the package, by what the caller does next.

AsyncCommitError
  OptionError                 an option or argument is invalid: correct it; nothing was done
  UrlError                    a URL or an encoded path is invalid
  UnsupportedError            the store, scheme or environment lacks a capability
  StoreError                  one request to a store: has .op, .path, .detail
    ThrottledError            refused, nothing done: send requests more slowly (.retry_after)
    UnavailableError          refused, nothing done: try again
    OutcomeUnknownError       sent, but no response came: the change may have happened
    NotFoundError             rejected: the path does not exist
    ExistsError               rejected: the path exists already
    PreconditionError         rejected: the path does not hold what was expected
    DeniedError               rejected: not permitted
    RejectedError             rejected: the store can never do this (full, name too long)
  ManifestError               a task manifest, marker or record cannot be trusted: .path, .reason
    SinkLogError              a streaming sink log cannot be used
      SinkLogCorruptError     a file of the log is not in Spark's format
      SinkLogGapError         a batch that readers need is missing, or would be
      SinkLogForeignError     the log has this batch, of another query
      SinkLogRaceError        another writer added the batch at the same moment
  CommitError                 a job (or task) commit failed: .job_id, .stage, .failures
    PreflightError            refused before anything under the destination changed
    ValidationError           files were moved, but the destination differs from the commit
    CommitUnknownError        it is unknown whether a change happened: everything was kept
    OwnedError                another process runs or commits the job: nothing was done
    LeaseLostError            another process may have taken the commit over: nothing more was done
    UnfinishedError           commits of other jobs were interrupted here: .jobs names them
    ForeignCommitError        another user's commit, and nobody asked for it: nothing was done
    CommittedError            the job is committed: it is neither rolled back nor run again
"""

from __future__ import annotations

from collections.abc import Sequence


class AsyncCommitError(Exception):
    """The base class of every error that this package raises on purpose."""


class OptionError(AsyncCommitError, ValueError):
    """Raised when an option or argument is wrong; nothing was done."""


class UrlError(AsyncCommitError, ValueError):
    """Raised when a URL or a percent-encoded path is invalid."""


class UnsupportedError(AsyncCommitError):
    """Raised when the store or environment lacks a required capability."""


class StoreError(AsyncCommitError):
    """Raised when one request to a store did not succeed.

    Args:
        op: the name of the store method (``rename``, ``list``, ...); empty for a finding.
        path: the path of the request, as the store names it.
        detail: the store's message, free of secrets.
    """

    def __init__(self, op: str, path: str, detail: str = "") -> None:
        self.op = op
        self.path = path
        self.detail = detail
        super().__init__(op, path, detail)

    def __str__(self) -> str:
        said = f"{self.op} {self.path}".lstrip()
        return f"{said}: {self.detail or type(self).__name__}"


class ThrottledError(StoreError):
    """Raised when the store refused a request for its rate; nothing was done.

    ``retry_after`` is the wait in seconds that the store asked for, or ``None``.
    """

    def __init__(
        self, op: str, path: str, detail: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(op, path, detail)
        self.retry_after = retry_after


class UnavailableError(StoreError):
    """Raised when the store refused a request for now.

    The same request may succeed later.

    Nothing was done. ``reached`` is false if no connection to the store could be made.
    """

    def __init__(self, op: str, path: str, detail: str = "", *, reached: bool = True) -> None:
        super().__init__(op, path, detail)
        self.reached = reached


class OutcomeUnknownError(StoreError):
    """Raised when a request was sent but not answered.

    The change may have happened.

    ``busy`` is true if the store reported too many requests.
    """

    def __init__(self, op: str, path: str, detail: str = "", *, busy: bool = False) -> None:
        super().__init__(op, path, detail)
        self.busy = busy


class NotFoundError(StoreError):
    """Raised when there is nothing at the path."""


class ExistsError(StoreError):
    """Raised when the path exists, or a directory is not empty."""


class PreconditionError(StoreError):
    """Raised when the path does not hold what the request expected.

    Its kind, etag or identity differs.
    """


class DeniedError(StoreError):
    """Raised when the caller is not permitted to do this."""


class RejectedError(StoreError):
    """Raised when the store can never do this.

    Examples are a full disk, a long name, another filesystem.
    """


class ManifestError(AsyncCommitError):
    """Raised when a file of the commit protocol cannot be trusted.

    Args:
        path: the URL or path of the file.
        reason: what is wrong with it, and the remedy if there is one.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class SinkLogError(ManifestError):
    """Raised when a streaming sink log cannot be used.

    ``reason`` ends with the remedy.
    """


class SinkLogCorruptError(SinkLogError):
    """Raised when a file of the log is not in the format that Spark writes."""


class SinkLogGapError(SinkLogError):
    """Raised when a batch that readers need is missing, or would be missing."""


class SinkLogForeignError(SinkLogError):
    """Raised when the log has this batch, perhaps of another query."""


class SinkLogRaceError(SinkLogError):
    """Raised when another writer added the batch at the same moment.

    This batch was not added.
    """


class CommitError(AsyncCommitError):
    """Raised when a job commit, task commit or abort did not succeed.

    Args:
        job_id: the job.
        stage: the stage that failed, by its Hadoop statistic name (``job_stage_rename_files``).
        failures: the errors found, first cause first; bounded by the stage that collects them.
        summary: one sentence that names the job or path and the remedy.
    """

    def __init__(
        self, job_id: str, stage: str, failures: Sequence[BaseException], summary: str = ""
    ) -> None:
        self.job_id = job_id
        self.stage = stage
        self.failures = tuple(failures)
        self.summary = summary
        super().__init__(job_id, stage, self.failures, summary)

    def __str__(self) -> str:
        head = self.summary or (str(self.failures[0]) if self.failures else "failed")
        stage = f", {self.stage}" if self.stage else ""  # none has begun
        return f"job {self.job_id}{stage}: {head}"


class PreflightError(CommitError):
    """Raised when the commit was refused before any change."""


class ValidationError(CommitError):
    """Raised when the destination does not hold what was committed.

    Files were moved before.
    """


class CommitUnknownError(CommitError):
    """Raised when the outcome of a change is unknown.

    Everything was left as it is.
    """


class OwnedError(CommitError):
    """Raised when a process that seems to be alive runs or commits the job.

    Nothing was done.
    """


class LeaseLostError(CommitError):
    """Raised when this process lost its lease, or did not renew it in time.

    The commit stopped. A process that continues the commit finds everything it needs.
    """


class UnfinishedError(CommitError):
    """Raised when commits of other jobs in the destination are unfinished.

    Nothing was done.

    Args:
        job_id: the job that was not set up.
        stage: the stage that found the other jobs.
        jobs: the ids of the other jobs.
        summary: names the other jobs, and the commands that finish or undo them.
    """

    def __init__(self, job_id: str, stage: str, jobs: Sequence[str], summary: str) -> None:
        super().__init__(job_id, stage, (), summary)
        self.jobs = tuple(jobs)


class ForeignCommitError(CommitError):
    """Raised when a commit that nobody has named belongs to another user.

    Nothing was done. Whoever may write in ``_temporary`` can make a commit up.

    Args:
        job_id: the job whose commit it is.
        stage: the stage that was to finish or undo it.
        owner: the user to whom it belongs, for people.
        summary: names the path, both users and the remedy.
    """

    def __init__(self, job_id: str, stage: str, owner: str, summary: str) -> None:
        super().__init__(job_id, stage, (), summary)
        self.owner = owner


class CommittedError(CommitError):
    """Raised when the job, or the job with its key, is already committed.

    Nothing was done.
    """

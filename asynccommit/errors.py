"""Every error of the package, by what the caller does next.

AsyncCommitError
  OptionError                 an option or argument is wrong: correct it, nothing was done
  UrlError                    a URL or an encoded path cannot be read
  UnsupportedError            the store, scheme or environment lacks what is asked
  StoreError                  one request to a store: has .op, .path, .detail
    ThrottledError            refused, nothing done: ask more slowly (.retry_after)
    UnavailableError          refused, nothing done: ask again
    OutcomeUnknownError       sent, no answer: it may have happened; touch nothing
    NotFoundError             answered no: there is no such path
    ExistsError               answered no: something is there already
    PreconditionError         answered no: what is there is not what was expected
    DeniedError               answered no: not permitted
    RejectedError             answered no: the store cannot do this at all (full, name too long)
  ManifestError               a task manifest, marker or record cannot be trusted: .path, .reason
    SinkLogError              a streaming sink log cannot be used as it is
      SinkLogCorruptError     a file of the log is not what Spark writes
      SinkLogGapError         a batch that readers want is not there, or would be missing
      SinkLogForeignError     a batch of that number is there, of another query
      SinkLogRaceError        another writer added the batch at the same moment
  CommitError                 a job (or task) commit failed: .job_id, .stage, .failures
    PreflightError            refused before anything under the destination changed
    ValidationError           files were moved, but what is there is not what was committed
    CommitUnknownError        it cannot be told whether a change happened: nothing was cleaned
    OwnedError                another process runs or commits the job: nothing was done
    LeaseLostError            another process may have taken the commit over: nothing more was done
    UnfinishedError           commits of other jobs were cut short here: .jobs names them
    CommittedError            the job is committed: it cannot be rolled back, and is not run again
"""

from __future__ import annotations

from collections.abc import Sequence


class AsyncCommitError(Exception):
    """The root of every error that this package raises on purpose."""


class OptionError(AsyncCommitError, ValueError):
    """An option or argument is wrong; nothing was done."""


class UrlError(AsyncCommitError, ValueError):
    """A URL or a percent-encoded path cannot be read."""


class UnsupportedError(AsyncCommitError):
    """The store, the scheme or the environment lacks what is asked of it."""


class StoreError(AsyncCommitError):
    """One request to a store did not succeed.

    Args:
        op: the name of the store method (``rename``, ``list``, ...).
        path: the path it was about, as the store names it.
        detail: what the store said, free of secrets.
    """

    def __init__(self, op: str, path: str, detail: str = "") -> None:
        self.op = op
        self.path = path
        self.detail = detail
        super().__init__(op, path, detail)

    def __str__(self) -> str:
        return f"{self.op} {self.path}: {self.detail or type(self).__name__}"


class ThrottledError(StoreError):
    """Refused for the rate of requests, nothing done.

    ``retry_after`` is the wait in seconds that the store asked for, or ``None``.
    """

    def __init__(
        self, op: str, path: str, detail: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(op, path, detail)
        self.retry_after = retry_after


class UnavailableError(StoreError):
    """Refused for now, nothing done; the same request may succeed later."""


class OutcomeUnknownError(StoreError):
    """Sent and not answered: the change may or may not have happened.

    ``busy`` is true if the store said that it was for too many requests.
    """

    def __init__(self, op: str, path: str, detail: str = "", *, busy: bool = False) -> None:
        super().__init__(op, path, detail)
        self.busy = busy


class NotFoundError(StoreError):
    """There is nothing at the path."""


class ExistsError(StoreError):
    """Something is at the path already, or a directory is not empty."""


class PreconditionError(StoreError):
    """What is at the path is not what the request expected (kind, etag, identity)."""


class DeniedError(StoreError):
    """The caller is not permitted to do this."""


class RejectedError(StoreError):
    """The store can never do this as asked: disk full, name too long, another filesystem."""


class ManifestError(AsyncCommitError):
    """A file of the commit protocol cannot be trusted.

    Args:
        path: the URL or path of the file.
        reason: what is wrong with it, and what to do where that is known.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class SinkLogError(ManifestError):
    """A streaming sink log cannot be used as it is; ``reason`` ends with what to do."""


class SinkLogCorruptError(SinkLogError):
    """A file of the log is not what Spark writes."""


class SinkLogGapError(SinkLogError):
    """A batch that readers want is not there, or would be missing."""


class SinkLogForeignError(SinkLogError):
    """A batch of that number is in the log, and is not known to be of this query."""


class SinkLogRaceError(SinkLogError):
    """Another writer added the batch at the same moment; this one was not added."""


class CommitError(AsyncCommitError):
    """A job commit, task commit or abort did not succeed.

    Args:
        job_id: the job.
        stage: the stage that failed, by its Hadoop statistic name (``job_stage_rename_files``).
        failures: the errors found, first cause first; bounded by the stage that collects them.
        summary: one sentence that names the thing and the remedy.
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
        return f"job {self.job_id}, {self.stage}: {head}"


class PreflightError(CommitError):
    """The commit was refused before anything under the destination changed."""


class ValidationError(CommitError):
    """Files were moved, but the destination does not hold what was committed."""


class CommitUnknownError(CommitError):
    """The outcome of a change is unknown; everything was left as it is."""


class OwnedError(CommitError):
    """A process that lives, as far as can be told, runs or commits the job; nothing was done."""


class LeaseLostError(CommitError):
    """This process could not say in time that it lives, or another has taken the commit over.

    It stopped; who continues the commit finds all that is needed.
    """


class UnfinishedError(CommitError):
    """Commits of other jobs under the destination were cut short; nothing was done.

    Args:
        job_id: the job that was to be set up.
        stage: the stage that looked.
        jobs: the ids of the other jobs.
        summary: names them, and the commands that finish or undo them.
    """

    def __init__(self, job_id: str, stage: str, jobs: Sequence[str], summary: str) -> None:
        super().__init__(job_id, stage, (), summary)
        self.jobs = tuple(jobs)


class CommittedError(CommitError):
    """The job, or the one that its key names, is committed; nothing was done."""

"""Commit the output of parallel jobs: exactly the files of the committed tasks, fast."""

from asynccommit.api import (
    Job,
    job_statuses,
    open_committer,
    open_job,
    open_task,
    resume_job,
    rollback_job,
)
from asynccommit.commit.context import Progress
from asynccommit.commit.layout import TaskCommit
from asynccommit.commit.task import Task
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommittedError,
    CommitUnknownError,
    LeaseLostError,
    ManifestError,
    OptionError,
    OwnedError,
    PreflightError,
    StoreError,
    UnfinishedError,
    UnsupportedError,
    UrlError,
    ValidationError,
)
from asynccommit.options.job import Mode, OnFailure, OnUnfinished, Options, OptionWarning
from asynccommit.options.uploads import UploadOptions
from asynccommit.results import AbortReport, JobReport, JobStatus, State
from asynccommit.stores.opening import open_store
from asynccommit.version import __version__

__all__ = [
    "AbortReport",
    "AsyncCommitError",
    "CommitError",
    "CommitUnknownError",
    "CommittedError",
    "Job",
    "JobReport",
    "JobStatus",
    "LeaseLostError",
    "ManifestError",
    "Mode",
    "OnFailure",
    "OnUnfinished",
    "OptionError",
    "OptionWarning",
    "Options",
    "OwnedError",
    "PreflightError",
    "Progress",
    "State",
    "StoreError",
    "Task",
    "TaskCommit",
    "UnfinishedError",
    "UnsupportedError",
    "UploadOptions",
    "UrlError",
    "ValidationError",
    "__version__",
    "job_statuses",
    "open_committer",
    "open_job",
    "open_store",
    "open_task",
    "resume_job",
    "rollback_job",
]

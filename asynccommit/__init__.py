"""Commit the output of parallel jobs: exactly the files of the committed tasks, fast."""

from asynccommit.api import Job, Task, open_job, open_task
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommitUnknownError,
    ManifestError,
    OptionError,
    PreflightError,
    StoreError,
    UnsupportedError,
    UrlError,
    ValidationError,
)
from asynccommit.job import TaskCommit
from asynccommit.options import Options, OptionWarning
from asynccommit.results import AbortReport, JobReport
from asynccommit.stages.run import Progress
from asynccommit.version import __version__

__all__ = [
    "AbortReport",
    "AsyncCommitError",
    "CommitError",
    "CommitUnknownError",
    "Job",
    "JobReport",
    "ManifestError",
    "OptionError",
    "OptionWarning",
    "Options",
    "PreflightError",
    "Progress",
    "StoreError",
    "Task",
    "TaskCommit",
    "UnsupportedError",
    "UrlError",
    "ValidationError",
    "__version__",
    "open_job",
    "open_task",
]

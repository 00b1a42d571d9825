"""Commit the output of parallel jobs, atomically and fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from asynccommit.former import Former, function_of_tasks, functions_of_jobs
from asynccommit.runtime.lazy import lazy_names
from asynccommit.showing import Display, show_by
from asynccommit.version import __version__

if TYPE_CHECKING:
    from asynccommit.api import (
        Job,
        JobHandle,
        job,
        job_statuses,
        open_job,
    )
    from asynccommit.commit.errors import CommitterWarning
    from asynccommit.commit.layouts.layout import TaskCommit
    from asynccommit.commit.meter import Progress
    from asynccommit.commit.task import Task
    from asynccommit.commit.tasks.writers import Writer
    from asynccommit.errors import (
        AsyncCommitError,
        CommitError,
        CommittedError,
        CommitUnknownError,
        DeniedError,
        ExistsError,
        ForeignCommitError,
        LeaseLostError,
        ManifestError,
        NotFoundError,
        OptionError,
        OutcomeUnknownError,
        OwnedError,
        PreconditionError,
        PreflightError,
        RejectedError,
        StoreError,
        ThrottledError,
        UnavailableError,
        UnfinishedError,
        UnsupportedError,
        UrlError,
        ValidationError,
    )
    from asynccommit.options.job import Mode, OnFailure, OnUnfinished, Options, OptionWarning
    from asynccommit.options.uploads import UploadOptions
    from asynccommit.results import AbortReport, JobReport, JobState, JobStatus
    from asynccommit.stores.base import Info, Page, Store, Traits
    from asynccommit.stores.opening import open_store
else:

    def _job() -> object:
        return import_module("asynccommit.api").job

    # Imported late: the pytest plugin and the command load this package and few of its names.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "api": [
                "Job",
                "JobHandle",
                "job",
                "job_statuses",
                "open_job",
            ],
            "commit.errors": ["CommitterWarning"],
            "commit.meter": ["Progress"],
            "commit.layouts.layout": ["TaskCommit"],
            "commit.task": ["Task"],
            "commit.tasks.writers": ["Writer"],
            "errors": [
                "AsyncCommitError",
                "CommitError",
                "CommitUnknownError",
                "CommittedError",
                "DeniedError",
                "ExistsError",
                "ForeignCommitError",
                "LeaseLostError",
                "ManifestError",
                "NotFoundError",
                "OptionError",
                "OutcomeUnknownError",
                "OwnedError",
                "PreconditionError",
                "PreflightError",
                "RejectedError",
                "StoreError",
                "ThrottledError",
                "UnavailableError",
                "UnfinishedError",
                "UnsupportedError",
                "UrlError",
                "ValidationError",
            ],
            "options.job": ["Mode", "OnFailure", "OnUnfinished", "Options", "OptionWarning"],
            "options.uploads": ["UploadOptions"],
            "results": ["AbortReport", "JobReport", "JobStatus", "JobState"],
            "stores.base": ["Info", "Page", "Store", "Traits"],
            "stores.opening": ["open_store"],
        },
        {
            "State": Former(
                lambda: import_module("asynccommit.results").JobState, "asynccommit.JobState"
            ),
            **functions_of_jobs(__name__, _job),
            "open_committer": Former(
                lambda: import_module("asynccommit.committers").open_committer,
                "asynccommit.committers.open_committer",
            ),
            "open_task": function_of_tasks(__name__, "open_task", _job),
        },
    )

show_by(lambda: cast(Display, import_module("asynccommit.inspect.display")))

__all__ = [
    "AbortReport",
    "AsyncCommitError",
    "CommitError",
    "CommitUnknownError",
    "CommittedError",
    "CommitterWarning",
    "DeniedError",
    "ExistsError",
    "ForeignCommitError",
    "Info",
    "Job",
    "JobHandle",
    "JobReport",
    "JobState",
    "JobStatus",
    "LeaseLostError",
    "ManifestError",
    "Mode",
    "NotFoundError",
    "OnFailure",
    "OnUnfinished",
    "OptionError",
    "OptionWarning",
    "Options",
    "OutcomeUnknownError",
    "OwnedError",
    "Page",
    "PreconditionError",
    "PreflightError",
    "Progress",
    "RejectedError",
    "Store",
    "StoreError",
    "Task",
    "TaskCommit",
    "ThrottledError",
    "Traits",
    "UnavailableError",
    "UnfinishedError",
    "UnsupportedError",
    "UploadOptions",
    "UrlError",
    "ValidationError",
    "Writer",
    "__version__",
    "job",
    "job_statuses",
    "open_job",
    "open_store",
]

"""Errors of looking for jobs, without what finds them."""

from __future__ import annotations

from collections.abc import Sequence

from asynccommit.errors import AsyncCommitError
from asynccommit.inspect.found import FoundJob


class NothingThereError(AsyncCommitError):
    """Raised when there is no job and nothing else to inspect."""


class JobFilesError(AsyncCommitError):
    """Raised when a bulk command would take files of a job that has not ended.

    Nothing was done.
    """


class SeveralJobsError(AsyncCommitError):
    """Raised when several jobs or attempts match and none was named.

    Args:
        jobs: the jobs that were found.
        summary: one sentence with the remedy.
    """

    def __init__(self, jobs: Sequence[FoundJob], summary: str) -> None:
        self.jobs = tuple(jobs)
        super().__init__(summary)

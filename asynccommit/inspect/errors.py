"""Errors of looking for jobs, without what finds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from asynccommit.errors import AsyncCommitError


class FoundAttempt(Protocol):
    """A job attempt, as the error for several ones names it."""

    @property
    def layout(self) -> Any:
        """Its ``Layout``, whose module ``emulate`` starts without."""
        ...


class NothingThereError(AsyncCommitError):
    """Raised when there is no job and nothing else to inspect."""


class JobFilesError(AsyncCommitError):
    """Raised before a bulk command takes files of a job that has not ended."""


class SeveralJobsError(AsyncCommitError):
    """Raised when several jobs or attempts match and none was named.

    Args:
        jobs: the jobs that were found.
        summary: one sentence with the remedy.
    """

    def __init__(self, jobs: Sequence[FoundAttempt], summary: str) -> None:
        self.jobs = tuple(jobs)
        super().__init__(summary)

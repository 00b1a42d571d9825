"""Keep late requests out of the directory of a job attempt.

``FencedDirectory`` renames the directory, where no write can create it again. Elsewhere
``FlatDirectory`` recognises late files by their versions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from asynccommit.commit.context import CommitContext
from asynccommit.commit.job.cleanup import CleanupResult
from asynccommit.commit.layouts.layout import Layout
from asynccommit.formats.commit_owner import Decision, Outcome
from asynccommit.stores.base import Info


class JobDirectory(ABC):
    """The directory of a job attempt, on one kind of store; it has no state."""

    # --- the owner of a commit

    @abstractmethod
    async def is_taken(self, run: CommitContext) -> bool:
        """Return whether another owner has claimed the commit."""

    @abstractmethod
    async def require_place(self, run: CommitContext) -> None:
        """Raise ``LeaseLostError`` unless this run is the last owner."""

    @abstractmethod
    async def write(self, run: CommitContext, path: str, data: bytes) -> Info:
        """Write a file of the owner, who must hold the commit then.

        Raises ``LeaseLostError``.
        """

    @abstractmethod
    async def take_back(self, run: CommitContext, path: str) -> None:
        """Delete a file that was just written if the commit was gone before."""

    @abstractmethod
    async def take_manifests(self, run: CommitContext) -> bool:
        """Keep late manifests away from those of the commit.

        Returns whether the job had manifests, or a directory for them.
        """

    @abstractmethod
    async def close(self, run: CommitContext, outcome: Outcome) -> None:
        """End the work of the owner, except for the clean-up.

        Raises ``LeaseLostError`` if another has taken the commit over.
        """

    # --- the state of the attempt

    @abstractmethod
    async def has_begun(self, run: CommitContext, attempt_dir: str) -> bool:
        """Return whether a commit has begun in the directory of an attempt."""

    @abstractmethod
    async def find_end(self, run: CommitContext) -> Decision | None:
        """Return how a commit without an outcome has ended, or ``None``."""

    @abstractmethod
    async def has_ended(self, run: CommitContext) -> bool:
        """Return whether remains of an interrupted clean-up show a committed job."""

    @abstractmethod
    async def has_work(self, run: CommitContext) -> bool:
        """Return whether the directory has task output that is not committed."""

    @abstractmethod
    async def is_late(self, run: CommitContext, layout: Layout) -> bool:
        """Return whether only late files are left of a job attempt."""

    @abstractmethod
    async def is_renamed(self, run: CommitContext) -> bool:
        """Return whether a commit began while an abort renamed it and died."""

    @abstractmethod
    async def restore_begun(self, run: CommitContext) -> bool:
        """Put back a commit for which ``is_renamed`` is true.

        Returns whether there was one.
        """

    @abstractmethod
    async def is_given_back(self, run: CommitContext) -> bool:
        """Return whether this commit has its directory, or has it again.

        An abort that looked before the record was written renames the directory, finds the record
        and renames it back. What is not back yet is put back.
        """

    # --- its end

    @abstractmethod
    async def abort(
        self, run: CommitContext, check: Callable[[], None] | None = None
    ) -> CleanupResult:
        """Delete a job attempt, and no other, unless its commit has begun.

        Args:
            run: the abort.
            check: raises if this process was suspended.
        """

    @abstractmethod
    async def delete_ended(self, run: CommitContext, how: str) -> CleanupResult:
        """Delete the directory of a commit that has ended as ``how`` says."""

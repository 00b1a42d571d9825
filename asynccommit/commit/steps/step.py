"""A step of a commit: what is done, settled after a crash, and undone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from asynccommit.commit.context import CommitContext
from asynccommit.commit.errors import NAMED
from asynccommit.commit.planning.plan import Plan
from asynccommit.commit.steps.identity import Settled
from asynccommit.errors import DeniedError, RejectedError, StoreError

REFUSED = (RejectedError, DeniedError)
"""The errors for a held file or a missing permission; other files are still processed."""

_MOST = 1_000
"""Maximum number of recorded paths that differ from before."""


@dataclass(slots=True)
class RollbackResult:
    """The result of a rollback.

    Attributes:
        files: number of undone files.
        restored: how many things were put back in their place.
        refused: what the store has refused.
        left: path -> reason why it differs from before; only the first ones.
        more: how many there are beyond these.
    """

    files: int = 0
    restored: int = 0
    refused: list[StoreError] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    more: int = 0

    def leave(self, path: str, why: str) -> None:
        """Note that ``path`` differs from before; keep the first reason."""
        if path in self.left:
            return
        if len(self.left) < _MOST:
            self.left[path] = why
        else:
            self.more += 1

    def end(self) -> None:
        """Raise the first refusal, with the names of all refused paths."""
        if self.refused:
            first, *more = self.refused
            for error in more[:20]:
                first.add_note(f"also: {error}")
            raise first

    def warn(self, run: CommitContext) -> None:
        """Warn of paths that differ from before."""
        for path, why in list(self.left.items())[:NAMED]:
            run.warn(f"{path} {why}")
        more = len(self.left) + self.more - NAMED
        if more > 0:
            run.warn(f"{more} more paths differ from their state before the commit")


class CommitStep(ABC):
    """One kind of change under the destination.

    Each method may be called again, by this owner or a later one, in any state that a crash has
    left.

    Attributes:
        stage: Hadoop's name for it. Consecutive steps with the same name are timed as one.
    """

    stage: ClassVar[str]

    @abstractmethod
    def count(self, run: CommitContext, plan: Plan) -> int | None:
        """Return how many things its progress counts.

        ``None`` if this commit does without the step.
        """

    async def settle(self, run: CommitContext, plan: Plan, settled: Settled) -> Settled:
        """Find what earlier owners have done of it.

        What they left half done is put back, or is finished by ``do``. Steps whose items look for
        themselves return what they are given.
        """
        return settled

    @abstractmethod
    async def do(self, run: CommitContext, plan: Plan, settled: Settled) -> None:
        """Do what is not done yet."""

    async def fence(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """Keep an earlier owner's late request from doing it after ``undo``.

        Every step is fenced before the first one is undone.
        """
        return

    @abstractmethod
    async def undo(self, run: CommitContext, plan: Plan, undone: RollbackResult) -> None:
        """Undo what any owner has done of it.

        What cannot be undone is noted in ``undone``.
        """

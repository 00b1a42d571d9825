"""What settling a request is made of, whatever the request is: verdicts, looks and last words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.policies.funnel import Call, Op

TO_SETTLE = (OutcomeUnknownError, NotFoundError, ExistsError, PreconditionError)
"""What is not taken for the truth before somebody has looked."""


class ReplyVerdict(Enum):
    """What became of a request that was not answered with yes."""

    DONE = "it was done"
    AGAIN = "it was not done and may be sent again"
    TAKEN = "it does not stand: something else is in its place"
    NO = "the answer that came is the truth"
    UNKNOWN = "nobody can tell"


class DestinationState(Enum):
    """What is at the destination."""

    NOTHING = "nothing"
    MINE = "what this request brings, by its token or etag"
    OTHER = "what another one brought, by its token or etag"
    UNMARKED = "something that nothing is known of"


class Case(ABC):
    """One request under suspicion.

    Args:
        call: sends a request, without settling it.
        op: the request.
        dest: where it leaves something.

    ``lost`` says whether a sending of it was not answered; who settles it sets it.
    """

    def __init__(self, call: Call, op: Op, dest: str) -> None:
        self.call = call
        self.op = op
        self.lost = False
        self.dest = dest

    @abstractmethod
    async def look(self, error: StoreError) -> tuple[Info | None, ReplyVerdict]:
        """Return what is at the destination, and what that means."""

    def answer(self, error: StoreError, verdict: ReplyVerdict, sent: int) -> StoreError:
        """Return what the caller is told."""
        if not self.lost:
            return error
        if verdict is ReplyVerdict.TAKEN and isinstance(error, TO_SETTLE):
            if isinstance(error, ExistsError):
                return error
            return self.error(ExistsError, f"something else is at {self.dest}", error)
        if isinstance(error, OutcomeUnknownError):
            error.add_note(f"sent {sent} times; {self.dest} and its source do not tell")
            return error
        return self.error(OutcomeUnknownError, f"one answer was lost, then: {error}", error)

    def error(self, kind: type[StoreError], detail: str, cause: StoreError) -> StoreError:
        """Return an error of this request."""
        made = kind(self.op.name, self.op.path, detail)
        made.__cause__ = cause
        return made

    def blind(self, path: str, error: StoreError, failed: StoreError) -> StoreError:
        """Return what the caller is told where ``path`` could not be looked at."""
        if not self.lost:
            error.add_note(f"{path} could not be looked at: {failed}")
            return error
        detail = f"{error.detail}; then {path} could not be looked at: {failed}"
        return self.error(OutcomeUnknownError, detail, failed)

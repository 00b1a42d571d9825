"""Verdicts on requests with a doubtful outcome."""

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
"""The errors that are not trusted before the store was read."""


class ReplyVerdict(Enum):
    """The outcome of a request that had no successful response."""

    DONE = "it was done"
    AGAIN = "it had no effect and may be sent again"
    TAKEN = "its result was replaced by something else"
    NO = "the received answer is correct"
    UNKNOWN = "it is unknown"


class DestinationState(Enum):
    """The state of the destination."""

    NOTHING = "nothing"
    MINE = "the result of this request, by its token or etag"
    OTHER = "the result of another request, by its token or etag"
    UNMARKED = "something of unknown origin"


class Case(ABC):
    """One request whose outcome is in doubt.

    Args:
        call: sends a request, without determining its outcome.
        op: the request.
        dest: the path where it creates something.

    ``lost`` tells whether an attempt was not answered; the caller sets it.
    """

    def __init__(self, call: Call, op: Op, dest: str) -> None:
        self.call = call
        self.op = op
        self.lost = False
        self.dest = dest

    @abstractmethod
    async def look(self, error: StoreError) -> tuple[Info | None, ReplyVerdict]:
        """Return the facts about the destination, and the verdict from them."""

    def answer(self, error: StoreError, verdict: ReplyVerdict, sent: int) -> StoreError:
        """Return the error for the caller."""
        if not self.lost:
            return error
        if verdict is ReplyVerdict.TAKEN and isinstance(error, TO_SETTLE):
            if isinstance(error, ExistsError):
                return error
            return self.error(ExistsError, f"something else is at {self.dest}", error)
        if isinstance(error, OutcomeUnknownError):
            error.add_note(f"sent {sent} times; {self.dest} and its source do not show the result")
            return error
        return self.error(OutcomeUnknownError, f"one response was lost, then: {error}", error)

    def error(self, kind: type[StoreError], detail: str, cause: StoreError) -> StoreError:
        """Return an error of this request."""
        made = kind(self.op.name, self.op.path, detail)
        made.__cause__ = cause
        return made

    def blind(self, path: str, error: StoreError, failed: StoreError) -> StoreError:
        """Return the error for the caller if ``path`` could not be read."""
        if not self.lost:
            error.add_note(f"{path} could not be read: {failed}")
            return error
        detail = f"{error.detail}; then {path} could not be read: {failed}"
        return self.error(OutcomeUnknownError, detail, failed)

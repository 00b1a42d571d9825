"""Translate the model's responses into store errors."""

from __future__ import annotations

from typing import NamedTuple

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.testing.models.adls.refusals import Refusal

_KINDS: dict[str, type[StoreError]] = {
    "DestinationPathIsBeingDeleted": UnavailableError,
    "DirectoryNotEmpty": ExistsError,
    "FilesystemBeingDeleted": UnavailableError,
    "FilesystemNotFound": RejectedError,
    "InvalidDestinationPath": NotFoundError,
    "InvalidSourceOrDestinationResourceType": PreconditionError,
    "PathAlreadyExists": ExistsError,
    "PathConflict": PreconditionError,
    "ResourceTypeMismatch": PreconditionError,
    "SourcePathIsBeingDeleted": NotFoundError,
}
_BY_STATUS: dict[int, type[StoreError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    412: PreconditionError,
}


class LostError(Exception):
    """Raised when no response came."""


class Asked(NamedTuple):
    """The request that a response belongs to.

    Attributes:
        method: method of the store.
        path: path of the call.
        writes: the request changes data that others see.
        new: the request may succeed only if the path does not exist.
        aside: the request concerns a temporary file, which may be created again: it has changed
            nothing.
    """

    method: str
    path: str
    writes: bool = False
    new: bool = False
    aside: bool = False


def translate(asked: Asked, answer: Refusal | LostError) -> StoreError:
    """Return the store error for a response."""
    method, path = asked.method, asked.path
    if isinstance(answer, LostError):
        lost = OutcomeUnknownError if asked.writes else UnavailableError
        return lost(method, path, "no answer came")
    detail = str(answer)
    if answer.status == 503:
        wait = answer.headers.get("Retry-After")
        return ThrottledError(method, path, detail, None if wait is None else float(wait))
    if answer.status >= 500:
        busy = answer.code == "OperationTimedOut"
        if asked.writes:
            return OutcomeUnknownError(method, path, detail, busy=busy)
        return (ThrottledError if busy else UnavailableError)(method, path, detail)
    return _kind(asked, answer)(method, path, detail)


def _kind(asked: Asked, answer: Refusal) -> type[StoreError]:
    kind = _KINDS.get(answer.code) or _BY_STATUS.get(answer.status, RejectedError)
    if asked.method == "mkdir" and kind is ExistsError:
        return PreconditionError
    if asked.aside and answer.status in (404, 409, 412):
        return UnavailableError
    return kind

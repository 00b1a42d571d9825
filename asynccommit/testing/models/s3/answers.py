"""Translate the model's responses into store errors."""

from __future__ import annotations

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
from asynccommit.testing.models.adls.errors import Asked, LostError
from asynccommit.testing.models.adls.refusals import Refusal

_KINDS: dict[str, type[StoreError]] = {
    "ConditionalRequestConflict": UnavailableError,
    "EntityTooSmall": PreconditionError,
    "InvalidPart": PreconditionError,
    "InvalidPartOrder": PreconditionError,
    "NoSuchBucket": RejectedError,
    "OperationAborted": UnavailableError,
    "RequestTimeout": UnavailableError,
}
# Errors of a completion. One means that it must be uploaded again, which only its writer can do;
# the other, that no object has the etag.
_BARRED = frozenset({"ConditionalRequestConflict", "NoSuchKey"})
_BY_STATUS: dict[int, type[StoreError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    412: PreconditionError,
}


def translate(asked: Asked, answer: Refusal | LostError) -> StoreError:
    """Return the store error for a response."""
    method, path = asked.method, asked.path
    lost = OutcomeUnknownError if asked.writes else UnavailableError
    if isinstance(answer, LostError):
        return lost(method, path, "no answer came")
    detail = str(answer)
    if answer.status == 503:
        wait = answer.headers.get("Retry-After")
        return ThrottledError(method, path, detail, None if wait is None else float(wait))
    if answer.status == 500:
        return lost(method, path, detail)
    return _kind(asked, answer)(method, path, detail)


def _kind(asked: Asked, answer: Refusal) -> type[StoreError]:
    if answer.status == 412 and asked.new:
        return ExistsError
    if asked.method == "complete_upload" and answer.code in _BARRED:
        return PreconditionError
    return _KINDS.get(answer.code) or _BY_STATUS.get(answer.status, RejectedError)

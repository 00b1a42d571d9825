"""Translate the refusals of the model into store errors."""

from __future__ import annotations

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.in_process import Asked

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


def kind_of(asked: Asked, answer: Refusal) -> type[StoreError]:
    """Return the store error that a refusal means."""
    if answer.status == 412 and asked.new:
        return ExistsError
    if asked.method == "complete_upload" and answer.code in _BARRED:
        return PreconditionError
    return _KINDS.get(answer.code) or _BY_STATUS.get(answer.status, RejectedError)

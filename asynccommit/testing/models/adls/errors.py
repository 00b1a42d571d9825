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
# Of a write, about its temporary file: it is written anew.
_GONE_ASIDE = frozenset({"SourcePathNotFound", "SourceConditionNotMet"})


def kind_of(asked: Asked, answer: Refusal) -> type[StoreError]:
    """Return the store error that a refusal means."""
    kind = _KINDS.get(answer.code) or _BY_STATUS.get(answer.status, RejectedError)
    if asked.method == "mkdir" and kind is ExistsError:
        return PreconditionError
    if asked.aside and answer.status in (404, 409, 412):
        return UnavailableError
    if answer.code in _GONE_ASIDE and asked.method != "rename":
        return UnavailableError
    return kind

"""Check the preconditions of a request, and build the error if they fail.

Source: https://cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from asynccommit.testing.models.gcs.objects import GcsObject
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse


class Preconditions(NamedTuple):
    """The four preconditions; ``None`` means absent.

    Generation 0 means no object.
    """

    generation_match: int | None = None
    generation_not_match: int | None = None
    metageneration_match: int | None = None
    metageneration_not_match: int | None = None


NO_PRECONDITIONS = Preconditions()
IF_ABSENT = Preconditions(generation_match=0)


class HasMetageneration(Protocol):
    """A folder or bucket, which has a metageneration but no generation."""

    @property
    def metageneration(self) -> int:
        """The metageneration of the metadata."""
        ...


def check_write(there: GcsObject | None, preconditions: Preconditions) -> None:
    """Check a change of ``there`` (``None``: no object); reject with 412."""
    if _changed(there, preconditions) or _unchanged(there, preconditions):
        raise _unmet()


def check_read(there: GcsObject, preconditions: Preconditions) -> None:
    """Check a read: 412 if a precondition fails, 304 if nothing is new."""
    if _changed(there, preconditions):
        raise _unmet()
    if _unchanged(there, preconditions):
        raise refuse("notModified")


def check_metageneration(
    there: HasMetageneration, preconditions: Preconditions, reading: bool = False
) -> None:
    """Check a request about a folder or bucket, like the checks of objects."""
    match, not_match = preconditions[2:]
    if match is not None and match != there.metageneration:
        raise _unmet()
    if not_match == there.metageneration:
        raise refuse("notModified") if reading else _unmet()


def _unmet() -> GcsRefusal:
    return refuse("conditionNotMet", location_type="header", location="If-Match")


def _changed(there: GcsObject | None, preconditions: Preconditions) -> bool:
    """Return whether the object is not the expected one."""
    generation, _, metageneration, _ = preconditions
    if generation is not None and generation != (0 if there is None else there.generation):
        return True
    return metageneration is not None and (there is None or metageneration != there.metageneration)


def _unchanged(there: GcsObject | None, preconditions: Preconditions) -> bool:
    """Return whether the object matches one that must not match; a missing one does."""
    _, generation, _, metageneration = preconditions
    if generation is None and metageneration is None:
        return False
    if there is None:
        return True
    return generation == there.generation or metageneration == there.metageneration

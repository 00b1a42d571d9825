"""What a request demands of the object it is about, and what it is told if that does not hold.

Source: https://cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from asynccommit.testing.models.gcs.objects import GcsObject
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse


class Preconditions(NamedTuple):
    """The four preconditions; ``None`` is not given. The generation 0 is that of no object."""

    generation_match: int | None = None
    generation_not_match: int | None = None
    metageneration_match: int | None = None
    metageneration_not_match: int | None = None


NO_PRECONDITIONS = Preconditions()
IF_ABSENT = Preconditions(generation_match=0)


class Versioned(Protocol):
    """What has a metageneration alone: a folder or bucket."""

    @property
    def metageneration(self) -> int:
        """Of what is said about it."""
        ...


def check_write(there: GcsObject | None, preconditions: Preconditions) -> None:
    """Refuse a change with 412 where ``there`` is; ``None`` is nothing."""
    if _changed(there, preconditions) or _unchanged(there, preconditions):
        raise _unmet()


def check_read(there: GcsObject, preconditions: Preconditions) -> None:
    """Refuse a read: 412 if something else was expected, 304 if nothing is new."""
    if _changed(there, preconditions):
        raise _unmet()
    if _unchanged(there, preconditions):
        raise refuse("notModified")


def check_metageneration(
    there: Versioned, preconditions: Preconditions, reading: bool = False
) -> None:
    """Refuse a request about a folder or bucket, as the checks of objects do."""
    match, not_match = preconditions[2:]
    if match is not None and match != there.metageneration:
        raise _unmet()
    if not_match == there.metageneration:
        raise refuse("notModified") if reading else _unmet()


def _unmet() -> GcsRefusal:
    return refuse("conditionNotMet", location_type="header", location="If-Match")


def _changed(there: GcsObject | None, preconditions: Preconditions) -> bool:
    """Whether it is not what was expected."""
    generation, _, metageneration, _ = preconditions
    if generation is not None and generation != (0 if there is None else there.generation):
        return True
    return metageneration is not None and (there is None or metageneration != there.metageneration)


def _unchanged(there: GcsObject | None, preconditions: Preconditions) -> bool:
    """Whether it is what was not expected; where nothing is, nothing can differ (documented)."""
    _, generation, _, metageneration = preconditions
    if generation is None and metageneration is None:
        return False
    if there is None:
        return True
    return generation == there.generation or metageneration == there.metageneration

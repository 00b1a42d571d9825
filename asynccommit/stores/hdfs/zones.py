"""Borders that a rename on HDFS cannot cross: encryption zones and quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from asynccommit.errors import RejectedError, StoreError

_UNLIMITED = 1 << 62
_ZONE = "encryption zone"


class QuotaUse(NamedTuple):
    """The quotas of a directory, and what is used of them.

    Attributes:
        names: maximum number of files and directories; negative or huge for none.
        named: those that are there, the directory itself included.
        space: maximum number of bytes of all replicas; negative or huge for none.
        spent: those that are used.
    """

    names: int
    named: int
    space: int
    spent: int


def not_common(path: str, place: str) -> Iterator[str]:
    """Yield ``place`` and what is above it and not above ``path``."""
    while place and place != "/" and not f"{path}/".startswith(f"{place}/"):
        yield place
        place = place.rpartition("/")[0]


def refuse_used_up(place: str, use: QuotaUse) -> None:
    """Raise ``RejectedError`` if nothing more fits into a directory."""
    if 0 <= use.names < _UNLIMITED and use.named >= use.names:
        text = f"the quota of {use.names} names is used up: raise it with hdfs dfsadmin -setQuota"
        raise RejectedError("rename", place, text)
    if 0 <= use.space < _UNLIMITED and use.spent >= use.space:
        text = f"the quota of {use.space} bytes is used up: raise it with hdfs dfsadmin"
        raise RejectedError("rename", place, f"{text} -setSpaceQuota")


def about_zone(place: str, error: StoreError) -> StoreError:
    """Return the error for a place to which a rename was refused."""
    if _ZONE in error.detail:
        text = (
            "of another encryption zone than the table: no file can be renamed there. Write it to "
            f"a place in the zone of the table ({error.detail})"
        )
        return RejectedError("rename", place, text)
    return RejectedError("rename", place, error.detail)

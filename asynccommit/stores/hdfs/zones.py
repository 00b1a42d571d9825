"""Borders that a rename on HDFS cannot cross, and the quotas there."""

from __future__ import annotations

from asynccommit.errors import RejectedError, StoreError
from asynccommit.stores.base import QuotaUse

_UNLIMITED = 1 << 62
_ZONE = "encryption zone"


def quota_use(names: int, named: int, space: int, spent: int) -> QuotaUse:
    """Return quotas and their use; no quota is a negative or a huge number."""
    return QuotaUse(_limit(names), named, _limit(space), spent)


def _limit(quota: int) -> int | None:
    return quota if 0 <= quota < _UNLIMITED else None


def about_zone(place: str, error: StoreError) -> StoreError:
    """Return the error for a place to which a rename was refused."""
    if _ZONE in error.detail:
        text = (
            "of another encryption zone than the table: no file can be renamed there. Write it to "
            f"a place in the zone of the table ({error.detail})"
        )
        return RejectedError("rename", place, text)
    return RejectedError("rename", place, error.detail)

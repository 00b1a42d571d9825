"""When a file was made: what tells it from one that was given its number later."""

from __future__ import annotations

import os

from asynccommit.stores.local.statx import BIRTH, statx

_SECOND = 1_000_000_000


def made_at(path: str) -> int:
    """Return when a file was made, in nanoseconds since the epoch, or 0."""
    if statx is None:  # macOS knows it all the same
        return int(getattr(os.lstat(path), "st_birthtime", 0) * _SECOND)
    told = statx(path, BIRTH)
    if told is None or not told.known & BIRTH:
        return 0
    return told.born * _SECOND + told.nanoseconds

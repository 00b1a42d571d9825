"""Compute which files of a sink log are read, compacted and expired.

The rules are those of ``CompactibleFileStreamLog`` of Spark 4.3: with an interval of 3 the batches
2, 5, 8, ... are compact files, which hold all entries before them. A reader takes the newest
compact file and all batches after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isqrt

COMPACT = ".compact"
"""Suffix of the name of a compact file."""
MAX_BATCH = 2**31 - 2
"""The last batch: Spark computes compact files in 32 bits."""

_NAME = re.compile(r"(0|[1-9][0-9]{0,18})(\.compact)?", re.ASCII).fullmatch
_LIKE = re.compile(r"[+-]?\d+(\.compact)?").fullmatch


def batch_of(name: str) -> tuple[int, bool] | None:
    """Return the batch of a log file, and whether the file is compact.

    ``None`` for a name that Spark ignores, and for one that it would parse as a number but never
    writes: see ``is_strange``.
    """
    found = _NAME(name)
    if found is None or int(found[1]) > MAX_BATCH:
        return None
    return int(found[1]), found[2] is not None


def is_strange(name: str) -> bool:
    """Return whether Spark would read a name as a batch but never writes it."""
    return batch_of(name) is None and _LIKE(name) is not None


def file_name(batch: int, interval: int) -> str:
    """Return the only valid file name of a batch."""
    return f"{batch}{COMPACT}" if is_compaction(batch, interval) else str(batch)


def is_compaction(batch: int, interval: int) -> bool:
    """Return whether a batch is a compact file."""
    return (batch + 1) % interval == 0


def before_compaction(batch: int, interval: int) -> range:
    """Return the batches whose entries a compact file repeats."""
    return range(max(0, batch - interval), batch)


def to_read(newest: int, interval: int) -> range:
    """Return the batches whose files hold all entries up to ``newest``."""
    return range(max(0, (newest + 1) // interval * interval - 1), newest + 1)


def expired_below(batch: int, interval: int, keep: int) -> int | None:
    """Return the compact file below which files may expire, given ``batch``.

    Args:
        batch: the newest batch.
        interval: batches between compact files.
        keep: minimum number of batches to keep.

    Returns ``None`` if no file may expire.
    """
    first = batch + 1 - keep
    return first - first % interval - 1 if interval <= first else None


def derive_interval(default: int, compacts: Iterable[int]) -> int:
    """Return the interval of a log.

    Args:
        default: configured interval.
        compacts: batches that have compact files.

    With two or more compact files it is the distance of the newest two, whatever is configured.
    With one, it is a divisor of its position, close to the configured value.
    """
    newest = sorted(compacts, reverse=True)[:2]
    if not newest:
        return default
    return newest[0] - newest[1] if len(newest) == 2 else _near(default, newest[0] + 1)


def _near(default: int, place: int) -> int:
    if place <= default or default >= place // 2:
        return place
    small = [number for number in range(1, isqrt(place) + 1) if place % number == 0]
    return min(n for one in small for n in (one, place // one) if n >= default)

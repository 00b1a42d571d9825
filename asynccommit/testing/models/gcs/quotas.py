"""Model the request quotas of a bucket, and their growth under load.

Sources: https://cloud.google.com/storage/docs/request-rate and
https://cloud.google.com/storage/quotas. Behaviour that is not documented there is marked
*inferred*.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

from asynccommit.testing.models.gcs.refusals import refuse


class Quotas(NamedTuple):
    """The quotas of one bucket; ``None`` means no limit.

    Attributes:
        writes: initial number of objects that may be written, updated or deleted per second.
        reads: initial number of objects that may be read, and of listings, per second.
        doubling: seconds in which a rate under load doubles; 0 for constant rates.
        burst: seconds' worth of requests that may come at once after a pause (inferred).
        name_interval: minimum seconds between changes of one object name.
        name_burst: changes of one name that may come at once after a pause (inferred: an object can
            be moved or deleted immediately after it was written).
    """

    writes: float | None = None
    reads: float | None = None
    doubling: float = 0.0
    burst: float = 0.1
    name_interval: float | None = None
    name_burst: float = 2.0


NO_QUOTAS = Quotas()
FLAT = Quotas(1000.0, 5000.0, 1200.0, name_interval=1.0)
"""The documented quotas of a bucket: 1,000 writes and 5,000 reads, doubling in 20 minutes."""
HIERARCHICAL = Quotas(8000.0, 40_000.0, 1200.0, name_interval=1.0)
"""The documented quotas with a hierarchical namespace: eight times the initial rates."""

READS = frozenset({"get", "read", "list", "layout"})
"""The operations that count as reads."""
WRITES = frozenset(
    {
        *("insert", "patch", "delete", "rewrite", "move", "compose", "upload"),
        *("folder", "rename_folder"),
    }
)
"""The operations that count as writes."""

_WINDOW = 1.0  # seconds over which a rate is measured
_USED = 0.5  # share of a rate that counts as load (inferred)
_MANY_NAMES = 10_000


class Meter:
    """The remaining quotas of one bucket at one moment.

    Args:
        quotas: quotas of the bucket.
        bucket: name of the bucket, for messages.
    """

    def __init__(self, quotas: Quotas, bucket: str) -> None:
        self._quotas = quotas
        self._bucket = bucket
        self._writes = None if quotas.writes is None else _Gate(quotas.writes, quotas)
        self._reads = None if quotas.reads is None else _Gate(quotas.reads, quotas)
        self._names: dict[str, tuple[float, float]] = {}
        self._prune_at = _MANY_NAMES

    def check(self, op: str, names: tuple[str, ...], now: float) -> None:
        """Count one request. Rejected with 429 if it exceeds a quota.

        Args:
            op: operation of ``READS`` or ``WRITES``; others have no quota.
            names: objects that the request changes.
            now: time in seconds.
        """
        gate = self._gate(op)
        if gate is None and op not in WRITES:
            return
        interval = self._quotas.name_interval
        levels = [] if interval is None else [self._level(name, interval, now) for name in names]
        for name, level in zip(names, levels, strict=False):
            if level < 1:
                raise refuse("rateLimitExceeded", _hot(self._bucket, name))
        if gate is not None and not gate.take(now):
            raise refuse("rateLimitExceeded")
        for name, level in zip(names, levels, strict=False):
            self._names[name] = (level - 1, now)
        if interval is not None and len(self._names) > self._prune_at:
            self._prune(interval, now)

    def rate(self, op: str) -> float | None:
        """Return the present rate of requests like ``op`` per second."""
        gate = self._gate(op)
        return None if gate is None else gate.rate

    def copy(self) -> Meter:
        """Return an independent copy in the same state."""
        made = copy.copy(self)
        made._writes, made._reads = copy.copy(self._writes), copy.copy(self._reads)
        made._names = dict(self._names)
        return made

    def _gate(self, op: str) -> _Gate | None:
        if op in WRITES:
            return self._writes
        return self._reads if op in READS else None

    def _level(self, name: str, interval: float, now: float) -> float:
        """Return how many changes of a name are allowed now."""
        most = self._quotas.name_burst
        level, last = self._names.get(name, (most, now))
        return min(most, level + (now - last) / interval)

    def _prune(self, interval: float, now: float) -> None:
        """Forget names that were not changed recently."""
        most = self._quotas.name_burst
        self._names = {
            name: (level, last)
            for name, (level, last) in self._names.items()
            if level + (now - last) / interval < most
        }
        self._prune_at = max(_MANY_NAMES, 2 * len(self._names))


class _Gate:
    """A rate limit that grows under load."""

    __slots__ = ("_busy", "_count", "_doubling", "_last", "_level", "_seconds", "_since", "_start")

    def __init__(self, start: float, quotas: Quotas) -> None:
        self._start = start
        self._seconds = quotas.burst
        self._doubling = quotas.doubling
        self._level: float | None = None
        self._last = 0.0
        self._busy = 0.0
        self._since = 0.0
        self._count = 0

    @property
    def rate(self) -> float:
        """Requests a second."""
        if not self._doubling:
            return self._start
        grown: float = 2.0 ** (self._busy / self._doubling)
        return self._start * grown

    def take(self, now: float) -> bool:
        """Take one request; return whether the limit allows it."""
        rate = self.rate
        most = max(1.0, rate * self._seconds)
        if self._level is None:
            self._level, self._last, self._since = most, now, now
        self._level = min(most, self._level + (now - self._last) * rate)
        self._last = now
        self._grow(rate, now)
        if self._level < 1:
            return False
        self._level -= 1
        return True

    def _grow(self, rate: float, now: float) -> None:
        """Count a request, rejected or not, by which the limit grows (inferred)."""
        seconds = now - self._since
        if seconds >= _WINDOW:
            if self._count >= seconds * rate * _USED:
                self._busy += seconds
            self._since, self._count = now, 0
        self._count += 1


def _hot(bucket: str, name: str) -> str:
    return (
        f"The object {bucket}/{name} exceeded the rate limit for object mutation operations "
        "(create, update, and delete). Please reduce your request rate. "
        "See https://cloud.google.com/storage/docs/gcs429."
    )

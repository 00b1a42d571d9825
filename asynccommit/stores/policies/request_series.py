"""A record of requests over time, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable

MAX_BUCKETS = 600
"""Number of buckets; once they are full each two become one of twice the width."""

FINEST = 0.1
"""Width of a bucket at first, in seconds."""

_BINS = 128
_FINE = 8  # bins of one microsecond each, below which two bins could not be told apart


class RequestSeries:
    """Requests sent and refused over time, the rate allowed, and latencies.

    Args:
        clock: a monotonic clock in seconds.
        limit: returns the rate that requests are sent at most; ``None`` or 0 if there is none.

    Attributes:
        began: the begin of the record, by the clock.
        width: seconds of one bucket.
        sent: requests that ended, by bucket; every attempt counts.
        refused: requests that the store refused for their rate, by bucket.
        limits: the rate at the begin of each bucket; 0 without a limit.
    """

    def __init__(self, clock: Callable[[], float], limit: Callable[[], float | None]) -> None:
        self._clock = clock
        self._limit = limit
        self.restart()

    def restart(self) -> None:
        """Forget what was recorded, and begin now."""
        self.began = self._clock()
        self.width = FINEST
        self.sent: list[int] = []
        self.refused: list[int] = []
        self.limits: list[float] = []
        self._latency: dict[str, list[int]] = {}
        self._until = -math.inf  # the end of the last bucket

    def note(self, method: str, seconds: float, count: int = 1, refused: int = 0) -> None:
        """Record requests that have ended now.

        Args:
            method: the store method.
            seconds: the duration of each.
            count: their number.
            refused: number of those that were refused.
        """
        now = self._clock()
        bucket = len(self.sent) - 1 if now < self._until else self._bucket(now)
        self.sent[bucket] += count
        self.refused[bucket] += refused
        bins = self._latency.get(method)
        if bins is None:
            bins = self._latency[method] = [0] * _BINS
        bins[bin_of(seconds)] += count

    def _bucket(self, now: float) -> int:
        """Return the number of the bucket of ``now``; make missing ones."""
        bucket = int((now - self.began) / self.width)
        while bucket >= MAX_BUCKETS:
            self._halve()
            bucket = int((now - self.began) / self.width)
        if (missing := bucket + 1 - len(self.sent)) > 0:
            rate = self._limit() or 0.0
            self.limits += [rate if math.isfinite(rate) else 0.0] * missing
            self.sent += [0] * missing
            self.refused += [0] * missing
        self._until = self.began + (bucket + 1) * self.width
        return bucket

    def _halve(self) -> None:
        self.width *= 2
        self.sent = _pairs(self.sent)
        self.refused = _pairs(self.refused)
        self.limits = self.limits[::2]

    def latencies(self) -> dict[str, list[tuple[float, int]]]:
        """Return by store method the upper bounds in seconds with their counts.

        A bound is at most a quarter above the latencies that it counts.
        """
        return {
            method: [(upper_bound(index), count) for index, count in enumerate(bins) if count]
            for method, bins in self._latency.items()
        }


def bin_of(seconds: float) -> int:
    """Return the number of the bin of a duration: four bins an octave."""
    micros = max(0, int(seconds * 1e6))
    if micros < _FINE:
        return micros
    octave = micros.bit_length() - 3
    return min(_FINE + 4 * (octave - 1) + ((micros >> octave) & 3), _BINS - 1)


def upper_bound(index: int) -> float:
    """Return the seconds that the durations of a bin are below."""
    if index < _FINE:
        return (index + 1) / 1e6
    octave, quarter = divmod(index - _FINE, 4)
    return ((5 + quarter) << (octave + 1)) / 1e6


def _pairs(counts: list[int]) -> list[int]:
    return [sum(counts[at : at + 2]) for at in range(0, len(counts), 2)]

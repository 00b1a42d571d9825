"""Limit the growth of the request rate of a bucket: Google's rule.

A bucket takes about 1,000 writes and 5,000 reads a second at first. A client that needs more must
start near these rates, take at least twenty minutes for every doubling, and pause while errors
increase: https://cloud.google.com/storage/docs/request-rate. So the ceiling of each of the two
kinds is

    start * 2 ** (used / doubling)

where ``used`` are the seconds in which the bucket could observe the load:

* A second counts if at least half of the ceiling was let go in it. So the ceiling is at most twice
  the rate that was really used, and it grows by at most one doubling at a time. Half, not all:
  several processes on one bucket each have its whole ceiling and a part of the rate, and theirs
  grow together, at the pace of the bucket.
* A second in which the rate had to fall does not count: that is the pause which Google asks for.
* After half an hour of less, ``used`` runs back as fast as it grew. According to Google a bucket
  keeps its grown capacity for days. But the part that was given to others meanwhile is unknown, and
  a start that is too low costs minutes, while one that is too high costs refusals.

``Pace`` works below the ceiling as it does anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from asynccommit.stores.base import Ramp

_WINDOW = 1.0  # seconds that are looked at together
_REST = 1800.0  # seconds of less after which the ceiling falls
_USED = 0.5  # share of the ceiling


class RampState:
    """The current limit of the ramp for one kind of requests.

    Attributes:
        start: requests a second at the beginning; infinite for no ramp.
        doubling: minimum number of seconds for a doubling.
        used: seconds in which the rate was used, minus long pauses.
    """

    __slots__ = ("_idle", "_paused", "_sent", "_since", "doubling", "start", "used")

    def __init__(self) -> None:
        self.start = math.inf
        self.doubling = math.inf
        self.used = 0.0
        self._sent = 0
        self._since = -math.inf
        self._idle = 0.0
        self._paused = False

    def __repr__(self) -> str:
        return f"Growth({self.ceiling:.0f}/s)"

    @property
    def ceiling(self) -> float:
        """Requests a second that may be sent."""
        return self.start * math.exp2(self.used / self.doubling)

    def count(self, requests: int, now: float) -> bool:
        """Count sent requests; return whether the ceiling may have changed."""
        self._sent += requests
        if now - self._since < _WINDOW:
            return False
        if self._since > -math.inf:
            self._judge(now - self._since)
        self._since, self._sent, self._paused = now, 0, False
        return True

    def pause(self) -> None:
        """Let the second that runs not count."""
        self._paused = True

    def _judge(self, seconds: float) -> None:
        if self._sent >= _USED * self.ceiling * seconds:
            self._idle = 0.0
            if not self._paused:
                self.used += seconds
            return
        self._idle += seconds
        self.used = max(0.0, self.used - max(0.0, min(seconds, self._idle - _REST)))


class Growths:
    """Those of one bucket, kept as long as the event loop: jobs come and go."""

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.reads = RampState()
        self.writes = RampState()

    def __repr__(self) -> str:
        return f"Growths({self.reads!r}, {self.writes!r})"

    def allow(self, ramp: Ramp) -> None:
        """Hold this ramp from now on."""
        self.reads.start, self.writes.start = ramp.reads, ramp.writes
        self.reads.doubling = self.writes.doubling = ramp.doubling


def lowest(ramps: Iterable[Ramp | None]) -> Ramp | None:
    """Return the most careful of these in every respect, if there is any."""
    found = [ramp for ramp in ramps if ramp is not None]
    if not found:
        return None
    reads, writes, doublings = zip(*found, strict=True)
    return Ramp(min(reads), min(writes), max(doublings))

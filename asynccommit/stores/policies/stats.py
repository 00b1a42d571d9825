"""Count the requests of each kind, their durations and their failures."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asynccommit.errors import StoreError
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.request_series import RequestSeries
from asynccommit.stores.policies.retry_budget import is_throttled

BULK = {"rename_many": "rename", "list_many": "list"}
"""Calls for many, and the method that each of their requests counts as."""


@dataclass(slots=True)
class Count:
    """The counts of the calls of one store method.

    Attributes:
        n: calls that ended, with or without an error.
        failures: calls that raised.
        waits: failures that were refused for the rate of requests.
        seconds: their total duration.
        longest: the longest duration of a call.
    """

    n: int = 0
    failures: int = 0
    waits: int = 0
    seconds: float = 0.0
    longest: float = 0.0


class Stats:
    """A policy that counts calls by method in ``counts``.

    A bulk rename counts each file, and a bulk listing each directory that was listed.

    Two of them make a stack readable: ``asked`` outermost, with all waiting included, and ``sent``
    innermost, which are the requests that cost money.

    Args:
        name: the name of this policy in the stack: ``asked`` or ``sent``.
        clock: measures durations.
        series: takes each call, if its course over time is recorded.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        series: RequestSeries | None = None,
    ) -> None:
        self.name = name
        self.series = series
        self.clock = clock
        self.counts: dict[str, Count] = defaultdict(Count)

    def __repr__(self) -> str:
        return f"Stats({self.name!r})"

    @property
    def n(self) -> int:
        """All calls that ended."""
        return sum(count.n for count in self.counts.values())

    @property
    def waits(self) -> int:
        """All calls that were refused for the rate of requests."""
        return sum(count.waits for count in self.counts.values())

    def around(self, call: Call) -> Call:
        clock = self.clock

        async def counted(op: Op) -> Any:
            if op.name in BULK:
                return await self._each(call, op)
            start = clock() if op.first is None else op.first.asked
            try:
                answer = await call(op)
            except BaseException as error:
                self.failed(op.name, start, error)
                raise
            self.ended(op.name, start)
            return answer

        return counted

    def ended(self, name: str, start: float, *, refused: bool = False) -> None:
        """Count a call that ends now and began at ``start``."""
        seconds, count = self.clock() - start, self.counts[name]
        count.n += 1
        count.seconds += seconds
        if seconds > count.longest:
            count.longest = seconds
        if self.series is not None:
            self.series.note(name, seconds, refused=refused)

    def failed(self, name: str, start: float, error: BaseException) -> None:
        """Count a call that failed, as ``ended`` does."""
        refused = isinstance(error, StoreError) and is_throttled(error)
        count = self.counts[name]
        count.failures += 1
        count.waits += refused
        self.ended(name, start, refused=refused)

    async def _each(self, call: Call, op: Op) -> Any:
        """Count each request of a call for many, with its share of the time."""
        name = BULK[op.name]
        start, count = self.clock(), self.counts[name]
        done, failures = 0, 1
        try:
            answer = await call(op)
            done, error = done_of(op, answer), answer[1] if name == "rename" else None
            failures = error is not None
            count.waits += error is not None and is_throttled(error)
        finally:
            seconds, tried = self.clock() - start, done + failures
            count.n += tried
            count.failures += failures
            count.seconds += seconds
            count.longest = max(count.longest, seconds / max(1, tried))
            if self.series is not None:
                self.series.note(name, seconds / max(1, tried), tried)
        return answer


def done_of(op: Op, answer: Any) -> int:
    """Return how many requests of a call for many were done."""
    return answer[0] if op.name == "rename_many" else sum(page is not None for page in answer)

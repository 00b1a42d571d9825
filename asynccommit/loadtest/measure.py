"""Policies that time the requests of a load test and bound their number."""

from __future__ import annotations

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from asynccommit.errors import RejectedError, StoreError
from asynccommit.loadtest.report import RequestTimes
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.retry_budget import is_throttled
from asynccommit.stores.policies.stats import BULK, done_of

_TOLD = 0.1  # seconds between two calls of on_request


class BudgetSpentError(RejectedError):
    """Raised in the place of a request that a load test may not send any more."""


class MethodTimes:
    """The times of the requests of one method."""

    __slots__ = ("failed", "refused", "seconds")

    def __init__(self) -> None:
        self.seconds = array("d")
        self.refused = self.failed = 0

    def figures(self) -> RequestTimes:
        """Return the percentiles."""
        seconds = sorted(self.seconds)
        sent = len(seconds) + self.refused + self.failed
        if not seconds:
            return RequestTimes(sent, self.refused, self.failed)
        p50, p90, p99 = (seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.9, 0.99))
        return RequestTimes(sent, self.refused, self.failed, p50, p90, p99, seconds[-1])


class Timings:
    """A policy that keeps the time of each request, by method.

    Each file of a ``rename_many`` counts as a ``rename`` with its share of the time, and each page
    of a ``list_many`` as a ``list``.
    """

    def __init__(self) -> None:
        self.methods: dict[str, MethodTimes] = defaultdict(MethodTimes)

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        methods = self.methods
        clock = asyncio.get_running_loop().time

        async def timed(op: Op) -> Any:
            times, begin = methods[BULK.get(op.name, op.name)], clock()
            try:
                answer = await call(op)
            except StoreError as error:
                times.refused += is_throttled(error)
                times.failed += not is_throttled(error)
                raise
            count = done_of(op, answer) if op.name in BULK else 1
            if count:
                times.seconds.extend([(clock() - begin) / count] * count)
            return answer

        return timed


class RequestBudget:
    """A policy that bounds the number of requests, each file of a batch counted as one.

    Args:
        store: the store, whose traits say what its calls cost.

    Attributes:
        most: maximum number of requests; ``None`` for no limit.
        on_request: called a few times a second with the number of requests sent.
        sent: number of requests sent.
        is_spent: whether a request was not sent for the limit.
    """

    def __init__(self, store: Store) -> None:
        self.most: int | None = None
        self.on_request: Callable[[int], object] | None = None
        self.sent = 0
        self.is_spent = False
        self._store = store
        self._told = 0.0

    def lift(self) -> None:
        """Allow any number of requests from now on."""
        self.most = None

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        clock = asyncio.get_running_loop().time

        async def counted(op: Op) -> Any:
            cost = self._cost(op)
            if self.most is not None and self.sent + cost > self.most:
                self.is_spent = True
                raise BudgetSpentError(op.name, op.path, "not sent: max_requests is reached")
            self.sent += cost
            now = clock()
            if self.on_request is not None and now >= self._told + _TOLD:
                self._told = now
                self.on_request(self.sent)
            return await call(op)

        return counted

    def _cost(self, op: Op) -> int:
        if op.name == "delete_many":  # each file counts, and the batch
            return op.size + (op.size > 1)
        if op.name in ("rename_many", "list_many"):
            return op.size
        traits = self._store.traits
        # Where files imply their directories, both are asked for at the same time.
        least = 2 if op.name in ("head", "list") and not traits.directories else 1
        return max(least, traits.costs.get(op.name, 1))

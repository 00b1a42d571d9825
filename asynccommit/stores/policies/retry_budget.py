"""Wait before a request is sent again, and bound the share of retries.

A store in trouble is not helped by clients that ask it twice. So repetitions are limited by a
budget, which all stores on one account share: a tenth of the first attempts.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError
from asynccommit.redact import redact
from asynccommit.stores.policies.shared import shared

SHARE = 0.1
RESERVE = 10.0
TRICKLE = 1.0  # a second, or the last request of all would wait for ever

_MOST = 100.0
_REASON = 80  # characters
_POLL = (0.05, 0.5)  # seconds between two looks at an empty budget


def is_throttled(error: StoreError) -> bool:
    """Return whether the store refused for the rate, or reported being busy."""
    return isinstance(error, ThrottledError) or (
        isinstance(error, OutcomeUnknownError) and error.busy
    )


def reason_of(error: StoreError) -> str:
    """Return in a few words why a request waits."""
    if is_throttled(error):
        return "the store limits the rate"
    reason = " ".join(redact(error.detail).split()) or type(error).__name__
    return reason if len(reason) <= _REASON else f"{reason[:_REASON]}..."


class Budget:
    """A retry allowance: ``RESERVE``, ``SHARE`` of first attempts, and ``TRICKLE`` per second.

    At most a hundred are saved up.
    """

    __slots__ = ("__weakref__", "_at", "left")

    def __init__(self) -> None:
        self.left = RESERVE
        self._at: float | None = None

    def __repr__(self) -> str:
        return f"Budget({self.left:.1f})"

    def earn(self, requests: int = 1) -> None:
        """Count requests that are sent for the first time."""
        self.left += SHARE * requests

    def spend(self, now: float) -> bool:
        """Take leave to send something again at the time ``now``, if there is any."""
        if self._at is not None:
            self.left += max(0.0, now - self._at) * TRICKLE
        self._at = now
        self.left = min(self.left, _MOST)
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Backoff:
    """Wait before retries, and add up the waits by reason in ``waited``.

    ``waiting`` has the number of requests that wait now, by the error that they wait for.

    The wait is drawn evenly from nothing to ``base`` doubled with each sending, at most ``cap``
    seconds, upon what the store asked for. Then it waits further until there is budget. What was
    refused for the rate of requests needs none: the limiter holds it back.

    Args:
        rng: where the waits are drawn from.
        account: whose budget it is; empty for one of its own.
        deadline: seconds after which nothing is sent again.
        base: bound of the first wait, in seconds.
        cap: bound of every wait that the store did not ask for, in seconds.
        sleep: how to wait.
        clock: what time is measured with; ``None`` for the running loop's.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        account: str = "",
        deadline: float = 600.0,
        base: float = 0.1,
        cap: float = 20.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.deadline = deadline
        self.waited = {"backoff": 0.0, "retry-after": 0.0, "budget": 0.0}
        self.waiting: Counter[str] = Counter()
        self._rng = rng
        self._account = account
        self._base = base
        self._cap = cap
        self._sleep = sleep
        self._budget: Budget | None = None
        self.now: Callable[[], float] = clock or self._first_now

    def begin(self) -> float:
        """Count a request that is sent for the first time; returns the time."""
        budget = self._budget or self._join()
        budget.left += SHARE  # as earn does, for each and every request
        return self.now()

    async def wait(self, error: StoreError, sent: int, start: float) -> bool:
        """Wait until a request sent ``sent`` times may be sent again.

        Returns false if it may not, because of the deadline, and then has not waited for it.
        """
        asked = (error.retry_after or 0.0) if isinstance(error, ThrottledError) else 0.0
        drawn = self._rng.uniform(0, min(self._cap, self._base * 2 ** min(sent - 1, 30)))
        if self.now() - start + asked + drawn > self.deadline:
            return False
        with self._noted(error):
            self.waited["retry-after"] += asked
            self.waited["backoff"] += drawn
            await self._sleep(asked + drawn)
            return await self._affords(error, start)

    async def _affords(self, error: StoreError, start: float) -> bool:
        """Wait until there is budget for a retry; return false at the deadline."""
        budget = self._budget or self._join()
        while not (is_throttled(error) or budget.spend(self.now())):
            pause = self._rng.uniform(*_POLL)
            if self.now() - start + pause > self.deadline:
                return False
            self.waited["budget"] += pause
            await self._sleep(pause)
        return True

    @contextmanager
    def _noted(self, error: StoreError) -> Iterator[None]:
        reason = reason_of(error)
        self.waiting[reason] += 1
        try:
            yield
        finally:
            self.waiting[reason] -= 1
            if not self.waiting[reason]:
                del self.waiting[reason]

    def _first_now(self) -> float:
        self.now = asyncio.get_running_loop().time
        return self.now()

    def _join(self) -> Budget:
        self._budget = shared(Budget, self._account, Budget)
        return self._budget

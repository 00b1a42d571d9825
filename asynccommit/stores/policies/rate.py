"""A bound on the requests sent in a second."""

from __future__ import annotations

from typing import Any

from aiolimiter import AsyncLimiter

from asynccommit.stores.policies.funnel import Call, Op

_BURST = 0.1  # seconds' worth of requests that may leave at once after a pause


class Throttle:
    """Send at most ``rate`` attempts per second; ``None`` for no limit.

    After a pause at most a tenth of a second's worth, and at least one request, leaves at once.
    Each file of a call that is about many counts as a request.
    One loop only, as the limiter within.
    """

    def __init__(self, rate: float | None) -> None:
        if rate is not None and not rate > 0:
            raise ValueError(f"rate must be above 0, not {rate}")
        self._rate = rate

    @property
    def rate(self) -> float | None:
        """The maximum number of requests a second; ``None`` for no limit."""
        return self._rate

    def __repr__(self) -> str:
        return f"Throttle({self._rate})"

    def around(self, call: Call) -> Call:
        if self._rate is None:
            return call
        burst = max(1.0, self._rate * _BURST)
        limiter = AsyncLimiter(burst, burst / self._rate)

        async def throttled(op: Op) -> Any:
            for _ in range(op.size):
                await limiter.acquire()
            return await call(op)

        return throttled

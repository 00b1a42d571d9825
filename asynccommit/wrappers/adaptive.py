"""Asking an account as fast as it takes requests, and no faster."""

from __future__ import annotations

import asyncio
from typing import Any

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError
from asynccommit.store import Traits
from asynccommit.wrappers.base import Call, Op
from asynccommit.wrappers.limiter import DELETES, READS, WRITES, Ceilings, Limiter
from asynccommit.wrappers.shared import shared

_KINDS = {
    "head": READS,
    "list": READS,
    "get": READS,
    "delete": DELETES,
    "delete_tree": DELETES,
}


class Adaptive:
    """Send requests at the rate that their account takes, every attempt counted.

    One ``Limiter`` paces all stores that one event loop opened on an account (``Traits.account``).
    What counts as a refusal is ``ThrottledError``, and ``OutcomeUnknownError`` where the store was
    busy. ``waited`` has the seconds that requests of this store waited here, by reason: for the
    ``rate``, or in a pause that the store asked for (``retry-after``). ``refused`` counts refusals.

    A refusal that names a time delays its own request, in ``Retry``, and everybody's only if most
    requests are refused: an account at its limit answers some so all the time, and a pause at each
    would leave most of the limit unused.

    Args:
        traits: of the store: its account, and what its calls cost.
        ceilings: rates that are not exceeded; the lowest of all stores on the account holds.
    """

    def __init__(self, traits: Traits, ceilings: Ceilings | None = None) -> None:
        self.ceilings = ceilings or Ceilings()
        self.waited = {"rate": 0.0, "retry-after": 0.0}
        self.refused = 0
        self._traits = traits
        self._limiter: Limiter | None = None

    def __repr__(self) -> str:
        return f"Adaptive({self._traits.account!r}, {self.ceilings!r})"

    @property
    def rate(self) -> float:
        """Requests a second that the account is asked at now; 0 before the first."""
        return self._limiter.pace.rate if self._limiter else 0.0

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        costs = self._traits.costs

        async def paced(op: Op) -> Any:
            limiter = self._limiter or self._join()
            kind, cost = _KINDS.get(op.name, WRITES), costs.get(op.name, 1)
            if not limiter.take(kind, cost):
                await self._turn(limiter, kind, cost)
            epoch = limiter.epoch
            try:
                answer = await call(op)
            except StoreError as error:
                self._failed(limiter, epoch, error)
                raise
            if epoch == limiter.epoch:
                limiter.good += 1
            return answer

        return paced

    def _join(self) -> Limiter:
        loop = asyncio.get_running_loop()
        limiter = shared(Limiter, self._traits.account, lambda: Limiter(loop))
        limiter.join(self, self.ceilings)
        self._limiter = limiter
        return limiter

    async def _turn(self, limiter: Limiter, kind: int, cost: int) -> None:
        clock = asyncio.get_running_loop().time
        begin = clock()
        try:
            await limiter.wait(kind, cost)
        finally:
            end = clock()
            paused = limiter.paused(begin, end)
            self.waited["retry-after"] += paused
            self.waited["rate"] += end - begin - paused

    def _failed(self, limiter: Limiter, epoch: int, error: StoreError) -> None:
        if isinstance(error, ThrottledError):
            self.refused += 1
            limiter.refused(epoch, error.retry_after)
        elif isinstance(error, OutcomeUnknownError) and error.busy:
            self.refused += 1
            limiter.refused(epoch, None)
        elif epoch == limiter.epoch:
            limiter.good += 1  # An answer, though not the wished one.

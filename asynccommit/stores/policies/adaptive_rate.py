"""Send requests as fast as an account accepts them, and no faster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError
from asynccommit.redact import Redacted
from asynccommit.stores.base import Ramp, Traits
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.ramp_up import Growths
from asynccommit.stores.policies.rate_queue import DELETES, READS, WRITES, Ceilings, Limiter
from asynccommit.stores.policies.shared import kept, shared
from asynccommit.stores.policies.shared_quota import Quota

log = logging.getLogger(__name__)

_KINDS = {
    "head": READS,
    "list": READS,
    "list_tree": READS,
    "get": READS,
    "get_tagged": READS,
    "quotas": READS,
    "completed": READS,
    "list_uploads": READS,
    "list_parts": READS,
    "delete": DELETES,
    "delete_tree": DELETES,
    "abort_upload": DELETES,
}


class Adaptive:
    """A policy that sends requests at the rate that their account accepts.

    Every attempt is counted. One ``Limiter`` paces all stores that one event loop opened on an
    account (``Traits.account``). Where the account has a ramp (``Traits.ramp``), that is a ceiling
    for reads and one for all else; it may become known when the store has been asked first. What it
    has grown to is kept for the next store of the loop.

    A refusal is a ``ThrottledError``, or an ``OutcomeUnknownError`` if the store was busy.
    ``waited`` has the seconds that requests of this store waited here, by reason: for the ``rate``,
    or in a pause that the store asked for (``retry-after``). ``refused`` counts refusals.

    A refusal with a wait time delays its own request, in ``Retry``, and all requests only if most
    requests are refused: an account at its limit always refuses some requests, and a pause after
    each would leave most of the limit unused.

    Each file of a ``delete_many`` counts as one request with one response.

    Args:
        traits: of the store: its account, its ramp, and what its calls cost.
        ceilings: rates that are not exceeded; the lowest of all stores on the account holds.
        ramp: returns what the store has learned about the ramp; ``None`` for what ``traits`` says.
        costs: the same of what its calls cost.
        log_fields: the ``extra`` of log records.
        parts: number of processes of one job that share the account's rate.
    """

    def __init__(
        self,
        traits: Traits,
        ceilings: Ceilings | None = None,
        ramp: Callable[[], Ramp | None] | None = None,
        costs: Callable[[], Mapping[str, int]] | None = None,
        *,
        log_fields: Mapping[str, str] | None = None,
        parts: int = 1,
    ) -> None:
        self._parts = parts
        self.ceilings = ceilings or Ceilings()
        self.waited = {"rate": 0.0, "retry-after": 0.0}
        self.refused = 0
        self._log_fields = log_fields
        self._traits = traits
        self._ask_ramp = ramp or (lambda: traits.ramp)
        self._ask_costs = costs or (lambda: traits.costs)
        self._costs = traits.costs
        self._ramp: Ramp | None = None
        self._limiter: Limiter | None = None

    def __repr__(self) -> str:
        return f"Adaptive({self._traits.account!r}, {self.ceilings!r})"

    @property
    def rate(self) -> float:
        """Requests a second that the account is asked at now; 0 before the first.

        Infinite for a service that has no limit. Where it counts reads apart, the rate of all else.
        """
        return self._limiter.quotas[WRITES].pace.rate if self._limiter else 0.0

    def take(self, op: Op) -> Quota | None:
        """Return the quota of a request that may go at once, and has paid.

        A failure of that request goes to ``failed``, for the quota's epoch of this moment.
        """
        limiter = self._limiter or self._join()
        kind = _KINDS.get(op.name, WRITES)
        if limiter.take(kind, self._costs.get(op.name, 1)):
            return limiter.quotas[kind]
        return None

    def around(self, call: Call) -> Call:
        async def paced(op: Op) -> Any:
            limiter = self._limiter or self._join()
            if op.name == "delete_many":
                return await self._many(limiter, call, op)
            kind, cost = _KINDS.get(op.name, WRITES), self._costs.get(op.name, 1)
            if not limiter.take(kind, cost):
                await self._turn(limiter, kind, cost)
            quota = limiter.quotas[kind]
            epoch = quota.epoch
            try:
                answer = await call(op)
            except StoreError as error:
                self.failed(quota, epoch, 1, error)
                raise
            if epoch == quota.epoch:
                quota.good += 1
            return answer

        return paced

    async def _many(self, limiter: Limiter, call: Call, op: Op) -> Any:
        cost = max(1, op.size)
        if not limiter.take(DELETES, cost):
            await self._turn(limiter, DELETES, cost)
        quota = limiter.quotas[DELETES]
        epoch = quota.epoch
        try:
            answers: Sequence[StoreError | None] = await call(op)
        except StoreError as error:
            self.failed(quota, epoch, cost, error)
            raise
        failed = [one for one in answers if one is not None]
        if epoch == quota.epoch:
            quota.good += len(answers) - len(failed)
        for one in failed:
            self.failed(quota, epoch, 1, one)
        return answers

    def _join(self) -> Limiter:
        loop = asyncio.get_running_loop()
        name, self._ramp = self._traits.account, self._ask_ramp()
        unlimited, parts = self._traits.unlimited, self._parts
        limiter = shared(
            Limiter,
            name,
            lambda: Limiter(loop, kept(Growths, name, Growths), unlimited=unlimited, parts=parts),
        )
        limiter.join(self, self.ceilings, self._ramp)
        self._limiter = limiter
        return limiter

    async def _turn(self, limiter: Limiter, kind: int, cost: int) -> None:
        clock = asyncio.get_running_loop().time
        begin = clock()
        self._learn(limiter)
        try:
            await limiter.wait(kind, cost)
        finally:
            end = clock()
            paused = limiter.quotas[kind].paused(begin, end)
            self.waited["retry-after"] += paused
            self.waited["rate"] += end - begin - paused
            self._learn(limiter)

    def _learn(self, limiter: Limiter) -> None:
        """Ask the store for what it has learned; this affects isolated requests."""
        self._costs = self._ask_costs()
        ramp = self._ask_ramp()
        if ramp is not self._ramp:
            self._ramp = ramp
            limiter.join(self, self.ceilings, ramp)

    def failed(self, quota: Quota, epoch: int, count: int, error: StoreError) -> None:
        """Note an error that answers ``count`` requests."""
        after = None
        if isinstance(error, ThrottledError):
            after = error.retry_after
        elif not (isinstance(error, OutcomeUnknownError) and error.busy):
            if epoch == quota.epoch:
                quota.good += count  # An answer, though not the wished one.
            return
        facts = self._traits.account, count, Redacted(error)
        log.debug("%s refused %d requests: %s", *facts, extra=self._log_fields)
        self.refused += count
        quota.refused(epoch, count, after, asyncio.get_running_loop().time())

"""The request queue of an account, emptied evenly at its rates."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from functools import reduce
from typing import Annotated
from weakref import WeakKeyDictionary

from asynccommit.options.checked import Within, check_fields
from asynccommit.stores.base import Ramp
from asynccommit.stores.policies.ramp_up import Growths, lowest
from asynccommit.stores.policies.shared_quota import Quota, TokenBucket

READS, WRITES, DELETES = range(3)

_WEIGHTS = (4, 4, 1)
_TICK = 0.002  # seconds between two releases while requests wait


# A lower bound would let requests wait for minutes; the upper bound stands for no limit.
_Rate = Annotated[float, Within(0.01, math.inf, "requests a second")]


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Maximum numbers of requests per second, whatever the account takes.

    Attributes:
        total: all of them.
        reads: ``head``, ``list``, ``list_tree`` and ``get``.
        writes: what else changes something.
        deletes: ``delete``, ``delete_tree``, and each file of a ``delete_many``.
    """

    total: _Rate = math.inf
    reads: _Rate = math.inf
    writes: _Rate = math.inf
    deletes: _Rate = math.inf

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def kinds(self) -> tuple[float, float, float]:
        """Those of the three kinds, in the order of the kinds."""
        return self.reads, self.writes, self.deletes

    def lower(self, other: Ceilings) -> Ceilings:
        """Return the lower ones of both."""
        return Ceilings(min(self.total, other.total), *map(min, self.kinds, other.kinds))


class _Lane:
    """The waiting requests of one kind, and the share that the kind used."""

    __slots__ = ("bucket", "had", "queue", "quota", "weight")

    def __init__(self, weight: int, quota: Quota, now: float) -> None:
        self.weight = weight
        self.quota = quota
        self.had = 0.0
        self.queue: deque[tuple[asyncio.Future[None], int]] = deque()
        self.bucket = TokenBucket(math.inf, now)

    def is_ready(self, now: float) -> bool:
        """Return whether the rate of this kind lets one of its requests through."""
        return self.bucket.catch_up(now) and self.quota.bucket.catch_up(now)

    def due(self, now: float) -> float:
        """Return the seconds until that."""
        return max(self.bucket.due(now), self.quota.bucket.due(now))


class Limiter:
    """The request queue of one event loop to one account.

    Reads, writes and deletes queue apart. An account that counts them together has one ``Quota``:
    while all of them wait, one delete goes for four of each of the others. So a cleanup does not
    hold up another job's renames and is not starved by them. One that has a ramp counts its reads
    apart from the rest, which then has a quota of its own: refused writes do not affect reads.

    Args:
        loop: whose clock and timers it uses.
        growths: what the ramp of the account, if it has one, allows by now.
        unlimited: begin without a rate.
        parts: number of processes of one job among which the rate of the account is shared.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        growths: Growths | None = None,
        *,
        unlimited: bool = False,
        parts: int = 1,
    ) -> None:
        now = loop.time()
        self._shares = parts
        quota = Quota(now, unlimited=unlimited, parts=parts)
        self.quotas = (quota, quota, quota)
        self._parts = [quota]
        self._growths = growths or Growths()
        self._loop = loop
        self._whole: TokenBucket | None = None  # a ceiling on what two quotas send together
        self._lanes = tuple(_Lane(weight, quota, now) for weight in _WEIGHTS)
        self._timer: asyncio.TimerHandle | None = None
        self._ticked = now
        self._users: WeakKeyDictionary[object, tuple[Ceilings, Ramp | None]] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Limiter({self.quotas[READS].pace!r}, {self.quotas[WRITES].pace!r})"

    def join(self, user: object, ceilings: Ceilings, ramp: Ramp | None = None) -> None:
        """Apply ``ceilings`` and ``ramp`` for everybody while ``user`` lives."""
        self._users[user] = ceilings, ramp
        self._agree()

    def take(self, kind: int, cost: int) -> bool:
        """Let a request go at once, if it may and none waits that could."""
        lane = self._lanes[kind]
        quota = lane.quota
        if quota.short or lane.queue:
            return False
        now = self._loop.time()
        if not quota.bucket.fill(now):
            return False
        if lane.bucket.rate != math.inf and not lane.bucket.fill(now):
            return False
        if self._whole is not None and not self._whole.fill(now):
            return False
        self._pay(lane, cost, now)
        return True

    def wait(self, kind: int, cost: int) -> asyncio.Future[None]:
        """Return a future that is done once the request may be sent."""
        lane = self._lanes[kind]
        now = self._loop.time()
        if not lane.queue:  # What was not asked for is not saved up.
            had = [other.had for other in self._lanes if other.queue]
            lane.had = max(lane.had, min(had, default=lane.had))
        turn: asyncio.Future[None] = self._loop.create_future()
        lane.queue.append((turn, cost))
        lane.quota.short = lane.quota.short or not lane.quota.bucket.fill(now)
        if self._timer is None:
            self._ticked = now
            self._arm(now)
        elif self._timer.when() - now > 2 * _TICK:  # It waits for a kind that may go later.
            self._timer.cancel()
            self._arm(now)
        return turn

    def _agree(self) -> None:
        held = list(self._users.values())
        ceilings = reduce(Ceilings.lower, [user[0] for user in held], Ceilings())
        ramp = lowest(user[1] for user in held)
        reads, writes, _ = self.quotas
        if ramp is not None:
            if reads is writes:
                reads = self._part()
            share = ramp._replace(
                reads=ramp.reads / self._shares, writes=ramp.writes / self._shares
            )
            self._growths.allow(share)
            reads.growth, writes.growth = self._growths.reads, self._growths.writes
        for quota in self._parts:
            quota.most = ceilings.total
            quota.agree()
        for lane, rate in zip(self._lanes, ceilings.kinds, strict=True):
            lane.bucket.rate = rate
        if self._whole is not None:
            self._whole.rate = ceilings.total

    def _part(self) -> Quota:
        """Count reads apart from now on; returns their quota."""
        now = self._loop.time()
        _, writes, deletes = self.quotas
        reads = self._lanes[READS].quota = Quota(now, parts=self._shares)
        self.quotas = reads, writes, deletes
        self._parts = [reads, writes]
        self._whole = TokenBucket(math.inf, now)
        return reads

    def _pay(self, lane: _Lane, cost: int, now: float) -> None:
        lane.quota.pay(cost, now)
        if lane.bucket.rate != math.inf:
            lane.bucket.pay(cost)
        lane.had += cost / lane.weight
        if self._whole is not None:
            self._whole.pay(cost)

    def _arm(self, now: float) -> None:
        due = min(lane.due(now) for lane in self._lanes if lane.queue)
        whole = 0.0 if self._whole is None else self._whole.due(now)
        self._timer = self._loop.call_later(max(_TICK, due, whole), self._tick)

    def _tick(self) -> None:
        """Let go what may; runs while requests wait."""
        self._timer = None
        now = self._loop.time()
        self._look(now)
        while (lane := self._next(now)) is not None:
            turn, cost = lane.queue.popleft()
            turn.set_result(None)
            self._pay(lane, cost, now)
        waiting = [lane for lane in self._lanes if lane.queue]
        # Whoever finds a ready lane here finds the whole exhausted.
        ready = any(lane.is_ready(now) for lane in waiting)
        for quota in self._parts:
            quota.short = ready
        for lane in waiting:
            lane.quota.short = lane.quota.short or lane.bucket.catch_up(now)
        if waiting:
            self._arm(now)

    def _look(self, now: float) -> None:
        judged = False
        for quota in self._parts:
            if quota.short:
                quota.waited(now - self._ticked)
            judged = quota.look(now) or judged
        self._ticked = now
        if judged:  # Some of those who had a ceiling may be gone.
            self._agree()

    def _next(self, now: float) -> _Lane | None:
        """Return the lane whose turn it is, among those that may send a request."""
        best = None
        for lane in self._lanes:
            queue = lane.queue
            while queue and queue[0][0].done():  # Its caller was cancelled.
                queue.popleft()
            if queue and (best is None or lane.had < best.had) and lane.is_ready(now):
                best = lane
        if best is None or self._whole is None or self._whole.catch_up(now):
            return best
        return None

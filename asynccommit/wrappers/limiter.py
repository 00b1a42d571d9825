"""The queue before an account: requests leave it evenly, at the rate that ``Pace`` finds."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from functools import reduce
from weakref import WeakKeyDictionary

from asynccommit.wrappers.pace import Pace, Window

READS, WRITES, DELETES = range(3)

_WEIGHTS = (4, 4, 1)
_TICK = 0.002  # seconds between two releases while requests wait
_BURST = 0.01  # seconds' worth of requests that may leave at once after a pause
_CATCH_UP = 0.05  # the same while requests wait, for a loop that came late
_WINDOW = 0.1  # seconds after which what was answered is judged
_ENOUGH = 20  # answers that this takes, or else
_LONGEST = 1.0  # seconds
_DOWN = 0.5  # share of refusals from which a pause is everybody's
_PAUSE = 30.0  # seconds of such a pause at most, whatever the store asks for
_ONE = 1 - 1e-6  # Rounding must not ask for a timer of no length.


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Requests a second that are not exceeded, whatever the account would take.

    Attributes:
        total: all of them.
        reads: ``head``, ``list`` and ``get``.
        writes: what else changes something.
        deletes: ``delete`` and ``delete_tree``.
    """

    total: float = math.inf
    reads: float = math.inf
    writes: float = math.inf
    deletes: float = math.inf

    def __post_init__(self) -> None:
        if not all(rate > 0 for rate in (self.total, *self.kinds)):
            raise ValueError(f"a rate must be above 0: {self}")

    @property
    def kinds(self) -> tuple[float, float, float]:
        """Those of the three kinds, in the order of the kinds."""
        return self.reads, self.writes, self.deletes

    def lower(self, other: Ceilings) -> Ceilings:
        """Return the lower ones of both."""
        return Ceilings(min(self.total, other.total), *map(min, self.kinds, other.kinds))


class Bucket:
    """Leave to send, which comes in at ``rate`` and is paid with.

    A request may go where there is leave for one, and cost more; what comes after waits for that.
    """

    __slots__ = ("_at", "_left", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._at = now
        self._left = rate if rate == math.inf else 1.0

    def fill(self, now: float, span: float) -> bool:
        """Take in at most ``span`` seconds' worth; returns whether a request may go."""
        passed = now - self._at
        if passed > 0:
            self._left = min(self._left + passed * self.rate, max(1.0, span * self.rate))
            self._at = now
        return self._left >= _ONE

    def pay(self, cost: int) -> None:
        """Let a request go."""
        self._left -= cost

    def pause(self, until: float) -> None:
        """Take in nothing before ``until``."""
        self._at = max(self._at, until)
        self._left = min(self._left, 0.0)

    def due(self, now: float) -> float:
        """Return the seconds until a request may go."""
        return max(0.0, self._at - now) + max(0.0, 1 - self._left) / self.rate


class _Lane:
    """The requests of one kind that wait, and how much of its weight the kind has had."""

    __slots__ = ("bucket", "had", "queue", "weight")

    def __init__(self, weight: int, now: float) -> None:
        self.weight = weight
        self.had = 0.0
        self.queue: deque[tuple[asyncio.Future[None], int]] = deque()
        self.bucket = Bucket(math.inf, now)


class Limiter:
    """Lets the requests of one event loop to one account go; ``Adaptive`` asks it.

    Reads, writes and deletes queue apart, because the account counts them together: while all of
    them wait, one delete goes for four of each of the others. So a cleanup does not hold up
    another job's renames and is not starved by them.

    Args:
        loop: whose clock and timers it uses.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self.pace = Pace()
        self.epoch = 0
        self.good = 0
        self.paused_from = self.paused_until = -math.inf
        self._loop = loop
        self._bucket = Bucket(self.pace.rate, now)
        self._lanes = tuple(_Lane(weight, now) for weight in _WEIGHTS)
        self._timer: asyncio.TimerHandle | None = None
        self._short = False  # Requests wait for the account, not for their own ceiling.
        self._ticked = self._began = now
        self._sent = self._bad = 0
        self._bound = 0.0
        self._asked = -math.inf
        self._fresh = True  # No answer has come yet to what was sent at this rate.
        self._ceilings: WeakKeyDictionary[object, Ceilings] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Limiter({self.pace!r})"

    def join(self, user: object, ceilings: Ceilings) -> None:
        """Hold ``ceilings``, as everybody's, as long as ``user`` lives; the lowest count."""
        self._ceilings[user] = ceilings
        self._agree()

    def _agree(self) -> None:
        lowest = reduce(Ceilings.lower, self._ceilings.values(), Ceilings())
        self.pace.most = lowest.total
        self._bucket.rate = self.pace.rate
        for lane, rate in zip(self._lanes, lowest.kinds, strict=True):
            lane.bucket.rate = rate

    def take(self, kind: int, cost: int) -> bool:
        """Let a request go at once, if it may and none waits that could."""
        lane = self._lanes[kind]
        if self._short or lane.queue:
            return False
        now = self._loop.time()
        if not (self._bucket.fill(now, _BURST) and lane.bucket.fill(now, _BURST)):
            return False
        self._pay(lane, cost)
        return True

    def wait(self, kind: int, cost: int) -> asyncio.Future[None]:
        """Return what is done once the request may go."""
        lane = self._lanes[kind]
        now = self._loop.time()
        if not lane.queue:  # What was not asked for is not saved up.
            had = [other.had for other in self._lanes if other.queue]
            lane.had = max(lane.had, min(had, default=lane.had))
        turn: asyncio.Future[None] = self._loop.create_future()
        lane.queue.append((turn, cost))
        self._short = self._short or not self._bucket.fill(now, _BURST)
        if self._timer is None:
            self._ticked = now
            self._arm(now)
        elif self._timer.when() - now > 2 * _TICK:  # It waits for a kind that may go later.
            self._timer.cancel()
            self._arm(now)
        return turn

    def paused(self, begin: float, end: float) -> float:
        """Return how many of these seconds were a pause; of the last one, as far as is known."""
        return max(0.0, min(end, self.paused_until) - max(begin, self.paused_from))

    def refused(self, epoch: int, retry_after: float | None) -> None:
        """Note the refusal of a request that was let go in ``epoch``."""
        if epoch != self.epoch:  # The rate has fallen since then, and for its like.
            return
        now = self._loop.time()
        if now - self._began > 2 * _LONGEST:
            self._begin(now)
        self._bad += 1
        if retry_after:
            self._asked = max(self._asked, now + retry_after)
        self._look(now)

    def _pay(self, lane: _Lane, cost: int) -> None:
        self._bucket.pay(cost)
        lane.bucket.pay(cost)
        lane.had += cost / lane.weight
        self._sent += cost

    def _arm(self, now: float) -> None:
        due = min(lane.bucket.due(now) for lane in self._lanes if lane.queue)
        wait = max(_TICK, due, self._bucket.due(now))
        self._timer = self._loop.call_later(wait, self._tick)

    def _tick(self) -> None:
        """Let go what may; runs while requests wait."""
        self._timer = None
        now = self._loop.time()
        if self._short:
            self._bound += now - self._ticked
        self._ticked = now
        self._look(now)
        while (lane := self._next(now)) and self._bucket.fill(now, _CATCH_UP):
            turn, cost = lane.queue.popleft()
            turn.set_result(None)
            self._pay(lane, cost)
        self._short = lane is not None
        if any(lane.queue for lane in self._lanes):
            self._arm(now)

    def _next(self, now: float) -> _Lane | None:
        """Return whose turn it is, of those whose own ceiling lets a request go."""
        best = None
        for lane in self._lanes:
            queue = lane.queue
            while queue and queue[0][0].done():  # Its caller was cancelled.
                queue.popleft()
            if queue and (best is None or lane.had < best.had) and lane.bucket.fill(now, _CATCH_UP):
                best = lane
        return best

    def _look(self, now: float) -> None:
        """Judge the window, if it is over."""
        answers = self.good + self._bad
        passed = now - self._began
        if self._fresh and answers:
            self._fresh = False
            self._begin(now)
        elif (passed >= _WINDOW and answers >= _ENOUGH) or (passed >= _LONGEST and answers):
            self._judge(now, passed)

    def _judge(self, now: float, seconds: float) -> None:
        window = Window(seconds, self._bound, self._sent, self.good, self._bad)
        if self.pace.step(window):
            self.epoch += 1
            self._fresh = True
        if window.share >= _DOWN and self._asked > now:
            if now > self.paused_until:
                self.paused_from = now
            self.paused_until = min(self._asked, now + _PAUSE)
            self._bucket.pause(self.paused_until)
        self._agree()
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began = now
        self._sent = self.good = self._bad = 0
        self._bound = 0.0

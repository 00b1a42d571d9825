"""The request limits of an account: token buckets at measured rates."""

from __future__ import annotations

import logging
import math

from asynccommit.stores.policies.ramp_up import RampState
from asynccommit.stores.policies.rate_controller import Pace, Window

log = logging.getLogger(__name__)

_CHANGE = 0.05  # share of a change of the rate that is logged
_BURST = 0.01  # seconds' worth of requests that may leave at once after a pause
_CATCH_UP = 0.05  # the same while requests wait, for a loop that came late
_OPENING = 250.0  # requests that may leave at once after a rest, unless they were refused
_REST = 1.0  # seconds without a request
_WINDOW = 0.1  # seconds after which the responses are evaluated
_ENOUGH = 20  # responses that this needs, or else
_CLEAR = 10  # refusals that suffice at any time
_LONGEST = 1.0  # seconds
_DOWN = 0.5  # share of refusals from which a pause is everybody's
_PAUSE = 30.0  # seconds of such a pause at most, whatever the store asks for
_ONE = 1 - 1e-6  # Rounding must not ask for a timer of no length.


class TokenBucket:
    """A token bucket that fills at ``rate`` and is paid from.

    A request may go if the bucket is not empty, and may cost more than it holds; the next requests
    then wait for the difference.

    Attributes:
        rate: requests a second.
        opening: requests that the bucket holds at first, and again after a rest.
        is_open: whether no request has waited since the bucket held them.
    """

    __slots__ = ("_at", "_left", "_spare", "is_open", "opening", "rate")

    def __init__(self, rate: float, now: float, opening: float = 0.0) -> None:
        self.rate = rate
        self.opening = self._spare = opening
        self.is_open = opening > 0
        self._at = now
        self._left = rate if rate == math.inf else max(1.0, opening)

    def fill(self, now: float, span: float = _BURST) -> bool:
        """Add at most ``span`` seconds' worth; return whether a request may go."""
        passed = now - self._at
        if passed > 0:
            self._left += passed * self.rate
            self._at = now
        if passed >= _REST and self.opening:
            self._spare, self.is_open = self.opening, True
        most = span * self.rate
        if most < 1.0 or most < self._spare:
            most = max(1.0, self._spare)
        if self._left > most:
            self._left = most
        return self._left >= _ONE

    def catch_up(self, now: float) -> bool:
        """Fill the bucket as ``fill`` does, while requests wait."""
        return self.fill(now, _CATCH_UP)

    def pay(self, cost: int) -> None:
        """Let a request through."""
        self._left -= cost
        self._spare -= cost

    def close(self) -> None:
        """Give up what is left of the opening."""
        if self.is_open:
            self.is_open = False
            self._spare = 0.0
            self._left = min(self._left, 1.0)

    def pause(self, until: float) -> None:
        """Add nothing before ``until``."""
        self._at = max(self._at, until)
        self._left = min(self._left, 0.0)

    def due(self, now: float) -> float:
        """Return the seconds until a request may go."""
        return max(0.0, self._at - now) + max(0.0, 1 - self._left) / self.rate


class Quota:
    """One limit of an account, with its measurements.

    Attributes:
        pace: the current rate.
        bucket: the token bucket at that rate.
        most: maximum number of requests a second, whatever ``growth`` allows.
        growth: limit on the growth of the rate; ``None`` for no limit.
        epoch: changes when the rate falls: responses to earlier requests no longer count.
        good: responses of this epoch that are no refusals.
        logged_rate: the rate when it was last logged.
        short: whether requests wait for this limit, not for a ceiling of their own.
    """

    __slots__ = (
        "_asked",
        "_bad",
        "_began",
        "_bound",
        "_fresh",
        "_opening",
        "_paused_from",
        "_sent",
        "bucket",
        "epoch",
        "good",
        "growth",
        "logged_rate",
        "most",
        "pace",
        "paused_until",
        "short",
    )

    def __init__(self, now: float, *, unlimited: bool = False, parts: int = 1) -> None:
        self.pace = Pace(unlimited=unlimited, parts=parts)
        self._opening = _OPENING / parts
        self.bucket = TokenBucket(self.pace.rate, now, self._opening)
        self.most = math.inf
        self.growth: RampState | None = None
        self.epoch = 0
        self.logged_rate = self.pace.rate
        self.good = 0
        self.short = False
        self.paused_until = -math.inf
        self._paused_from = -math.inf
        self._began = now
        self._sent = self._bad = 0
        self._bound = 0.0
        self._asked = -math.inf
        self._fresh = True  # No answer has come yet to what was sent at this rate.

    def __repr__(self) -> str:
        return f"Quota({self.pace!r})"

    def agree(self) -> None:
        """Apply the current limits to ``pace`` and ``bucket``."""
        grown = math.inf if self.growth is None else self.growth.ceiling
        self.pace.most = min(self.most, grown)
        self.bucket.rate = rate = self.pace.rate
        if self.growth is not None or rate + self._opening > self.most:
            self._forbid()
        if abs(rate - self.logged_rate) >= _CHANGE * self.logged_rate:
            log.debug("rate: %.0f requests/s (was %.0f)", rate, self.logged_rate)
            self.logged_rate = rate

    def _forbid(self) -> None:
        """Let no burst leave any more."""
        self.bucket.opening = 0.0
        self.bucket.close()

    def pay(self, cost: int, now: float) -> None:
        """Let a request through."""
        self.bucket.pay(cost)
        self._sent += cost
        if self.growth is not None and self.growth.count(cost, now):
            self.agree()

    def waited(self, seconds: float) -> None:
        """Record how long requests waited for the rate."""
        self.bucket.close()
        self._bound += seconds

    def paused(self, begin: float, end: float) -> float:
        """Return how many of these seconds were in the last pause, the only one that is known."""
        return max(0.0, min(end, self.paused_until) - max(begin, self._paused_from))

    def refused(self, epoch: int, count: int, retry_after: float | None, now: float) -> None:
        """Record refusals of requests that were let through in ``epoch``."""
        if epoch != self.epoch:  # The rate has fallen since then for such refusals.
            return
        if self.bucket.is_open:  # It tells that so many at once are too many, not of the rate.
            self._forbid()
            self.epoch += 1
            return
        if now - self._began > 2 * _LONGEST:
            self._begin(now)
        self._bad += count
        if retry_after:
            self._asked = max(self._asked, now + retry_after)
        self.look(now)

    def look(self, now: float) -> bool:
        """Evaluate the responses once they suffice; return whether they did."""
        answers = self.good + self._bad
        passed = now - self._began
        if self._fresh and answers:
            self._fresh = False
            self._begin(now)
            return False
        over = (
            (passed >= _WINDOW and answers >= _ENOUGH)
            or (passed >= _LONGEST and answers > 0)
            or self._bad >= _CLEAR
        )
        if over:
            self._judge(now, passed)
        return over

    def _judge(self, now: float, seconds: float) -> None:
        window = Window(seconds, self._bound, self._sent, self.good, self._bad)
        if self.pace.step(window):
            self.epoch += 1
            self._fresh = True
            self._forbid()  # An account at its limit has nothing to spare.
            if self.growth is not None:
                self.growth.pause()
        if window.share >= _DOWN and self._asked > now:
            if now > self.paused_until:
                self._paused_from = now
            self.paused_until = min(self._asked, now + _PAUSE)
            self.bucket.pause(self.paused_until)
        self.agree()
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began = now
        self._sent = self.good = self._bad = 0
        self._bound = 0.0

"""Find out how many requests per second an account accepts.

The limit is unknown and shared with others, so the rate rises until some requests are refused and
then falls a little: additive increase, multiplicative decrease. Responses are counted in windows of
a tenth of a second; ``Pace.step`` evaluates one after the other by plain arithmetic.

* It begins at ``START``, which Hadoop asks of every account, and doubles twice a second up to the
  first window with many refusals. A service without a limit begins without a rate; the first such
  window then sets it to what was sent.
* A window with refusals takes a twentieth off the rate, or all that was refused if that is more and
  no accident: so it follows a limit that falls far within some windows. A deep fall is soon
  reversed on trial, since it may have been temporary.
* Then it rises by ``GAIN`` a second. Clients of one account fall together, each by its share, and
  rise together, all by the same: that is what makes unequal shares equal. Only below ``COMMON`` the
  gain is less, by the root of the rate, or much of a low limit would be refused.
* The longer nothing is refused the faster it rises, by the cube of the time, and by the same for
  all again: so a high limit is used as well as a low one, and one that has risen fivefold is found
  within a minute.
* Only time in which requests waited for the rate makes it rise. An unused rate is a guess.
* Some refusals are not for the rate: one busy partition, one sick server. If falling and falling
  does not end them, the rate is lowered for a moment by so much that no limit could be the reason;
  the share of refusals that stays is then expected, and only more of them make the rate fall.
* Of several processes of a job each is a part of one client. A refusal is seen by one of them, so
  all together fall less often: they also rise by less, or a job would be refused more, and take
  more from others, the more processes it has. And as a part that asks for less changes little,
  refusals are suspect only after as many more falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

START = 1000.0
FLOOR = 10.0  # requests a second, however many are refused
GAIN = 43.0  # requests a second, each second
COMMON = 700.0  # requests a second from which the gain is the same for all

_DOUBLING = 0.5  # seconds in which the rate doubles at the beginning
_CUBE = 1.5  # requests a second after a second, and eight times as much after two
_FALL = 0.95
_SHORTEST = 0.1  # seconds over which a rate can be told
_DEEPEST = 0.3  # what one window leaves of the rate at least
_RETURN = 2.0  # seconds in which most of a deep fall is taken back, if nothing is refused
_ENOUGH = 20  # requests from which it can be told how much of a rate was used
_MANY = 0.05  # share of refusals that is never expected
_FEW = 0.0005  # share that is always expected
_DOUBT = 1.5  # of the root of the refusals: that many might as well not have been
_ALL = 0.9  # share of refusals after which the limit is sought anew

_ROW = 4.0  # falls in a row that make refusals suspect; between them they are forgotten slowly
_FORGET = 0.9
_CHECK = 0.7  # what a check leaves of the rate
_CHECKED = 1000  # answers that a check takes, or a second's worth
_OLD = 30.0  # seconds for which its result holds


@dataclass(slots=True)
class Window:
    """The counts of one period.

    Attributes:
        seconds: the length of the period.
        bound: seconds of it in which requests waited for the rate.
        sent: requests that were let through.
        good: successful responses to requests sent since the last abrupt change of the rate.
        bad: refusals of such requests.
    """

    seconds: float = 0.0
    bound: float = 0.0
    sent: int = 0
    good: int = 0
    bad: int = 0

    @property
    def answers(self) -> int:
        """All answers, refusals too."""
        return self.good + self.bad

    @property
    def share(self) -> float:
        """The share of refusals in the responses."""
        return self.bad / self.answers if self.answers else 0.0

    @property
    def sure(self) -> float:
        """The share of refusals beyond chance: half of ten, most of a hundred."""
        return self.share * max(0.0, 1 - _DOUBT / math.sqrt(self.bad)) if self.bad else 0.0

    def is_over(self, share: float) -> bool:
        """Return whether refusals exceed what a true share of ``share`` explains."""
        expected = share * self.answers
        return self.bad > expected + 3 * math.sqrt(expected * (1 - share))


class Pace:
    """The rate to ask at, in requests a second, as ``rate``.

    Args:
        most: the rate is never above this.
        unlimited: begin without a rate.
        parts: number of processes of one job that seek the rate together: each is that part of one
            client, so that together they begin as one does.

    Attributes:
        most: the rate is never above this. What was found out before stays known.
    """

    def __init__(self, most: float = math.inf, *, unlimited: bool = False, parts: int = 1) -> None:
        self.most = most
        self._parts = parts
        self._suspect = _ROW * parts
        self._found = math.inf if unlimited else START / parts
        self._starting = True
        self._base = self._depth = self._gain = self._risen = 0.0
        self._row = 0.0
        self._expected = 0.0
        self._age = 0.0
        self._check: Window | None = None

    def __repr__(self) -> str:
        return f"Pace({self.rate:.0f}/s)"

    @property
    def rate(self) -> float:
        """The current rate."""
        return min(self._found, self.most)

    @property
    def expected(self) -> float:
        """The estimated share of refusals for other reasons than the rate."""
        return max(_FEW, self._expected if self._age < _OLD else 0.0)

    def step(self, window: Window) -> bool:
        """Judge ``window``; returns whether the rate changed at once.

        Then responses to earlier requests do not count. A window without answers changes nothing.
        """
        if not window.answers:
            return False
        self._age += window.seconds
        if self._check is not None:
            return self._checked(window, self._check)
        # What is held by a ceiling does not seek any more.
        seeks = self._starting and (self._found < self.most or self.rate == math.inf)
        if not window.is_over(_MANY if seeks else self.expected):
            self._row *= _FORGET
            self._rise(window.bound)
            return False
        self._row = 0.0 if window.is_over(_MANY) else self._row + 1
        if self._row < self._suspect:
            self._fall(window)
        else:
            self._begin_check()
        return True

    def _rise(self, seconds: float) -> None:
        if self._found >= self.most:
            return  # It was not tried, so no answer speaks of it.
        if self._starting:
            rate = self._found * 2 ** (seconds / _DOUBLING)
        else:
            self._risen += seconds
            t = self._risen
            rate = self._base + self._gain * t + _CUBE / self._parts * t**3
            rate += self._depth * (1 - math.exp(-t / _RETURN))
        self._found = min(self.most, max(self._found, rate))

    def _fall(self, window: Window) -> None:
        if self.rate == math.inf:
            self._found = max(window.sent, window.answers) / max(window.seconds, _SHORTEST)
        factor = 1.0
        if window.sent >= _ENOUGH and window.bound < window.seconds / 2:
            factor = min(1.0, window.sent / (window.seconds * self.rate))
        if window.is_over(_MANY):
            factor *= 1 - window.sure
        self._starting = window.share > _ALL
        self._set(self.rate * min(_FALL, max(_DEEPEST, factor)), self.rate * _FALL)

    def _set(self, rate: float, back: float = 0.0) -> None:
        parts = self._parts
        self._found = self._base = max(FLOOR / parts, rate)
        self._depth = max(0.0, back - rate)
        self._gain = GAIN / parts**2 * math.sqrt(min(self._found * parts / COMMON, 1.0))
        self._risen = 0.0

    def _begin_check(self) -> None:
        self._check = Window()
        self._row = 0.0
        self._set(self.rate * _CHECK)

    def _checked(self, window: Window, check: Window) -> bool:
        if window.is_over(_MANY):
            self._check = None
            self._fall(window)
            return True
        if check.seconds:  # In the first window the limit was still recovering.
            check.good += window.good
            check.bad += window.bad
        check.seconds += window.seconds
        if check.answers < _CHECKED and check.seconds < 1:
            return False
        self._check = None
        stays = check.bad > 0
        self._expected, self._age = check.share, 0.0
        self._set(self.rate / _CHECK * (_FALL ** (1 - self._suspect) if stays else _FALL))
        return True

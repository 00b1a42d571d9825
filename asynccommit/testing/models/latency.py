"""Draw response times from models; limit the request rate."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.testing.models.settings import SettingsFields

FIXED = "fixed"
UNIFORM = "uniform"
LOGNORMAL = "lognormal"
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s)").fullmatch
_PARAMETERS = {FIXED: ("seconds",), UNIFORM: ("low", "high"), LOGNORMAL: ("median", "sigma")}


@dataclass(frozen=True, slots=True)
class Tail:
    """The slow tail: ``seconds`` more, with this ``probability``."""

    probability: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of response times.

    Attributes:
        model: ``fixed``: always ``first``; ``uniform``: from ``first`` to ``second``;
            ``lognormal``: median ``first``, and ``second`` the deviation of the logarithm.
        first: seconds.
        second: seconds, or a deviation.
        tail: the slow tail.
    """

    model: str = FIXED
    first: float = 0.0
    second: float = 0.0
    tail: Tail | None = None

    def draw(self, rng: random.Random) -> float:
        """Return one time in seconds."""
        seconds = self.first
        if self.model == UNIFORM:
            seconds = rng.uniform(self.first, self.second)
        elif self.model == LOGNORMAL:
            seconds *= math.exp(rng.gauss(0.0, self.second))
        if self.tail is not None and rng.random() < self.tail.probability:
            seconds += self.tail.seconds
        return seconds

    @property
    def is_none(self) -> bool:
        """Return whether every time is 0."""
        return not (self.first or self.second or self.tail)

    @property
    def always(self) -> float | None:
        """The constant time; ``None`` if times differ."""
        return self.first if self.model == FIXED and self.tail is None else None

    @classmethod
    def from_json(cls, value: object, field: str = "latency") -> Latency:
        """Read an object or a number of seconds. Raises ``OptionError``.

        The object is like ``{"model": "uniform", "low": 0.01, "high": 0.03}``. The error names the
        invalid field.
        """
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = {"seconds": value}
        fields = SettingsFields(value, field)
        model = fields.choice("model", tuple(_PARAMETERS), FIXED)
        first, second = (*(fields.number(name, 0.0) for name in _PARAMETERS[model]), 0.0)[:2]
        tail = fields.inner("tail")
        fields.done()
        if model == UNIFORM and second < first:
            raise OptionError(f"{field}.high is {second}: it must not be below low")
        return cls(model, first, second, None if tail is None else _tail(tail))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``from_json`` reads."""
        names = _PARAMETERS[self.model]
        found: dict[str, Any] = {"model": self.model}
        found.update(zip(names, (self.first, self.second), strict=False))
        if self.tail is not None:
            found["tail"] = {"probability": self.tail.probability, "seconds": self.tail.seconds}
        return found


def _tail(fields: SettingsFields) -> Tail:
    tail = Tail(fields.share("probability"), fields.number("seconds"))
    fields.done()
    return tail


NO_LATENCY = Latency()


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """A limit on the request rate.

    Attributes:
        rate: requests per second.
        burst: requests that may come at once after a pause.
        retry_after: seconds in the ``Retry-After`` of a rejected request; ``None`` for no advice.
    """

    rate: float
    burst: float
    retry_after: float | None = None

    @classmethod
    def from_json(cls, value: object, field: str = "limit") -> RequestLimit:
        """Read ``{"rate": 1000}``.

        Raises ``OptionError`` naming the invalid field.

        The default ``burst`` is a tenth of a second's requests.
        """
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = {"rate": value}
        fields = SettingsFields(value, field)
        rate = fields.number("rate")
        if not rate > 0:
            raise OptionError(f"{field}.rate is {rate}: it must be above 0")
        burst = fields.number("burst", max(1.0, rate / 10))
        if burst < 1:
            raise OptionError(f"{field}.burst is {burst}: it must be at least 1")
        limit = cls(rate, burst, fields.number_or_none("retry_after"))
        fields.done()
        return limit

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``from_json`` reads."""
        return {"rate": self.rate, "burst": self.burst, "retry_after": self.retry_after}


class RateLimitState:
    """The state of a ``RequestLimit`` at one moment of the server's clock."""

    __slots__ = ("_clock", "_last", "_level", "limit")

    def __init__(self, limit: RequestLimit, clock: Callable[[], float]) -> None:
        self.limit = limit
        self._clock = clock
        self._level = limit.burst
        self._last = clock()

    def take(self) -> bool:
        """Take one request; return whether the limit allows it."""
        now = self._clock()
        limit = self.limit
        self._level = min(limit.burst, self._level + (now - self._last) * limit.rate)
        self._last = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


def retry_after(seconds: float | None) -> Mapping[str, str]:
    """Return the headers that ask a client to wait, in whole seconds."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


def read_latency(text: str, name: str = "latency") -> Latency:
    """Parse ``20ms``, or ``10ms-30ms`` for a uniform distribution.

    Raises ``OptionError``, which calls the value ``name``.
    """
    times = [_seconds(part) for part in text.split("-")]
    low, high = times[0], times[-1]
    if len(times) > 2 or low is None or high is None:
        raise OptionError(f"{name} is {text!r}: expected 20ms, 0.5s, or a range as 10ms-30ms")
    if low > high:
        raise OptionError(f"{name} is {text!r}: expected the shorter time first")
    return Latency(first=low) if len(times) == 1 else Latency(UNIFORM, low, high)


def _seconds(text: str) -> float | None:
    found = _TIME(text.strip())
    return float(found[1]) / (1000 if found[2] == "ms" else 1) if found else None

"""Times that are drawn, and the bound on requests."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from asynccommit.errors import OptionError
from asynccommit.testing.models.latency import (
    Latency,
    RateLimitState,
    RequestLimit,
    Tail,
    retry_after,
)
from tests.testing.models.adls.model import Clock


def drawn(latency: Latency, count: int = 5000) -> list[float]:
    """Return some times."""
    rng = random.Random(7)
    return [latency.draw(rng) for _ in range(count)]


def test_fixed_is_always_the_same() -> None:
    """One number, for ever; none by default."""
    assert set(drawn(Latency(first=0.02))) == {0.02}
    assert set(drawn(Latency())) == {0.0}
    assert Latency().is_none
    assert not Latency(first=0.02).is_none


def test_uniform_is_between_its_bounds() -> None:
    """The mean is in the middle."""
    times = drawn(Latency("uniform", 0.01, 0.03))

    assert 0.01 <= min(times) < 0.011
    assert 0.029 < max(times) <= 0.03
    assert statistics.fmean(times) == pytest.approx(0.02, rel=0.02)


def test_lognormal_has_its_median() -> None:
    """Half are below, and the logarithms deviate as told."""
    times = drawn(Latency("lognormal", 0.02, 0.5))

    assert statistics.median(times) == pytest.approx(0.02, rel=0.05)
    assert statistics.stdev(map(math.log, times)) == pytest.approx(0.5, rel=0.05)
    assert min(times) > 0


def test_tail_strikes_some() -> None:
    """The few take so much longer; a tail alone is a latency too."""
    latency = Latency(first=0.02, tail=Tail(0.01, 2.0))
    times = drawn(latency)

    assert set(times) == {0.02, 2.02}
    assert 25 <= times.count(2.02) <= 75
    assert not Latency(tail=Tail(0.01, 2.0)).is_none


@pytest.mark.parametrize(
    "value,latency",
    [
        (0.02, Latency(first=0.02)),
        ({"seconds": 0.02}, Latency(first=0.02)),
        ({"model": "uniform", "low": 1, "high": 2}, Latency("uniform", 1.0, 2.0)),
        ({"model": "lognormal", "median": 0.02, "sigma": 1}, Latency("lognormal", 0.02, 1.0)),
        (
            {"seconds": 0, "tail": {"probability": 0.5, "seconds": 3}},
            Latency(tail=Tail(0.5, 3.0)),
        ),
    ],
)
def test_latency_from_json(value: object, latency: Latency) -> None:
    """Each model has its own names for its numbers."""
    assert Latency.from_json(value) == latency
    assert Latency.from_json(latency.to_json()) == latency


@pytest.mark.parametrize(
    "value,said",
    [
        ("fast", "latency is 'fast': expected an object"),
        (True, "latency is True: expected an object"),
        (-1, "latency.seconds is -1: expected a number of at least 0"),
        (float("inf"), "latency.seconds is inf"),
        (
            {"model": "normal"},
            "latency.model is 'normal': expected one of fixed, uniform, lognormal",
        ),
        ({"model": "uniform", "low": 2, "high": 1}, "latency.high is 1.0"),
        ({"model": "uniform", "seconds": 1}, "latency.seconds is not a field"),
        ({"tail": {"probability": 2, "seconds": 1}}, "latency.tail.probability is 2.0"),
        ({"tail": {"probability": 1}}, "latency.tail.seconds is missing"),
        ({"tail": {"probability": 1, "seconds": 1, "x": 1}}, "latency.tail.x is not a field"),
    ],
)
def test_latency_that_is_none(value: object, said: str) -> None:
    """What is wrong is named."""
    with pytest.raises(OptionError) as caught:
        Latency.from_json(value)

    assert said in str(caught.value)


@pytest.mark.parametrize(
    "value,limit",
    [
        (1000, RequestLimit(1000.0, 100.0)),
        ({"rate": 5}, RequestLimit(5.0, 1.0)),
        ({"rate": 5, "burst": 2, "retry_after": 1}, RequestLimit(5.0, 2.0, 1.0)),
    ],
)
def test_limit_from_json(value: object, limit: RequestLimit) -> None:
    """The burst is a tenth of a second's worth, at least one request, unless it is given."""
    assert RequestLimit.from_json(value) == limit
    assert RequestLimit.from_json(limit.to_json()) == limit


@pytest.mark.parametrize(
    "value,said",
    [
        (0, "limit.rate is 0.0: it must be above 0"),
        ({}, "limit.rate is missing"),
        ({"rate": 1, "burst": 0.5}, "limit.burst is 0.5: it must be at least 1"),
        ({"rate": 1, "brust": 5}, "limit.brust is not a field"),
    ],
)
def test_limit_that_is_none(value: object, said: str) -> None:
    """What is wrong is named."""
    with pytest.raises(OptionError) as caught:
        RequestLimit.from_json(value)

    assert said in str(caught.value)


def test_bucket_never_gives_more_than_its_rate() -> None:
    """Over any time, and under any demand, rate times time and one burst at most."""
    clock, rng = Clock(), random.Random(3)
    bucket = RateLimitState(RequestLimit(200.0, 20.0), clock)
    start, taken = clock.now, 0
    for _ in range(20_000):
        clock.now += rng.expovariate(1000.0)
        taken += bucket.take()
        assert taken <= (clock.now - start) * 200 + 20.001

    assert taken > (clock.now - start) * 200 * 0.99


def test_wait_is_told_in_whole_seconds() -> None:
    """The header knows no fractions; without a wait there is no header."""
    assert retry_after(0.2) == {"Retry-After": "1"}
    assert retry_after(None) == {}

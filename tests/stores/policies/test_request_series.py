"""The record of requests over time, and its histogram of latencies."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.policies.request_series import (
    FINEST,
    MAX_BUCKETS,
    RequestSeries,
    bin_of,
    upper_bound,
)


class Clock:
    """A clock that a test sets."""

    now = 50.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_requests_are_counted_in_the_bucket_in_which_they_end() -> None:
    """Counts, refusals and the limit of a bucket are kept under its number."""
    clock = Clock()
    series = RequestSeries(clock, lambda: 100.0)

    series.note("rename", 0.01)
    clock.now += 2.5 * FINEST
    series.note("rename", 0.01, count=3, refused=1)

    assert series.sent == [1, 0, 3]
    assert series.refused == [0, 0, 1]
    assert series.limits == [100.0, 100.0, 100.0]


def test_memory_is_bounded_and_nothing_is_lost() -> None:
    """However long a commit takes, there are no more buckets, and the sum is that of all."""
    clock = Clock()
    series = RequestSeries(clock, lambda: None)

    for _ in range(5000):
        series.note("put", 0.5, refused=1)
        clock.now += 1.7

    assert len(series.sent) <= MAX_BUCKETS
    assert len(series.sent) == len(series.refused) == len(series.limits)
    assert sum(series.sent) == sum(series.refused) == 5000
    assert series.width * len(series.sent) >= 4999 * 1.7


def test_no_limit_is_zero() -> None:
    """An infinite rate and none are both recorded as zero, which JSON can say."""
    for limit in (0.0, float("inf")):
        series = RequestSeries(Clock(), partial(float, limit))
        series.note("put", 0.1)

        assert series.limits == [0.0]


@given(st.floats(0, 8_000))
def test_bound_of_a_latency_is_at_most_a_quarter_too_high(seconds: float) -> None:
    """A duration is below the bound of its bin, and not far below."""
    bound = upper_bound(bin_of(seconds))

    assert seconds < bound + 1e-6
    assert bound <= seconds * 1.25 + 2e-6


def test_restart_forgets_what_was_before() -> None:
    """A restarted record has no requests and begins now."""
    clock = Clock()
    series = RequestSeries(clock, lambda: None)
    series.note("put", 0.1)
    clock.now += 10

    series.restart()

    assert (series.began, series.sent, series.latencies()) == (clock.now, [], {})

"""Percentiles of a histogram of latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Histogram = Sequence[tuple[float, int]]


def percentile(histogram: Histogram, percent: float) -> float:
    """Return the upper bound that so many percent of the values are below.

    Args:
        histogram: upper bounds, ascending, and the number of values of each.
        percent: from 0 to 100.
    """
    wanted = sum(count for _, count in histogram) * percent / 100
    seen = 0
    for bound, count in histogram:
        seen += count
        if seen >= wanted:
            return bound
    return 0.0


def percentiles(
    latency: Mapping[str, Histogram], percents: Sequence[float]
) -> dict[str, tuple[float, ...]]:
    """Return the percentiles of each method, the most frequent method first."""
    by_count = sorted(latency.items(), key=lambda item: -_count(item[1]))
    return {
        method: tuple(percentile(histogram, percent) for percent in percents)
        for method, histogram in by_count
        if _count(histogram)
    }


def _count(histogram: Histogram) -> int:
    return sum(count for _, count in histogram)

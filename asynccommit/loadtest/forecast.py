"""Forecast the commit of a million files from the figures of a load test."""

from __future__ import annotations

import math
from collections.abc import Mapping

from asynccommit.loadtest.report import MillionForecast, RateFound, RequestTimes, StepTimes
from asynccommit.stores.base import Traits

MILLION = 1_000_000
_TASKS = 5_000
_EXACT = 9_000  # larger jobs are extrapolated: two small ones take some seconds
_NORMAL_90 = 1.2816  # standard deviations from the median to the 90th percentile
_SHORTEST = 1e-6  # seconds


def forecast_million(
    scheme: str,
    traits: Traits,
    steps: Mapping[str, StepTimes],
    rates: Mapping[str, RateFound],
    methods: Mapping[str, RequestTimes],
    in_flight: int,
) -> MillionForecast | None:
    """Return the forecast; ``None`` if the load test ended before its commit.

    A store with a model is simulated with the measured distribution of the latency of renames and
    with the rate found for writes. On any other store a million files take as much longer as they
    are more: the fixed costs of a commit count as costs of its files, so it is an upper bound.

    Args:
        scheme: of the store.
        traits: of the store.
        steps: the measured steps.
        rates: the rates found.
        methods: the measured requests.
        in_flight: maximum number of requests in flight.
    """
    from asynccommit.simulate.setup import kind_of

    kind = kind_of(scheme, folders=traits.atomic_directory_rename)
    writes = rates.get("writes")
    times = methods.get("rename")
    if kind and writes is not None and times is not None and times.p50 and writes.per_second >= 1:
        seconds = _simulated(kind.name, times, writes.per_second, in_flight)
        return MillionForecast(MILLION, seconds, "simulated")
    commit = steps.get("commit")
    if commit is None or not commit.files:
        return None
    return MillionForecast(MILLION, commit.seconds * MILLION / commit.files, "scaled")


def _simulated(kind: str, times: RequestTimes, rate: float, in_flight: int) -> float:
    from asynccommit.simulate import Setup, simulate
    from asynccommit.simulate.setup import MOST_IN_FLIGHT, limit_of
    from asynccommit.testing.models.fault_rules import Climate
    from asynccommit.testing.models.latency import LOGNORMAL, Latency

    median = max(times.p50, _SHORTEST)
    sigma = math.log(max(times.p90, median) / median) / _NORMAL_90
    climate = Climate((), Latency(LOGNORMAL, median, sigma), limit_of(rate))
    setup = Setup(
        files=MILLION,
        tasks=_TASKS,
        climate=climate,
        store=kind,
        in_flight=min(in_flight, MOST_IN_FLIGHT),
        exact=_EXACT,
    )
    return simulate(setup).figures.seconds

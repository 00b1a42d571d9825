"""A forecast as text: what it takes, on what store, and how that is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asynccommit.runtime.cells import printed, to_text
from asynccommit.simulate.forecast import Forecast, shown, store_of
from asynccommit.simulate.memory import Memory
from asynccommit.simulate.run import Figures
from asynccommit.simulate.setup import Setup
from asynccommit.stores.prices import Prices
from asynccommit.testing.models.fault_rules import KINDS, Climate
from asynccommit.testing.models.latency import Latency, RequestLimit, Tail

FIGURES = Figures(
    files=1_000,
    tasks=10,
    partitions=5,
    seconds=4.0,
    stages={"committer_commit_job": 4.0, "job_stage_rename_files": 3.0, "job_stage_cleanup": 0.5},
    requests={"mkdir": 5, "rename": 1_100},
    struck={},
    refused=0,
    recovered={},
    waited={},
    warnings=(),
    memory=Memory(1_000, 5_000_000, 1_000_000, "somehow"),
    real=0.5,
)
SETUP = Setup(files=1_000, tasks=10, partitions=5)


def _text(figures: Figures, *others: Figures) -> str:
    return to_text(shown(Forecast(SETUP, figures, others or (figures,))), 200)


def test_the_first_line_says_it_all() -> None:
    """The size of the job, its time and its rate."""
    first, *rest = _text(FIGURES).splitlines()

    assert first == (
        "a commit of 1,000 files of 10 tasks in 5 partitions takes 4.00 s (250 files/s)"
    )
    assert not any("EXTRAPOLATED" in line for line in rest)
    assert "this commit, in 500 ms of real time" in "\n".join(rest)
    forecast = Forecast(SETUP, FIGURES, (FIGURES,))
    assert str(forecast) == printed(shown(forecast))


def test_stages_and_requests_are_tables() -> None:
    """Each stage with its share, what is between them, each kind of request, and the sum."""
    rows = [line.split() for line in _text(FIGURES).splitlines()]

    assert ["rename", "files", "3.00", "s", "75.0%"] in rows
    assert ["time", "between", "them", "500", "ms", "12.5%"] in rows
    assert ["rename", "1,100", "1.100"] in rows
    assert ["all", "1,105", "1.105"] in rows


def test_what_requests_cost_is_told() -> None:
    """The dollars, and by which prices; nothing where there are none."""
    assert "cost       $0.0079 of requests: https://learn.microsoft.com/" in _text(FIGURES)
    dear = replace(SETUP, prices=Prices(rename=10_000))
    (line,) = [
        one
        for one in to_text(shown(Forecast(dear, FIGURES, (FIGURES,))), 200).splitlines()
        if "cost" in one
    ]
    assert line == "  cost       $1,100.00 of requests by the given prices"
    assert Forecast(Setup(store="hdfs"), FIGURES, (FIGURES,)).dollars is None


def test_workers_and_their_processors_are_told() -> None:
    """The line of the store has both."""
    assert "4 workers, 95 us of CPU a request" in store_of(replace(SETUP, workers=4, cpu=95e-6))


def test_trouble_is_told() -> None:
    """Every kind of fault has its words; a quiet run has none of them."""
    struck = {kind: 2_000 + number for number, kind in enumerate((*KINDS, "limit"))}
    stormy = replace(FIGURES, struck=struck, recovered={"rename": 7}, waited={"backoff": 2.0})
    text = _text(stormy)

    assert all(f"{number:,} " in text for number in struck.values())
    assert "7 lost responses settled by identity" in text
    assert "backoff 2.00 s, total of all requests" in text
    for word in ("trouble", "recovered", "waited"):
        assert word not in _text(FIGURES)


def test_what_a_ramp_costs_is_told() -> None:
    """Where the rate may grow slowly only, a line says what that costs, and what it would be."""
    setup = Setup(files=1_000, tasks=10, partitions=5, store="gcs", exact=2_000)
    free = replace(FIGURES, seconds=1.0, real=0.25)
    text = to_text(shown(Forecast(setup, FIGURES, (FIGURES,), free)), 200)

    assert "1,000 writes/s at first, 256 in flight" in text
    assert "costs 3.00 s: the rate may at most double every 20 min" in text
    assert "it is 1.00 s (1,000 files/s)" in text
    assert "this commit, in 750 ms of real time" in text
    assert "ramp" not in _text(FIGURES)


def test_a_ramp_may_cost_nothing() -> None:
    """Chance may make the commit with a ramp the quicker one."""
    setup = Setup(files=1_000, tasks=10, partitions=5, store="gcs-hns")
    free = replace(FIGURES, seconds=4.5)

    text = to_text(shown(Forecast(setup, FIGURES, (FIGURES,), free)), 200)

    assert "costs nothing: the rate may at most double" in text


def test_memory_says_how_it_was_measured() -> None:
    """The engine's share, what the process grew by, and what of it is the model's."""
    assert "4.0 MB of the engine: somehow, 5.0 MB, less 1.0 MB of the model" in _text(FIGURES)


def test_what_is_extrapolated_says_so() -> None:
    """The second line cannot be overlooked, and names the sizes that were run."""
    second = _text(FIGURES, replace(FIGURES, files=100), replace(FIGURES, files=300))

    assert second.splitlines()[1] == (
        "EXTRAPOLATED from the steady rate of simulated commits of 100 and 300 files"
    )
    assert "two smaller commits, in 500 ms of real time" in second
    assert "4.0 MB of the engine at 1,000 files: somehow" in second


@pytest.mark.parametrize(
    "climate, said",
    [
        (
            Climate((), Latency(first=0.03), RequestLimit(20_000, 1)),
            "30 ms a response, 20,000 requests/s",
        ),
        (Climate((), Latency("uniform", 0.01, 0.05)), "10 to 50 ms a response, no limit"),
        (
            Climate((), Latency("lognormal", 0.02, 0.5, Tail(0.1, 1.0))),
            "20 ms a response in the median, with a slow tail, no limit",
        ),
    ],
)
def test_the_store_is_told_in_a_line(climate: Climate, said: str) -> None:
    """Latency, limit and faults are part of the answer."""
    line = store_of(replace(SETUP, climate=climate, faults="storm", seed=3))

    assert line == f"adls, {said}, 512 in flight, faults storm, seed 3"

"""Large jobs are told from two smaller ones, and come out as if they had been run."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from asynccommit.simulate import Setup, simulate
from asynccommit.simulate.memory import Memory
from asynccommit.simulate.run import Figures
from asynccommit.simulate.steady import extrapolate
from asynccommit.testing.models.fault_profiles import LOSSY
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency, RequestLimit

ONE = Figures(
    files=100,
    tasks=1,
    partitions=5,
    seconds=2.0,
    stages={"rename": 1.0, "mkdir": 0.5},
    requests={"rename": 100, "mkdir": 5},
    struck={},
    refused=0,
    recovered={},
    waited={"rate": 3.0},
    warnings=(),
    memory=Memory(100, 50, 20, "somehow"),
    real=0.1,
)
TWO = replace(
    ONE,
    files=300,
    tasks=3,
    seconds=4.0,
    stages={"rename": 3.0, "mkdir": 0.4},
    requests={"rename": 300, "mkdir": 5},
    struck={"cut": 4},
    recovered={"rename": 4},
    memory=Memory(300, 60, 24, "somehow"),
    real=0.3,
)


def test_what_grows_grows_on() -> None:
    """Each further file takes what the further files of the second commit took."""
    found = extrapolate(ONE, TWO, Setup(files=1_300, tasks=13, partitions=5))

    assert found.seconds == 14.0
    assert found.stages == {"rename": 13.0, "mkdir": 0.4}
    assert found.requests == {"rename": 1_300, "mkdir": 5}
    assert (found.struck, found.recovered) == ({"cut": 24}, {"rename": 24})
    assert found.waited == {"rate": 3.0}
    assert found.memory == TWO.memory
    assert found.real == pytest.approx(0.4)


def test_two_of_one_size_are_no_line() -> None:
    """Where both commits have one size, the second stands for all."""
    assert extrapolate(ONE, ONE, Setup(files=1_000)).seconds == ONE.seconds


def test_up_to_the_bound_it_is_exact() -> None:
    """A job of so many files is simulated itself, and no other one."""
    forecast = simulate(Setup(files=500, tasks=5, partitions=5, exact=500))

    assert not forecast.extrapolated
    assert [one.files for one in forecast.simulated] == [500]
    assert forecast.figures is forecast.simulated[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("climate", [Climate(), LOSSY], ids=["fair", "lossy"])
def test_an_extrapolated_commit_is_near_the_real_one(climate: Climate) -> None:
    """Told from small commits it takes what it takes when it is run, but for a few percent."""
    weather = replace(climate, latency=Latency(first=0.02), limit=RequestLimit(1_000, 100))
    setup = Setup(files=24_000, tasks=120, partitions=10, climate=weather, in_flight=64)
    exact = simulate(setup)
    told = simulate(replace(setup, exact=12_000))

    assert told.extrapolated
    assert [one.files for one in told.simulated] == [4_000, 12_000]
    assert [one.tasks for one in told.simulated] == [20, 60]
    assert told.figures.seconds == pytest.approx(exact.figures.seconds, rel=0.05)
    assert told.figures.requests["rename"] == pytest.approx(
        exact.figures.requests["rename"], rel=0.02
    )
    assert sum(told.figures.recovered.values()) == pytest.approx(
        sum(exact.figures.recovered.values()), rel=0.2
    )


GROWING = Setup(files=12_000, tasks=60, partitions=10, store="gcs", share=60 / 1_200)
"""Twice the files that a bucket of 100 writes a second takes until its rate has doubled."""


@pytest.mark.full
def test_a_ramp_makes_time_grow_slower_than_files() -> None:
    """Told from small commits, a commit takes what it takes while the rate grows as documented."""
    climate = Climate((), Latency(first=0.02), RequestLimit(100, 10))
    setup = replace(GROWING, climate=climate, exact=3_000)
    forecast = simulate(setup)
    grown = 60 * math.log2(1 + 12_000 / 100 / 60 * math.log(2))

    assert [one.files for one in forecast.simulated] == [1_000, 3_000]
    assert forecast.figures.stages["job_stage_rename_files"] == pytest.approx(grown, rel=0.1)
    assert forecast.figures.requests["move"] == pytest.approx(12_000, rel=0.01)
    assert forecast.figures.refused < 100


def test_a_ramp_is_held_against_a_store_without() -> None:
    """The same commit is simulated where any rate is taken at once."""
    climate = Climate((), Latency(first=0.02), RequestLimit(200, 20))
    forecast = simulate(Setup(files=1_000, tasks=5, partitions=5, store="gcs", climate=climate))
    told = forecast.to_json()

    assert forecast.free is not None
    assert forecast.figures.stages["job_stage_rename_files"] == pytest.approx(5, rel=0.1)
    assert forecast.free.stages["job_stage_rename_files"] < 2
    assert forecast.free.refused == 0
    assert told["unlimited"]["seconds"] == forecast.free.seconds
    assert told["real_seconds"] == forecast.figures.real + forecast.free.real


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "setup",
    [Setup(100, 1, 1), Setup(100, 1, 1, store="gcs", climate=Climate())],
    ids=["adls", "none"],
)
def test_without_a_ramp_nothing_is_compared(setup: Setup) -> None:
    """Where the limit stays, or is none, one commit is simulated."""
    forecast = simulate(setup)

    assert forecast.free is None
    assert forecast.to_json()["unlimited"] is None


def test_json_says_how_it_is_known() -> None:
    """A program sees whether figures are extrapolated, from what, and what was asked."""
    found = simulate(Setup(files=1_000, tasks=10, partitions=5, exact=300, seed=5)).to_json()

    assert found["extrapolated"] is True
    assert [one["files"] for one in found["simulated"]] == [100, 300]
    assert (found["files"], found["tasks"], found["partitions"]) == (1_000, 10, 5)
    assert found["all_requests"] == sum(found["requests"].values())
    assert found["files_per_second"] == pytest.approx(1_000 / found["seconds"])
    assert found["memory"]["engine"] == max(0, found["memory"]["grown"] - found["memory"]["model"])
    assert found["setup"]["seed"] == 5


def test_the_smallest_job_can_be_simulated() -> None:
    """One file, and a bound of one file, are numbers like others."""
    assert simulate(Setup(files=1, tasks=1, partitions=1)).figures.files == 1
    assert simulate(Setup(files=2, tasks=2, partitions=2, exact=1)).extrapolated

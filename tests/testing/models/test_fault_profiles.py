"""Named weather does what its name says."""

from __future__ import annotations

import random

import pytest

from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate, FaultInjector

SHARES = {
    "none": {},
    "lossy": {"cut": 0.05},
    "throttled": {"before": 0.1},
    "storm": {"cut": 0.05, "after": 0.02, "late": 0.01, "before": 0.01},
    "late": {"late": 0.1},
}


@pytest.mark.parametrize("name", CLIMATES)
def test_a_climate_strikes_as_often_as_it_says(name: str) -> None:
    """Of ten thousand renames about the share is struck that the climate's text says."""
    weather = FaultInjector(random.Random(1), lambda: 0.0, CLIMATES[name])
    for _ in range(10_000):
        weather.decide("rename", "data/a")

    struck = {kind.partition(" ")[0]: number / 10_000 for kind, number in weather.struck.items()}

    assert struck == pytest.approx(SHARES[name], abs=0.01)


@pytest.mark.parametrize("name", CLIMATES)
def test_a_climate_can_be_written_down(name: str) -> None:
    """A named climate is one that a file could hold."""
    assert Climate.from_json(CLIMATES[name].to_json()) == CLIMATES[name]

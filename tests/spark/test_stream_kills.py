"""Drivers of Spark's file sink that are killed at random moments of their batches."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.stream_kills import ROWS, Weather

pytestmark = [pytest.mark.every(8), pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.full
@pytest.mark.parametrize("seed", [1])
def test_killed_drivers(tmp_path: Path, seed: int) -> None:
    """Each row is in the table once, and no file that is in no batch, whenever drivers die."""
    weather = Weather(tmp_path, random.Random(seed))
    for _ in range(3):
        weather.fill()
        weather.kill()
    weather.finish()

    rows, listed, there = weather.seen()
    assert rows == list(range(weather.files * ROWS))
    assert there == listed
    assert weather.announced() == []

"""Job commits by block lists on a flat account of Azure: crash points, sleepers and storms.

The jobs are those of the tests with S3, over the store that users have. Uncommitted blocks cannot
be deleted there, so only time keeps a late block list out.
"""

from __future__ import annotations

import os

import pytest

from asynccommit.testing.models.crashes import When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_points import ACTS, LATE_ONES, SCENARIOS, TURNS, points
from tests.crash.test_uploads_races import asleep, violations
from tests.support.flat_crashes import FlatWorld
from tests.support.upload_jobs import Scenario

SEEDS = int(os.environ.get("ASYNCCOMMIT_CRASH_SEEDS", "40"))
GROUP = 20


@pytest.mark.sample(3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crash_at_every_write(scenario: Scenario) -> None:
    """Resumed, the job ends as undisturbed; rolled back, all is as before."""
    assert run_virtual(points(scenario, When.AFTER, None, TURNS, of=FlatWorld)) == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_request_that_comes_late(scenario: Scenario) -> None:
    """A request of a dead driver that arrives after the end changes nothing that readers see."""
    assert run_virtual(points(scenario, When.LATE, LATE_ONES, TURNS, of=FlatWorld)) == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("scenario", [SCENARIOS[0], SCENARIOS[3], SCENARIOS[7]], ids=str)
def test_a_driver_that_stood_still(scenario: Scenario, name: str, after: bool) -> None:
    """Whoever goes on after others have ended the commit changes nothing, and is told the truth."""
    assert run_virtual(asleep(scenario, name, after=after, of=FlatWorld)) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_no_seed_finds_anything(first: int) -> None:
    """In a storm with several drivers the job ends whole or undone, whatever the seed."""
    seeds = range(first, min(first + GROUP, SEEDS))

    assert [text for seed in seeds for text in run_virtual(violations(seed, of=FlatWorld))] == []

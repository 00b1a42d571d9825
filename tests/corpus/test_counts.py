"""The crash tests try as much as they did when the table was written."""

from __future__ import annotations

import pytest

from tests.corpus import counts
from tests.corpus.deaths import cases, subject, writes
from tests.crash.simulator import SIMULATIONS

RECORDED = counts.load()


def test_the_table_knows_all_crash_scenarios() -> None:
    """Neither work nor a simulation has gone from the tests, nor come without a line."""
    points = RECORDED["write points"]

    assert {(store, name) for store, rows in points.items() for name in rows} == {*cases()}
    assert RECORDED["strikes"].keys() == SIMULATIONS.keys()


@pytest.mark.more
@pytest.mark.sample(20)
@pytest.mark.parametrize("store, name", cases())
def test_no_write_point_is_lost(store: str, name: str) -> None:
    """Work has no fewer points at which its process can die."""
    assert writes(store, subject(store, name)) >= RECORDED["write points"][store][name]


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("simulation", SIMULATIONS)
def test_no_actor_strikes_less(simulation: str) -> None:
    """The same seeds meet each actor as often, but for chance."""
    struck = counts.strikes(simulation)
    fewer = {
        actor: (struck.get(actor, 0), before)
        for actor, before in RECORDED["strikes"][simulation].items()
        if struck.get(actor, 0) < counts.least(before)
    }

    assert fewer == {}

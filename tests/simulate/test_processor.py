"""A forecast with the processor's time, shared by workers."""

from __future__ import annotations

from dataclasses import replace

from asynccommit.simulate.processor import LOAD_STAGE, planning_seconds
from asynccommit.simulate.setup import Setup
from asynccommit.simulate.steady import simulate

# A hundred requests a second of one processor are far below everything else that bounds the rate.
SLOW = Setup(files=300, tasks=3, partitions=3, cpu=0.01)


def test_requests_take_the_processor_one_after_another() -> None:
    """The commit takes as long as the processor does, which the stages show."""
    without, figures = (simulate(_).figures for _ in (replace(SLOW, cpu=0.0), SLOW))
    busy = sum(figures.requests.values()) * SLOW.cpu + planning_seconds(SLOW)

    assert without.seconds < 2 < busy <= figures.seconds < busy + 2
    assert figures.stages[LOAD_STAGE] >= planning_seconds(SLOW) == 0.21 * 3
    assert figures.requests == without.requests


def test_workers_have_a_processor_each() -> None:
    """Four workers take a quarter of the time that the processor takes."""
    one, four = (simulate(replace(SLOW, workers=_)).figures for _ in (1, 4))

    assert 3 < one.seconds / four.seconds < 4.2

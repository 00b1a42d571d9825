"""Deaths between a JVM and its engine, at any byte of what they say to each other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from asynccommit.spark.channel import GONE
from tests.crash import children
from tests.crash.simulator import idle, run
from tests.support.child import FIRST
from tests.support.selection import amount

SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=3, full=30)


@pytest.mark.more
@pytest.mark.timeout(600)
def test_whoever_dies_jobs_are_whole_or_not_begun() -> None:
    """A commit whose request arrived whole can be finished; no other one has begun."""
    one = run("children", range(SEEDS))

    assert one.failures == ()
    assert idle([one]) == []


@pytest.mark.full
def test_an_engine_that_outlives_its_jvm_is_found() -> None:
    """The simulation bites: an engine that goes on after its input has ended."""
    found = children.problems(1, deaf=True, patience=1)

    assert any("has not ended with its JVM" in text for text in found)


@pytest.mark.full
def test_a_jvm_that_dies_before_the_first_frame_ends_the_engine(tmp_path: Path) -> None:
    """It ends as at any later byte, without a traceback in the driver's log."""
    with closing(children.Jvm(tmp_path)) as jvm:
        jvm.send(FIRST[:5])

        assert jvm.die(children.PATIENCE) == GONE
    assert "Traceback" not in (tmp_path / "log").read_text("utf-8")

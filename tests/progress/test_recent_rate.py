"""The rate of the last seconds."""

from __future__ import annotations

import pytest

from asynccommit.progress.recent_rate import WINDOW, RecentRate


def test_rate_of_a_steady_job_is_its_average() -> None:
    """At a steady speed the window makes no difference."""
    recent = RecentRate(5.0)
    for second in range(100):
        recent.note(5.0 + second, 7 * second)

    assert recent.at(104.0) == pytest.approx(7.0)


def test_batches_do_not_make_the_rate_jump() -> None:
    """Items that are counted in batches have the rate of the batches together."""
    recent = RecentRate(0.0)
    for batch in range(1, 12):
        recent.note(batch * 2.0, batch * 1024)

    assert recent.at(22.0) == pytest.approx(512, rel=0.2)


def test_nothing_for_longer_than_the_window_is_no_rate() -> None:
    """A job that hangs has no rate after a while, and so no remaining time."""
    recent = RecentRate(0.0)
    recent.note(1.0, 100)

    assert recent.at(1.0) == 100
    assert recent.at(1.0 + 2 * WINDOW) == 0.0


def test_no_time_is_no_rate() -> None:
    """There is no division by zero at the begin."""
    assert RecentRate(3.0).at(3.0) == 0.0

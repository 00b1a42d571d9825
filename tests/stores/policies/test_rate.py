"""Throttle spaces requests at a fixed rate with a small burst."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.rate import Throttle
from tests.support.stack import Answers, Clock, head


@pytest.mark.parametrize("rate, burst", [(1000, 100), (50, 5), (10, 1), (2, 1), (0.5, 1)])
async def test_a_burst_is_a_tenth_of_a_second(clock: Clock, rate: float, burst: int) -> None:
    """At once leaves a tenth of a second's worth, at least one; then the rate holds."""
    answers = Answers()
    call = Throttle(rate).around(answers)
    tasks = [asyncio.ensure_future(call(head())) for _ in range(3 * burst)]
    await clock.settle()
    assert len(answers.ops) == burst
    await clock.advance(burst / rate + 1e-6)
    assert len(answers.ops) == 2 * burst
    await clock.advance(burst / rate + 1e-6)
    await asyncio.gather(*tasks)
    assert len(answers.ops) == 3 * burst


async def test_each_file_that_is_renamed_together_pays(clock: Clock) -> None:
    """Many renames in one call leave no sooner than they would one by one."""
    answers = Answers()
    call = Throttle(10).around(answers)
    together = asyncio.ensure_future(
        call(Op("rename_many", ([("/a", "/b"), ("/c", "/d"), ("/e", "/f")],), True, False))
    )
    await clock.settle()
    await clock.advance(0.1 + 1e-6)
    assert answers.ops == []
    await clock.advance(0.1 + 1e-6)
    await together
    assert len(answers.ops) == 1


def test_no_rate_costs_nothing() -> None:
    """Without a rate the call is left as it is."""
    answers = Answers()
    assert Throttle(None).around(answers) is answers


@given(st.floats(max_value=0) | st.just(float("nan")))
def test_a_rate_that_is_not_above_zero_is_refused(rate: float) -> None:
    """A rate that lets nothing through is a mistake."""
    with pytest.raises(ValueError, match="rate"):
        Throttle(rate)

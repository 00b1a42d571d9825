"""Times of requests by method, and the bound on their number."""

from __future__ import annotations

import pytest

from asynccommit.errors import NotFoundError, ThrottledError
from asynccommit.loadtest.measure import BudgetSpentError, MethodTimes, RequestBudget, Timings
from asynccommit.loadtest.report import RequestTimes
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.testing.models.fault_rules import BEFORE, Fault
from tests.loadtest.accounts import Account, on_account


def test_percentiles() -> None:
    """Of a hundred different times each percentile is the time of that number."""
    times = MethodTimes()
    times.seconds.extend(float(number) for number in range(100, 0, -1))
    times.refused, times.failed = 7, 2

    found = times.figures()

    assert (found.sent, found.refused, found.failed) == (109, 7, 2)
    assert (found.p50, found.p90, found.p99, found.longest) == (50.0, 90.0, 99.0, 100.0)
    assert MethodTimes().figures() == RequestTimes(0)


def test_requests_are_timed() -> None:
    """Answers by their time; refusals and failures are counted and not timed."""

    async def work(account: Account) -> dict[str, RequestTimes]:
        timings = Timings()
        store = Wrapped(account.world.model.store, timings)
        await store.mkdir("/d")
        await store.head("/d")
        with pytest.raises(NotFoundError):
            await store.head("/none")
        with pytest.raises(ThrottledError):
            await store.head("/d")
        return {name: times.figures() for name, times in timings.methods.items()}

    busy = Fault(BEFORE, "head", skip=2, code="ServerBusy", times=1)
    found = on_account(work, busy, latency=0.05)

    assert found["mkdir"].p50 == pytest.approx(0.05)
    head = found["head"]
    assert (head.sent, head.refused, head.failed) == (3, 1, 1)
    assert head.longest == pytest.approx(0.05)


def test_no_request_is_sent_beyond_the_bound() -> None:
    """A write of several requests counts as so many; the bound can be lifted."""

    async def work(account: Account) -> tuple[int, int]:
        store = account.world.model.store
        budget = RequestBudget(store)
        wrapped = Wrapped(store, budget)
        budget.most = 6
        await wrapped.mkdir("/d")
        await wrapped.put("/d/f", b"1")
        with pytest.raises(BudgetSpentError, match="max_requests"):
            await wrapped.put("/d/g", b"1")
        await wrapped.head("/d/f")
        assert budget.is_spent
        budget.lift()
        await wrapped.put("/d/g", b"1")
        return budget.sent, store.traits.costs["put"]

    assert on_account(work) == (10, 4)

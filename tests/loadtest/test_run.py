"""A whole load test: what it finds, within its bounds, and that nothing is left."""

from __future__ import annotations

import asyncio

import pytest

from asynccommit.commit.meter import Progress
from asynccommit.errors import AsyncCommitError, OptionError
from asynccommit.loadtest import LoadReport, LoadSettings
from asynccommit.testing.models.fault_rules import BEFORE, Fault
from tests.loadtest.accounts import Account, on_account

STEPS = ["write", "commit", "press reads", "move", "press writes", "verify", "delete"]


def test_the_limit_of_an_account_is_found() -> None:
    """Reads and writes are accepted at nearly the limit, and the report says that it is one."""
    report = on_account(lambda it: it.run(files=300, press_seconds=5), limit=1500)

    assert list(report.steps) == STEPS
    for kind in ("reads", "writes"):
        assert report.rates[kind].per_second == pytest.approx(1500, rel=0.05)
        assert report.rates[kind].limited
    assert 0 < report.refused < 0.05 * report.requests
    assert (report.files, report.stopped, report.left) == (300, "", "")


def test_without_a_limit_the_latency_bounds_the_rate() -> None:
    """Requests in flight divided by the latency; nothing is refused, so it may be more."""
    report = on_account(lambda it: it.run(files=200, press_seconds=2))

    for kind in ("reads", "writes"):
        assert report.rates[kind].per_second == pytest.approx(64 / 0.02, rel=0.05)
        assert not report.rates[kind].limited
    rename = report.methods["rename"]
    assert [rename.p50, rename.p99] == pytest.approx([0.02, 0.02])
    assert report.refused == 0


def test_a_rate_that_was_asked_for_is_kept() -> None:
    """A load test of an account in use can be kept below what it bears."""
    report = on_account(lambda it: it.run(files=200, rate=200, press_seconds=5))

    for kind in ("reads", "writes"):
        assert report.rates[kind].per_second == pytest.approx(200, rel=0.05)
        assert not report.rates[kind].limited


@pytest.mark.parametrize("most", [1_500, pytest.param(20_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("store", ["adls", "gcs", "gcs-hns"])
def test_no_more_requests_are_sent_than_allowed(store: str, most: int) -> None:
    """The number of files is adapted, and the clean-up is part of the bound."""

    async def work(account: Account) -> tuple[LoadReport, int, list[str]]:
        report = await account.run(max_requests=most, max_seconds=3_000)
        return report, account.requests, await account.left()

    report, sent, left = on_account(work, store=store, limit=1_000)

    assert sent <= most
    assert report.requests <= most
    assert report.files > 0
    assert not report.stopped
    assert [path for path in left if "loadtest" in path] == []


def test_too_few_requests_are_refused() -> None:
    """A bound that allows no file names the least that does, and nothing is sent."""

    async def work(account: Account) -> int:
        with pytest.raises(OptionError, match="max_requests is 100: expected at least 874"):
            await account.run(max_requests=100)
        return account.requests

    assert on_account(work) == 0
    assert on_account(lambda it: it.run(max_requests=874)).files == 1


def test_a_slow_account_is_measured_with_fewer_files() -> None:
    """All steps fit into the default time, and the report says how many files were written."""
    report = on_account(lambda it: it.run(files=2_000, max_seconds=60), latency=0.1, limit=200.0)

    assert (report.stopped, [*report.steps]) == ("", STEPS)
    assert 100 < report.files < report.planned == 2_000
    assert {*report.rates} == {"reads", "writes", "deletes"}


@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0])
def test_the_time_ends_the_measurements(seconds: float) -> None:
    """What was measured is reported, and all is deleted."""

    async def work(account: Account) -> tuple[LoadReport, list[str]]:
        return await account.run(files=500, max_seconds=seconds), await account.left()

    report, left = on_account(work, latency=0.1, limit=200.0)

    assert report.stopped == "max_seconds"
    assert report.seconds < seconds + 10
    assert left == []
    assert set(report.steps) < set(STEPS)


def test_a_failure_leaves_nothing() -> None:
    """A request that is denied ends the test with its error, after the clean-up."""

    async def work(account: Account) -> list[str]:
        with pytest.raises(AsyncCommitError, match="AuthorizationPermissionMismatch"):
            await account.run(files=50)
        return await account.left()

    denied = Fault(BEFORE, "rename", code="AuthorizationPermissionMismatch", skip=60)

    assert on_account(work, denied) == []


def test_a_cancelled_run_leaves_nothing() -> None:
    """The clean-up is not cancelled."""

    async def work(account: Account) -> list[str]:
        running = asyncio.create_task(account.run(files=500))
        await asyncio.sleep(2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await account.left()

    assert on_account(work, latency=0.1) == []


def test_progress_names_the_steps() -> None:
    """It is reported a few times a second, with the number of requests."""
    seen: list[Progress] = []

    async def work(account: Account) -> None:
        settings = LoadSettings(files=100, press_seconds=1, forecast=False)
        await account.load_run(settings).run(seen.append)

    on_account(work, latency=0.1)

    assert [step for step in STEPS if step in {it.stage for it in seen}] == STEPS
    assert [it.done for it in seen] == sorted(it.done for it in seen)


@pytest.mark.full
def test_a_million_files_are_forecast() -> None:
    """By the model of the store, with the latency and the rate that were measured."""

    async def work(account: Account) -> LoadReport:
        return await account.load_run(LoadSettings(files=200, press_seconds=5)).run()

    report = on_account(work, limit=1000)

    assert report.forecast is not None
    assert report.forecast.how == "simulated"
    assert 1_000 < report.forecast.seconds < 1_150

"""A worker sleeps, its job is rolled back and run again under its id: then the worker wakes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.commit.planning import plan_file
from asynccommit.commit.slices import hand_out
from asynccommit.commit.slices.permit import Permit
from asynccommit.testing.models.crashes import Suspension
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import commit, driver, run_tasks
from tests.crash.recovery import ready, until_death
from tests.crash.scenarios import APPEND
from tests.crash.slices import violations
from tests.crash.workers import SimRunner, first
from tests.support.crashes import DEST
from tests.support.strikes import strike


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice have two rows, on every store."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)
    monkeypatch.setattr(hand_out, "why_alone", lambda run, plan: "")


async def rerun(world: str, request: int) -> tuple[int, list[str]]:
    """Return how many workers woke, and what of the next run they have changed."""
    job, made = await ready(APPEND, world)
    who = driver(made, APPEND, "driver")
    who.job._runner = runner = SimRunner(made, first(Suspension(request, 1e6)))
    task = asyncio.create_task(commit(APPEND, who, job.tasks))
    await asyncio.sleep(60)
    if task.done():  # no slice had so many requests
        return 0, []
    who.process.kill()
    await until_death(who, task)
    await driver(made, APPEND, "second", machine="laptop").job.rollback_job(force=True)
    await run_tasks(made, APPEND, "setup-again")
    before = files(made)
    slept = len(runner.asleep)
    strike("worker slept through a rerun")
    await runner.end()
    return slept, sorted(before ^ files(made))


def files(world: Any) -> set[str]:
    """Return the files of the table and of tasks; late words of owners are no harm."""
    held = {path for path, item in world.tree().items() if item.data is not None}
    return {path for path in held if "/commit-" not in path and path.startswith(DEST)}


REQUESTS = range(2, 8)


@pytest.mark.sample(1)
@pytest.mark.every(4)
@pytest.mark.parametrize("world", ["adls", "flat", "hdfs"])
def test_a_worker_that_wakes_after_a_rerun_changes_nothing(world: str) -> None:
    """Its permit has ended, whatever the store would have done."""
    found = [run_virtual(rerun(world, request)) for request in REQUESTS]

    assert sum(slept for slept, _ in found) >= 3
    assert [changed for _, changed in found if changed] == []


@pytest.mark.full
@pytest.mark.every(4)
def test_without_a_permit_it_publishes_files_of_the_rerun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no request names the file that it moves, nothing but the permit prevents that."""
    monkeypatch.setattr(Permit, "check", lambda self: None)
    found: list[str] = []
    for request in REQUESTS:
        with suppress(KeyError):
            found += run_virtual(rerun("hdfs", request))[1]

    assert any("/_temporary/" not in path for path in found), found


@pytest.mark.full
@pytest.mark.every(4)
def test_a_tally_that_is_counted_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice is counted once, however often it was done."""
    took = hand_out.Slicing._took

    def twice(self: Any, run: Any, tally: Any) -> None:
        took(self, run, tally)
        took(self, run, tally)

    seeds = range(4)
    assert [run_virtual(violations(seed, "adls")) for seed in seeds] == [[]] * len(seeds)
    monkeypatch.setattr(hand_out.Slicing, "_took", twice)
    found = [text for seed in seeds for text in run_virtual(violations(seed, "adls"))]
    assert any("workers are said to have renamed" in text for text in found), found

"""Commits with workers that die, sleep, come late and run twice; drivers that die meanwhile."""

from __future__ import annotations

import pytest

from asynccommit.commit.planning import plan_file
from asynccommit.errors import CommittedError
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Scenario, commit, driver
from tests.crash.recovery import Hand, has_begun, ready, until_death
from tests.crash.scenarios import APPEND, FRESH
from tests.crash.workers import SimRunner, fates, first
from tests.support.strikes import strike

FATES = dict(fates())


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice have two rows."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)


@pytest.mark.sample(4)
@pytest.mark.every(4)
@pytest.mark.parametrize("scenario", [FRESH, APPEND], ids=str)
@pytest.mark.parametrize("world", ["adls", "flat"])
@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("twice", [False, True])
def test_a_commit_with_workers_ends_as_one_without(
    scenario: Scenario, world: str, fate: str, twice: bool
) -> None:
    """A slice of a worker that is lost is done again."""

    async def run() -> list[str]:
        job, made = await ready(scenario, world)
        who = driver(made, scenario, "driver")
        runner = SimRunner(made, first(FATES[fate]), twice)
        who.job._runner = runner
        report = await commit(scenario, who, job.tasks)
        await runner.end()
        assert runner.tallies, report.warnings
        assert sum(tally.rows for tally in runner.tallies) == report.files
        assert runner.struck or fate == "well"
        return job.committed(made.tree(), late=fate != "well" or twice)

    assert run_virtual(run()) == []


@pytest.mark.sample(4)
@pytest.mark.every(4)
@pytest.mark.parametrize("world", ["adls", "flat"])
@pytest.mark.parametrize("death", range(6, 24, 2))
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("fate", ["well", "sleeps-3", "sleeps-5", "sleeps-6"])
def test_one_process_ends_what_a_dead_driver_and_its_workers_began(
    world: str, death: int, act: str, fate: str
) -> None:
    """Workers go on until their grants end, and those that sleep do no harm when they wake."""

    async def run() -> list[str]:
        job, made = await ready(APPEND, world)
        who = driver(made, APPEND, "driver", crash=Crash(death, When.AFTER))
        runner = SimRunner(made, first(FATES[fate]))
        who.job._runner = runner
        await until_death(who, commit(APPEND, who, job.tasks))
        if not has_begun(made.tree()):
            return []
        strike("driver of workers died")
        strike(f"workers had begun: {bool(runner.tasks)}")
        try:
            await Hand(job, made, "second").act(act)
        except CommittedError:
            await Hand(job, made, "third").act("resume")
            await runner.end()
            return job.committed(made.tree(), late=True)
        await runner.end()
        ended = job.committed if act == "resume" else job.undone
        return ended(made.tree(), late=True)

    assert run_virtual(run()) == []

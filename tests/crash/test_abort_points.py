"""Every write of an abort is a crash point: whoever comes next may end it, without any force."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asynccommit.commit.by_rename import record
from asynccommit.commit.ownership import flat_namespace
from asynccommit.commit.planning.plan_file import PlanWriter, drop_plan
from asynccommit.errors import CommitError
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Scenario, commit, driver
from tests.crash.recovery import ATTEMPT_DIR, places, ready, until_death
from tests.crash.scenarios import FRESH, SMALLEST
from tests.crash.worlds import FLAT, KINDS


async def aborted_twice(scenario: Scenario, kind: str) -> list[str]:
    """Die at every write of an abort; return where the next one was refused or left anything."""
    _, world = await ready(scenario, kind)
    whole = driver(world.copy(), scenario, "first")
    await whole.job.abort_job(careful=True)
    problems = []
    for crash in places(len(whole.process.writes), once=kind in FLAT):
        there = world.copy()
        first = driver(there, scenario, "first", crash=crash)
        await until_death(first, first.job.abort_job(careful=True))
        died = f"died {crash.when.value} write {crash.write}, {first.process.writes[-1]}"
        try:
            await driver(there, scenario, "second").job.abort_job(careful=True)
        except Exception as error:
            problems.append(f"{died}: {type(error).__name__}: {error}")
        left = [path for path in there.tree() if path.startswith(ATTEMPT_DIR)]
        problems += [f"{died}: left {left}"] if left else []
    return problems


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", [SMALLEST, FRESH], ids=str)
def test_an_abort_is_ended_by_another(scenario: Scenario, kind: str) -> None:
    """The job of an abort that was killed counts as dead, and the next abort deletes the rest."""
    assert run_virtual(aborted_twice(scenario, kind)) == []


class Crossing:
    """An abort that lists before a commit writes its plan, and ends before that takes it back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._listed, self._refused, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._save, self._drop = PlanWriter.begin, drop_plan
        self._require = flat_namespace._require_record
        monkeypatch.setattr(PlanWriter, "begin", lambda *args: self._save_plan(*args))
        monkeypatch.setattr(record, "drop_plan", self._drop_plan)
        monkeypatch.setattr(flat_namespace, "_require_record", self._require_record)

    async def _save_plan(self, *args: Any) -> Any:
        await self._listed.wait()
        return await self._save(*args)

    async def _drop_plan(self, *args: Any) -> None:
        self._refused.set()
        await self.ended.wait()
        await self._drop(*args)

    async def _require_record(self, *args: Any) -> None:
        self._listed.set()
        await self._refused.wait()
        await self._require(*args)


@pytest.mark.parametrize("kind", FLAT)
def test_an_abort_and_a_commit_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever ends last, no directory of the job is left, though each was in the other's way."""

    async def run() -> list[str]:
        job, world = await ready(FRESH, kind)
        crossing = Crossing(monkeypatch)
        committing = asyncio.create_task(commit(FRESH, driver(world, FRESH, "first"), job.tasks))
        await driver(world, FRESH, "other").job.abort_job(careful=True)
        crossing.ended.set()
        with pytest.raises(CommitError, match="was aborted"):
            await committing
        return [path for path in world.tree() if "/_temporary" in path]

    assert run_virtual(run()) == []

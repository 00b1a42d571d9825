"""The state of a commit with workers: its record has an index, which has the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.commit.orders import GRANT
from asynccommit.commit.ownership.status import CommitState, read_state
from asynccommit.commit.planning import plan_file
from asynccommit.errors import ManifestError, NotFoundError
from asynccommit.testing.models.crashes import Process
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import commit, driver
from tests.crash.recovery import Job, ready, until_death
from tests.crash.scenarios import FRESH
from tests.crash.workers import SimRunner
from tests.support.crashes import ModelWorld


@pytest.fixture(autouse=True)
def many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a plan of a few rows have several chunks, which workers do."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 2)


async def begun() -> tuple[Job, ModelWorld, Any]:
    """Return a commit with workers whose driver has died while they were at work."""
    job, made = await ready(FRESH)
    who = driver(made, FRESH, "driver")
    who.job._runner = SimRunner(made)
    task = asyncio.create_task(commit(FRESH, who, job.tasks))
    await asyncio.sleep(1)
    assert any(path.endswith("/grants.json") for path in made.tree())
    who.process.kill()
    await until_death(who, task)
    return job, made, driver(made, FRESH, "second", machine="laptop")


async def state_of(who: Any) -> CommitState:
    """Return what another process knows of it."""
    found = await read_state(who.store, who.job.layout)
    assert found is not None
    return found


def test_the_index_has_the_tasks_and_the_chunks() -> None:
    """Whoever resumes needs to know nothing of workers."""

    async def run() -> tuple[Job, CommitState]:
        job, _, who = await begun()
        return job, await state_of(who)

    job, state = run_virtual(run())
    assert state.record.grant == GRANT
    assert state.record.tasks == {task.task_id: task.attempt_id for task in job.tasks}
    assert state.record.plan


@pytest.mark.parametrize(
    "change,why",
    [
        (lambda data: None, "is missing, though the commit record names it"),
        (lambda data: data + b" ", "is not the index that the commit record names"),
    ],
)
def test_another_index_is_refused(change: Callable[[bytes], bytes | None], why: str) -> None:
    """Nothing of a plan that somebody else has written is obeyed."""

    async def run() -> None:
        _, made, who = await begun()
        store = made.store(Process("stranger"))
        path = who.job.layout.plan_index((await state_of(who)).record.plan_id)
        data = change(await store.get(path, 1 << 20))
        with suppress(NotFoundError):
            await store.delete(path)
        if data is not None:
            await store.put(path, data)
        with pytest.raises(ManifestError, match=why):
            await state_of(who)

    run_virtual(run())


def test_a_takeover_waits_until_no_worker_sends_anything() -> None:
    """The owner's process is dead, but its workers live elsewhere."""

    async def run() -> float:
        _, _, who = await begun()
        clock = asyncio.get_running_loop().time
        begin = clock()
        await who.job.resume_job(force=True)
        return clock() - begin

    assert run_virtual(run()) >= GRANT

"""An upload of a task comes once more: other versions of the same content, at any moment."""

from __future__ import annotations

import random
from itertools import cycle

import pytest

from asynccommit.commit.steps import undo_renames
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.checks import Check
from tests.crash.jobs import JOB_DIR, Scenario
from tests.crash.recovery import Hand, ready
from tests.crash.scenarios import REPLACE_PARTITIONS, SMALLEST, UNTAGGED
from tests.crash.test_planted import bites
from tests.crash.test_points import ACTS, crashed
from tests.crash.test_zombies import Meeting, meet, meetings
from tests.crash.worlds import FLAT
from tests.support.crashes import ModelWorld
from tests.support.selection import amount

SOME = (SMALLEST, REPLACE_PARTITIONS, UNTAGGED)
MEETINGS = amount("ASYNCCOMMIT_MEETINGS", quick=20, full=40)


def upload_again(world: ModelWorld) -> None:
    """Let all that tasks have in their directories come once more."""
    for path, item in world.tree().items():
        if path.startswith(f"{JOB_DIR}/00/tasks/") and item.data is not None:
            world.place(path, item.data.decode())


async def points(scenario: Scenario, kind: str, *, before: bool) -> list[str]:
    """Die at every write; the uploads come ``before`` the commit, or after the crash."""
    job, world = await ready(scenario, kind)
    if before:
        upload_again(world)
    problems, acts = [], cycle(ACTS)
    async for name, there in crashed(job, world, once=True):
        act = next(acts)
        if not before:
            upload_again(there)
        found = await Hand(job, there, "second").end(act)
        problems += [f"{name}; {act}: {text}" for text in found]
    return problems


@pytest.mark.every(3)
@pytest.mark.sample(2)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("scenario", SOME, ids=str)
def test_a_crash_at_every_write(scenario: Scenario, kind: str, before: bool) -> None:
    """Resumed, it ends as undisturbed; rolled back, as before."""
    assert run_virtual(points(scenario, kind, before=before)) == []


async def encounters(scenario: Scenario, kind: str, ways: list[Meeting]) -> list[str]:
    """Let drivers meet in such ways, each after the uploads have come once more."""
    job, world = await ready(scenario, kind)
    upload_again(world)
    for way in ways:
        if found := await meet(job, world.copy(), way):
            return [f"{way}: {text}" for text in found]
    return []


async def drawn(scenario: Scenario, kind: str, count: int) -> list[Meeting]:
    """Return so many of the ways in which two drivers can meet."""
    job, world = await ready(scenario, kind)
    upload_again(world)
    ways = await meetings(job, world)
    return random.Random(f"{scenario} {kind}").sample(ways, min(count, len(ways)))


@pytest.mark.every(3)
@pytest.mark.more
@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("scenario", [SMALLEST, REPLACE_PARTITIONS], ids=str)
def test_some_meetings(scenario: Scenario, kind: str) -> None:
    """Whenever a driver sleeps and wakes, the job ends whole or undone, as was said."""
    ways = run_virtual(drawn(scenario, kind, MEETINGS))

    assert run_virtual(encounters(scenario, kind, ways)) == []


def late_renames(kind: str) -> Check:
    """Return the check in which one request of a commit is held while another rolls back."""

    async def run() -> list[str]:
        ways = [
            way
            for way in await drawn(SMALLEST, kind, 100_000)
            if (way.first, way.second) == ("commit", "rollback") and way.alone and not way.dies
        ]
        return await encounters(SMALLEST, kind, ways)

    return lambda: run_virtual(run())


@pytest.mark.full
def test_a_rollback_that_leaves_them_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename that names the other version comes late, if the rollback leaves that where it is."""

    async def nothing(*_: object) -> None:
        """Delete nothing."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(undo_renames, "_delete_twin", nothing)

    bites(plant, late_renames("flat"), monkeypatch)

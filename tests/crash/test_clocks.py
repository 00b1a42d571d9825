"""Machines with other clocks abort jobs that send no heartbeats: the store's clock tells ages."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from asynccommit.commit.context import CommitContext
from asynccommit.commit.driver import liveness
from asynccommit.commit.driver.liveness import QUIET
from asynccommit.errors import OwnedError
from asynccommit.stores.base import Store
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import JOB_DIR, driver
from tests.crash.scenarios import SMALLEST
from tests.crash.worlds import KINDS, new_world
from tests.support.selection import amount

SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=4, full=200)
ROUNDS = 6
WRONG = (-30, -5, -2, 2, 5, 30)
"""Days by which the clocks of machines are wrong."""


async def story(kind: str, seed: int) -> tuple[int, list[str]]:
    """Return how often a wrong clock mattered, and what went wrong."""
    rng, world = random.Random(seed), new_world(kind, seed)
    writer, struck, problems = driver(world, SMALLEST, "writer"), 0, list[str]()
    place = f"{JOB_DIR}/00/tasks/attempt"
    for turn in range(ROUNDS):
        if writer.store.traits.directories:
            await writer.store.mkdir(place)
        await writer.store.put(f"{place}/part-{turn}", b"data")
        quiet, skew = rng.uniform(0.1, 1.9) * QUIET, rng.choice(WRONG) * QUIET
        await asyncio.sleep(quiet)
        other = driver(world, SMALLEST, f"other-{turn}", machine="elsewhere", skew=skew)
        with suppress(OwnedError):
            await other.job.abort_job("unused", careful=True)
        old, gone = quiet > QUIET, not any(path.startswith(JOB_DIR) for path in world.tree())
        struck += old != (quiet + skew > QUIET)
        if old != gone:
            done = "deleted" if gone else "kept"
            problems.append(f"{seed}: {done} after {quiet / QUIET:.2f} days, {skew / QUIET:+} days")
    return struck, problems


def tell(kind: str) -> tuple[int, list[str]]:
    """Add up the stories of some seeds."""
    found = [run_virtual(story(kind, seed)) for seed in range(SEEDS)]
    return sum(struck for struck, _ in found), [text for _, some in found for text in some]


@pytest.mark.every(2)
@pytest.mark.rotate("kind", keep=1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_with_another_clock(kind: str) -> None:
    """It deletes what was not changed for a day, and nothing else."""
    struck, problems = tell(kind)

    assert struck
    assert problems == []


def test_a_clock_that_is_believed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stories tell a job that asks its own machine for the time."""

    async def believe(run: CommitContext, store: Store) -> float:
        return run.host.now()

    monkeypatch.setattr(liveness, "_now", believe)
    _, problems = tell("adls")

    assert any("deleted" in text for text in problems)
    assert any("kept" in text for text in problems)

"""What it takes to see that everything is there."""

from __future__ import annotations

from collections import Counter

import pytest

from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.stats import Stats
from tests.support.upload_jobs import ROOT, Scenario, alone, committer

PLACES = [f"{ROOT}/p={number}" for number in range(4)]
MANY = Scenario("many", tuple({f"p={n}/part-{task}": "x" for n in range(4)} for task in range(3)))


class _Listed:
    """A policy that counts the listings of each directory."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> object:
            self.counts[op.path] += op.name == "list"
            return await call(op)

        return around


@pytest.mark.parametrize("old, listings", [("", 1), ("p=0/old", 2), ("near/old", 1)])
async def test_how_often_a_partition_is_listed(old: str, listings: int) -> None:
    """One that is new is listed when all is there; one that was there also before anything is
    changed, so that a conflict is refused in time."""
    there = [f"{place}/old" for place in PLACES] if old.startswith("p=") else [f"{ROOT}/{old}"]
    world, tasks = alone(Scenario("many", MANY.tasks, {path: "old" for path in there if old}))
    listed, stats = _Listed(), Stats("sent")
    await committer(world, MANY, listed, stats).commit_job(tasks)

    assert [listed.counts[place] for place in PLACES] == [listings] * 4
    assert stats.counts["complete_upload"].n == 12
    # One for each set, and 23 whatever the job writes.
    assert stats.n == 12 + 4 * listings + 3 + 23

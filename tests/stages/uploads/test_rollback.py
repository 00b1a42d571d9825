"""Whose a file without a token is, when a commit is undone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from asynccommit.sim.crashes import Crash, When
from asynccommit.sim.loop import run_virtual
from asynccommit.sim.s3.client import SimS3Store
from asynccommit.store import Traits
from asynccommit.urls import Address
from asynccommit.wrappers.base import Wrapped
from tests.crash.test_uploads_others import seen
from tests.crash.test_uploads_points import until_death
from tests.support.upload_jobs import (
    BUCKET,
    OTHER,
    Driver,
    Scenario,
    World,
    commit,
    driver,
    run_tasks,
)

HADOOP = Scenario("hadoop", ({"p=1/a": "hello world", "b": "x"},), tokens=False)


class _Elsewhere(SimS3Store):
    """A store of pending sets that is another one than the destination's, with another clock."""

    @property
    def traits(self) -> Traits:
        """See ``Store.traits``."""
        return replace(super().traits, account="elsewhere")


def _off(who: Driver, seconds: float, *, elsewhere: bool = False) -> Driver:
    """Set the clock of a driver's machine wrong."""
    now = who.job.host.now
    who.job.host = replace(who.job.host, now=lambda: now() + seconds)
    if elsewhere:
        store = cast(SimS3Store, cast(Wrapped, who.job.store).store)
        who.job.pending = _Elsewhere(Address("s3", BUCKET, "/"), {"bucket": store.bucket})
    return who


@pytest.mark.parametrize("name", ["magic", "directory", "elsewhere"])
@pytest.mark.parametrize("first, second", [(600, 0), (0, -600), (600, 600)])
def test_clocks_that_are_wrong(name: str, first: float, second: float) -> None:
    """A later job's files of the same bytes stay, whatever the clocks of the two machines say."""
    elsewhere = name == "elsewhere"
    scenario = replace(HADOOP, committer="directory" if elsewhere else name)

    async def run() -> tuple[set[str], set[str]]:
        world = World.new()
        tasks = run_tasks(world, scenario)
        probe = driver(world.copy(), scenario, "probe")
        await commit(scenario, probe, tasks)
        write = next(at for at, w in enumerate(probe.process.writes, 1) if "commit-start" in w)
        dies = _off(driver(world, scenario, "dies", crash=Crash(write, When.AFTER)), first)
        await until_death(dies, commit(scenario, dies, tasks))
        await asyncio.sleep(5)
        for upload in list(world.bucket.uploads.open.values()):
            world.bucket.abort(upload.key, upload.upload_id)
        again = run_tasks(world, scenario, OTHER)
        await asyncio.sleep(5)
        await commit(scenario, _off(driver(world, scenario, "two", job_id=OTHER), second), again)
        before = set(seen(world))
        await _off(driver(world, scenario, "back"), 0, elsewhere=elsewhere).job.rollback_job()
        return before, set(seen(world))

    before, after = run_virtual(run())
    assert after == before

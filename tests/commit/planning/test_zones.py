"""Directories that no rename enters, and quotas of names: refused before anything has changed."""

from __future__ import annotations

from typing import cast

import pytest

from asynccommit.errors import PreflightError
from asynccommit.options.job import Mode
from asynccommit.stores.policies.stats import Stats
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode
from asynccommit.testing.models.invariants import visible
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Driver, Scenario, commit, driver
from tests.crash.recovery import Job, has_begun, ready
from tests.support.crashes import DEST
from tests.support.hdfs_crashes import HdfsWorld

FILES = ({"day=1/a": "1", "day=2/b": "2"}, {"day=1/c": "3", "day=2/hour=1/d": "4"})
OLD = {f"{DEST}/day=2/": "", f"{DEST}/day=3/old": "o"}


def scenario(mode: Mode = Mode.APPEND) -> Scenario:
    """Return a job that makes one partition, and adds to another one, which is empty."""
    return Scenario("zoned", FILES, OLD, mode)


async def started(mode: Mode) -> tuple[Job, HdfsWorld, Driver]:
    """Return a job whose tasks have committed, and a driver that may commit it."""
    job, world = await ready(scenario(mode), "hdfs")
    return job, cast(HdfsWorld, world), driver(world, job.scenario, "first")


async def refusal(job: Job, world: HdfsWorld, who: Driver) -> str:
    """Return why a commit is refused, which has changed nothing."""
    before = visible(world.tree(), DEST)
    with pytest.raises(PreflightError) as caught:
        await commit(job.scenario, who, job.tasks)
    assert visible(world.tree(), DEST) == before
    assert not has_begun(world.tree())
    return str(caught.value)


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
def test_a_zone_below_the_table_is_refused(mode: Mode) -> None:
    """A partition that is a zone takes no file, and is not replaced by one that is none."""

    async def run() -> str:
        job, world, who = await started(mode)
        world.namenode.create_zone(f"{DEST}/day=2")
        return await refusal(job, world, who)

    said = run_virtual(run())
    assert f"{DEST}/day=2: of another encryption zone than the table" in said
    assert "Nothing under" in said


def test_a_table_in_a_zone_is_as_any_other() -> None:
    """The job's own directory is in the zone as well."""

    async def run() -> list[str]:
        job, world, who = await started(Mode.APPEND)
        world.namenode.root.zone = True
        await commit(job.scenario, who, job.tasks)
        return job.committed(world.tree())

    assert run_virtual(run()) == []


def test_a_zone_is_looked_for_in_one_request() -> None:
    """Each existing directory that files go to is asked for once, beside its quota."""

    async def run() -> int:
        job, _, who = await started(Mode.APPEND)
        await commit(job.scenario, who, job.tasks)
        counts = next(policy for policy in who.store.policies if isinstance(policy, Stats)).counts
        assert counts["quotas"].n == 1
        return counts["probe"].n

    assert run_virtual(run()) == 1


ENOUGH = 16
"""Names that the commit above needs besides those that its tasks have made."""


def used(namenode: HdfsNameNode) -> int:
    """Return the number of names in the table."""
    found = namenode.get_content_summary(DEST)
    return found.file_count + found.directory_count


def test_the_quota_of_the_table_is_refused_or_suffices() -> None:
    """Whatever names are left for the job, it never stops in the middle."""

    async def run() -> list[str]:
        told = []
        for more in range(40):
            job, world, who = await started(Mode.APPEND)
            world.namenode.set_quota(DEST, used(world.namenode) + more)
            if more < ENOUGH:
                told.append(await refusal(job, world, who))
                world.namenode.set_quota(DEST, None)
                who = driver(world, job.scenario, "second")
            await commit(job.scenario, who, job.tasks)
            assert job.committed(world.tree()) == []
        return told

    told = run_virtual(run())
    assert told
    for text in told:
        assert f"mkdir {DEST}: the quota of names of this directory" in text
        assert "no room for the 14 directories and files" in text
        assert "hdfs dfsadmin -setQuota" in text

"""What a bucket can refuse, do in parts, or keep; and jobs that meet it."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import pytest

from asynccommit.errors import CommitError, PreflightError
from asynccommit.options.job import Mode
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.gcs.bucket import WEEK
from asynccommit.testing.models.gcs.model import GcsLimits, Retention
from asynccommit.testing.models.gcs.quotas import FLAT
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import Driver, Scenario, commit, driver, run_tasks
from tests.crash.recovery import Hand, Job, places, ready, until_death
from tests.crash.scenarios import IN_THE_WAY, REPLACE_PARTITIONS
from tests.crash.worlds import GCS
from tests.support.crashes import DEST, EPOCH
from tests.support.gcs_crashes import BUCKET, GcsWorld

OLD = f"{DEST}/day=1/part-old-0"[1:]
"""The name of a file that both jobs here replace."""
JOBS = (IN_THE_WAY, REPLACE_PARTITIONS)

P = ParamSpec("P")


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Return a test whose waiting takes no time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(test(*args, **kwargs))

    return run


async def opened(scenario: Scenario, kind: str) -> tuple[Job, GcsWorld]:
    """Return a job whose tasks have committed, in a bucket."""
    job, world = await ready(scenario, kind)
    assert isinstance(world, GcsWorld)
    return job, world


async def refused(job: Job, who: Driver) -> str:
    """Commit a job, and return why that fails."""
    with pytest.raises(CommitError) as caught:
        await commit(job.scenario, who, job.tasks)
    who.process.kill()
    return str(caught.value)


def source(world: GcsWorld) -> str:
    """Return the name of a file that a task has written."""
    return next(path[1:] for path in world.tree() if "/tasks/" in path and "/part-" in path)


# --- in parts ---------------------------------------------------------------------------------


LARGE = Scenario(
    "large",
    ({"day=1/part-old-0": "a" * 1000}, {"loose/part-0": "b" * 1000}),
    {f"/{OLD}": "old" * 400, f"{DEST}/loose": "loose" * 200},
    options={"delete_target_files": True},
)


@pytest.mark.sample(1)
@pytest.mark.parametrize("act", ["resume", "rollback"])
@in_virtual_time
async def test_copies_in_several_calls(act: str) -> None:
    """A process may die between two calls of one copy as well."""
    job, world = await opened(LARGE, "steps")
    world.service.limits = GcsLimits(rewrite_bytes=300)
    whole = driver(world.copy(), LARGE, "whole")
    await commit(LARGE, whole, job.tasks)
    calls = [what for what in whole.process.writes if what.startswith("rewrite")]
    assert len(calls) >= 4 * len({*calls})

    for crash in places(len(whole.process.writes), once=True)[::2]:
        there = world.copy()
        first = driver(there, LARGE, "first", crash=crash)
        await until_death(first, commit(LARGE, first, job.tasks))
        assert await Hand(job, there, "second").end(act) == []


# --- too many ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_one_hot_object(kind: str) -> None:
    """A name that is refused again and again is waited for, and nothing else fails for it."""
    job, world = await opened(IN_THE_WAY, kind)
    rules = (
        Fault("before", path="part-old-0", times=12),
        Fault("before", path="_SUCCESS", times=6),
    )
    world.storm(random.Random(0), Climate(rules))
    await commit(IN_THE_WAY, driver(world, IN_THE_WAY, "first"), job.tasks)

    assert world.weather is not None
    assert world.weather.struck.total() == 18
    assert job.committed(world.tree()) == []


@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_one_change_of_a_name_a_second(kind: str) -> None:
    """The quotas of a real bucket are kept, or waited for."""
    job, world = await opened(IN_THE_WAY, kind)
    world.service.patch_bucket(BUCKET, {"quotas": FLAT})
    await commit(IN_THE_WAY, driver(world, IN_THE_WAY, "first"), job.tasks)

    assert job.committed(world.tree()) == []


# --- strangers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_a_task_file_that_a_stranger_wrote_again(kind: str) -> None:
    """The commit names the object with both generations, publishes it not, and is rolled back."""
    job, world = await opened(IN_THE_WAY, kind)
    name = source(world)
    was = world.service.get(BUCKET, name).generation
    now = world.service.insert(BUCKET, name, b"of a stranger").generation

    said = await refused(job, driver(world, IN_THE_WAY, "first"))

    assert name in said
    assert str(was) in said
    assert str(now) in said
    assert world.service.get(BUCKET, name).generation == now
    assert await Hand(job, world, "second").end("rollback") == []


@pytest.mark.parametrize("scenario", JOBS, ids=str)
@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_an_old_file_that_a_stranger_wrote_again(scenario: Scenario, kind: str) -> None:
    """The commit names the object with both generations, and what the stranger wrote stays."""
    job, world = await opened(scenario, kind)
    was = world.service.get(BUCKET, OLD).generation
    first = driver(world, scenario, "first")
    number = await begun(job, world)

    async def intrude() -> None:
        world.service.insert(BUCKET, OLD, b"of a stranger")

    first.process.hooks[number + 1] = intrude
    said = await refused(job, first)
    now = world.service.get(BUCKET, OLD)

    assert f"/{OLD}" in said
    assert str(was) in said
    assert str(now.generation) in said
    assert now.content.data == b"of a stranger"
    await Hand(job, world, "second").act("rollback")
    assert world.service.get(BUCKET, OLD).content.data == b"of a stranger"


async def begun(job: Job, world: GcsWorld) -> int:
    """Return the number of the write with which a commit begins."""
    whole = driver(world.copy(), job.scenario, "whole")
    await commit(job.scenario, whole, job.tasks)
    named = enumerate(whole.process.writes, 1)
    return next(number for number, what in named if what.endswith("commit-record.json"))


# --- what is kept -----------------------------------------------------------------------------


@pytest.mark.rotate("act")
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("versioning", [False, True], ids=["soft delete", "versioning"])
@in_virtual_time
async def test_versions_that_are_kept(versioning: bool, act: str) -> None:
    """What was deleted or moved, and can be brought back, is not taken for being there."""
    job, world = await opened(IN_THE_WAY, "flat")
    world.service.patch_bucket(BUCKET, {"versioning": versioning, "soft_delete": WEEK})
    whole = driver(world.copy(), IN_THE_WAY, "whole")
    await commit(IN_THE_WAY, whole, job.tasks)

    for crash in places(len(whole.process.writes), once=True)[::2]:
        there = world.copy()
        first = driver(there, IN_THE_WAY, "first", crash=crash)
        await until_death(first, commit(IN_THE_WAY, first, job.tasks))
        assert await Hand(job, there, "second").end(act) == []


# --- what is held -----------------------------------------------------------------------------


KEPT: dict[str, dict[str, object]] = {
    "hold": {"temporary_hold": True},
    "retention": {"retention": Retention("Unlocked", EPOCH + 3600)},
}
FREE: dict[str, object] = {"temporary_hold": False, "retention": None}


@pytest.mark.sample(6)
@pytest.mark.parametrize("why", KEPT)
@pytest.mark.parametrize("scenario", JOBS, ids=str)
@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_what_is_kept_is_refused_in_time(scenario: Scenario, kind: str, why: str) -> None:
    """An old file that cannot be moved aside is named before the commit begins."""
    job, world = await opened(scenario, kind)
    world.service.patch(BUCKET, OLD, KEPT[why])
    before = world.tree()

    first = driver(world, scenario, "first")
    with pytest.raises(PreflightError, match=f"/{OLD}: is under {why}|under a {why}") as caught:
        await commit(scenario, first, job.tasks)
    first.process.kill()
    after = world.tree()
    world.service.patch(BUCKET, OLD, FREE)

    assert ("2026-" in str(caught.value)) is (why == "retention")
    assert after == before
    assert await Hand(job, world, "second").end("commit") == []


@pytest.mark.parametrize("why", KEPT)
@in_virtual_time
async def test_a_task_file_that_is_kept_is_refused_in_time(why: str) -> None:
    """Where something is replaced, what a task has written is looked at as well."""
    job, world = await opened(REPLACE_PARTITIONS, "flat")
    name = source(world)
    world.service.patch(BUCKET, name, KEPT[why])
    before = world.tree()

    said = await refused(job, driver(world, REPLACE_PARTITIONS, "first"))
    after = world.tree()
    world.service.patch(BUCKET, name, FREE)

    assert f"/{name}" in said
    assert why in said
    assert after == before
    assert await Hand(job, world, "second").end("commit") == []


BUCKETS: list[dict[str, object]] = [{"retention": 86400.0}, {"default_event_based_hold": True}]


@pytest.mark.parametrize("options", BUCKETS, ids=["retention", "hold"])
@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_a_bucket_that_keeps_everything(kind: str, options: dict[str, object]) -> None:
    """No task commits there: what it has written could not be moved; bucket and remedy are said."""
    world = GcsWorld.new(kind)
    world.service.patch_bucket(BUCKET, options)
    with pytest.raises(
        CommitError, match=r"all new objects in gs://data/ are .*write elsewhere"
    ) as caught:
        await run_tasks(world, IN_THE_WAY)

    assert caught.value.stage == "task_stage_scan_directory"
    assert not any("manifest.json" in path for path in world.tree())


@pytest.mark.parametrize("options", BUCKETS, ids=["retention", "hold"])
@in_virtual_time
async def test_a_bucket_that_keeps_everything_is_seen_by_manifests(
    options: dict[str, object],
) -> None:
    """The job commit refuses what tasks of other hands have committed there, at no further cost."""
    world = GcsWorld.new()
    world.service.patch_bucket(BUCKET, options)
    job = driver(world, IN_THE_WAY, "first").job
    await job.setup_job()
    for path in (job.layout.manifest(job.layout.ids(0)[0]), f"{DEST}/day=1/part-old-0"):
        world.place(path, "{}")
    with pytest.raises(PreflightError, match="no job can be committed there"):
        await job.commit_job()


@pytest.mark.sample(3)
@pytest.mark.parametrize("act", ["resume", "rollback", "commit"])
@pytest.mark.parametrize("why", KEPT)
@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_what_is_kept_since_the_commit_began(kind: str, why: str, act: str) -> None:
    """The commit says so, and can be finished or undone as soon as it is released."""
    job, world = await opened(IN_THE_WAY, kind)
    first = driver(world, IN_THE_WAY, "first")

    async def keep() -> None:
        world.service.patch(BUCKET, OLD, KEPT[why])

    first.process.hooks[await begun(job, world) + 1] = keep
    said = await refused(job, first)
    world.service.patch(BUCKET, OLD, FREE)

    assert f"/{OLD}" in said
    assert ("until 20" in said) is (why == "retention")
    assert await Hand(job, world, "second").end(act) == []


# --- what is emptied --------------------------------------------------------------------------


EMPTIED = Scenario(
    "emptied",
    ({"day=2/part-0": "a"},),
    {
        f"{DEST}/day=1/part-0": "x",
        f"{DEST}/day=1/hour=2/part-0": "y",
        f"{DEST}/day=2/hour=3/part-0": "z",
        f"{DEST}/day=9/_log/kept": "hidden",
        f"{DEST}/day=9/part-0": "z",
    },
    Mode.REPLACE_TABLE,
)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", ["flat", "hns"])
@in_virtual_time
async def test_partitions_that_are_no_more(kind: str, late: bool) -> None:
    """Neither folders nor placeholders are left of them, also if another ends the commit."""
    job, world = await opened(EMPTIED, kind)
    for name in ("day=1/", "day=1/hour=2/", "day=9/"):
        world.service.insert(BUCKET, f"{DEST}/{name}"[1:], b"")
    whole = driver(world.copy(), EMPTIED, "whole")
    await commit(EMPTIED, whole, job.tasks)
    decided = [n for n, what in enumerate(whole.process.writes, 1) if "commit-outcome" in what]
    crash = Crash(decided[0], When.AFTER) if late else None
    first = driver(world, EMPTIED, "first", crash=crash)
    await until_death(first, commit(EMPTIED, first, job.tasks))
    if late:
        await Hand(job, world, "second").act("resume")

    left = {path.removeprefix(DEST) for path in world.tree() if path.startswith(f"{DEST}/")}
    kept = {"/day=9", "/day=9/_log", "/day=9/_log/kept"}
    assert left == {"/_SUCCESS", "/day=2", "/day=2/part-0", *kept}


# --- what is gone -----------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", JOBS, ids=str)
@pytest.mark.parametrize("kind", GCS)
@in_virtual_time
async def test_a_task_file_that_is_gone(scenario: Scenario, kind: str) -> None:
    """Nothing is moved aside for files that are not there to take its place."""
    job, world = await opened(scenario, kind)
    name = source(world)
    world.service.delete(BUCKET, name)
    before = world.tree()
    whole = driver(world, scenario, "first")
    with pytest.raises(CommitError, match=name) as caught:
        await commit(scenario, whole, job.tasks)
    whole.process.kill()

    replaces = scenario is REPLACE_PARTITIONS
    assert isinstance(caught.value, PreflightError) is replaces
    assert (world.tree() == before) is replaces


# --- what is not allowed ----------------------------------------------------------------------


NEEDED = [
    *((kind, verb) for kind in GCS for verb in ("create", "get", "list")),
    *(("flat", "move"), ("hns", "move"), ("steps", "delete")),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind, verb", NEEDED)
@in_virtual_time
async def test_a_permission_that_is_missing(kind: str, verb: str) -> None:
    """The commit names it, loses nothing, and is done once it is granted."""
    job, world = await opened(IN_THE_WAY, kind)
    permission = f"storage.objects.{verb}"
    world.service.denied.add(permission)

    said = await refused(job, driver(world, IN_THE_WAY, "first"))
    world.service.denied.clear()

    assert permission in said
    assert await Hand(job, world, "second").end("commit") == []


@pytest.mark.sample(6)
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("kind, verb", NEEDED)
@in_virtual_time
async def test_a_permission_that_is_lost(kind: str, verb: str, act: str) -> None:
    """The same when a commit had begun; and while it is missing nothing can be undone either."""
    job, world = await opened(IN_THE_WAY, kind)
    permission = f"storage.objects.{verb}"
    first = driver(world, IN_THE_WAY, "first")

    async def lose() -> None:
        world.service.denied.add(permission)

    first.process.hooks[await begun(job, world) + 2] = lose
    said = await refused(job, first)
    assert permission in said
    with pytest.raises(CommitError, match=permission):
        await Hand(job, world, "second").act(act)
    world.service.denied.clear()

    assert await Hand(job, world, "third").end(act) == []


@pytest.mark.parametrize("kind", ["flat", "hns"])
@in_virtual_time
async def test_whoever_may_not_delete(kind: str) -> None:
    """Such a one may move: the job is committed, says that it is not cleaned up, and is later."""
    job, world = await opened(IN_THE_WAY, kind)
    world.service.denied.add("storage.objects.delete")

    report = await commit(IN_THE_WAY, driver(world, IN_THE_WAY, "first"), job.tasks)
    world.service.denied.clear()

    assert ["storage.objects.delete" in text for text in report.warnings] == [True]
    assert await Hand(job, world, "second").end("commit") == []

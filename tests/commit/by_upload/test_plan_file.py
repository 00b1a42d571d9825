"""The saved plan: what somebody changed in it is refused, before anything is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.commit.by_upload import plan_file
from asynccommit.commit.job.messages import digest
from asynccommit.errors import CommitError, DeniedError
from asynccommit.options.job import Mode
from tests.support.faults import Fault, Faults
from tests.support.upload_jobs import ROOT, Scenario, World, alone, commit_task, committer

SCENARIO = Scenario(
    "plan",
    ({"a": "a", "p=1/b": "b"},),
    {f"{ROOT}/a": "old a", f"{ROOT}/p=1/old": "old"},
    Mode.REPLACE_TABLE,
)


async def half() -> World:
    """Return a job whose commit has begun, and stopped at its last file."""
    world, tasks = alone(SCENARIO)
    faults = Faults(Fault("complete_upload", DeniedError, "p=1/b"))
    with pytest.raises(CommitError):
        await committer(world, SCENARIO, faults).commit_job(tasks, mode=SCENARIO.mode)
    return world


def change(world: World, table: str, edit: Callable[[list[Any]], None], vouch: bool = True) -> None:
    """Edit a table of the plan, and let the record vouch for it."""
    record_key = SCENARIO.layout().record[1:]
    record = json.loads(world.bucket.head(record_key).data)
    for index, _ in enumerate(record["plan"]):
        key = SCENARIO.layout().plan(record["planId"], index)[1:]
        chunk = json.loads(world.bucket.head(key).data)
        if chunk[table]:
            edit(chunk[table])
            data = json.dumps(chunk).encode()
            world.bucket.put(key, data)
            record["plan"][index] = digest(data) if vouch else record["plan"][index]
    world.bucket.put(record_key, json.dumps(record).encode())


@pytest.mark.parametrize(
    "table, place, reason",
    [
        ("old", "a", "also written by the job"),
        ("old", "__magic_job-other/x", "is not a place"),
        ("old", "_temporary/other", "is not a place"),
        ("old", "../tt/x", "not a plain path"),
        ("old", "/etc/x", "not a plain path"),
        ("aside", "_temporary/x", "is not a place"),
        ("uploads", "_SUCCESS", "is not a place"),
        ("uploads", "x/../../y", "not a plain path"),
    ],
)
@pytest.mark.parametrize("act", ["resume_job", "rollback_job"])
async def test_a_plan_that_leads_elsewhere(table: str, place: str, reason: str, act: str) -> None:
    """A plan that names what is not the job's to change is refused, even if the record vouches."""
    world = await half()
    change(world, table, lambda rows: rows[0].__setitem__(0, place))
    before = world.state()
    with pytest.raises(CommitError) as caught:
        await getattr(committer(world, SCENARIO), act)()

    assert reason in str(caught.value)
    assert world.state() == before


async def test_a_chunk_that_the_record_does_not_know() -> None:
    """A chunk with another digest than the record's is refused."""
    world = await half()
    change(world, "old", lambda rows: rows.clear(), vouch=False)
    with pytest.raises(CommitError, match="not the plan that the commit record names"):
        await committer(world, SCENARIO).resume_job()


async def test_a_chunk_that_is_gone() -> None:
    """A lost chunk stops resume and rollback, which would else guess."""
    world = await half()
    key = next(key for key in world.bucket.objects if "commit-plan-" in key)
    del world.bucket.objects[key]
    for act in ("resume_job", "rollback_job"):
        with pytest.raises(CommitError):
            await getattr(committer(world, SCENARIO), act)()


async def test_a_late_task_changes_nothing() -> None:
    """A set that is written anew after the commit began is not what is resumed."""
    world = await half()
    commit_task(world, SCENARIO.layout(), 0, {"zombie": "of a zombie"}, attempt=3)
    await committer(world, SCENARIO).resume_job()

    assert f"{ROOT}/zombie" not in world.state().files
    assert f"{ROOT}/p=1/b" in world.state().files
    assert not world.state().uploads


async def test_plans_of_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is cut into chunks by rows and by parts, and read back whole."""
    for name, most in (("CHUNK_ROWS", 3), ("_CHUNK_PARTS", 4)):
        monkeypatch.setattr(plan_file, name, most)
    names = {f"p={n % 3}/{n}": "12345678" for n in range(10)}
    old = {f"{ROOT}/old{n}": "old" for n in range(8)}
    scenario = replace(SCENARIO, tasks=(names,), before=old)
    world, tasks = alone(scenario)
    faults = Faults(Fault("complete_upload", DeniedError, "p=1/7"))
    with pytest.raises(CommitError):
        await committer(world, scenario, faults, workers=1).commit_job(tasks, mode=scenario.mode)
    report = await committer(world, scenario).resume_job()

    assert sum("commit-plan" in op.path for op in faults.seen if op.name == "put") > 6
    assert (report.files, report.replaced_files) == (10, 8)
    assert {p for p in world.state().files if "_SUCCESS" not in p} == set(scenario.files)

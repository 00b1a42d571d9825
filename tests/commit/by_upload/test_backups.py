"""Copies of what is overwritten: who deletes them, and what a rollback puts back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from asynccommit.errors import OutcomeUnknownError
from asynccommit.options.job import Mode
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.testing.models.crashes import Suspension
from asynccommit.testing.models.s3.objects import CompletedPart
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_others import ASLEEP, cut_short, requests_of, seen, told, whole
from tests.crash.test_uploads_points import MARKER
from tests.support.upload_jobs import (
    OTHER,
    ROOT,
    Scenario,
    World,
    commit,
    committer,
    driver,
    run_tasks,
)

OVER = Scenario("over", ({"p=1/x": "new x", "y": "y"},), options={"delete_target_files": True})


@pytest.mark.parametrize("name", ["magic", "directory"])
def test_copies_that_a_rollback_has_kept(name: str) -> None:
    """A driver that wakes after the rollback does not delete the only copy that is left."""
    scenario = replace(OVER, committer=name)

    async def run() -> tuple[int, list[int]]:
        base = World.new()
        base.place(f"{ROOT}/y", "precious")
        tasks = run_tasks(base, scenario)
        kept, lost = 0, []
        count = await requests_of(base, scenario, lambda who: commit(scenario, who, tasks))
        for request in range(count // 3, count + 1):
            world = base.copy()
            sleeper = driver(world, scenario, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(commit(scenario, sleeper, tasks)))
            await asyncio.sleep(ASLEEP / 2)
            said = ""
            if world.state().files[f"{ROOT}/y"] == b"y":
                world.place(f"{ROOT}/y", "of another")
                said = await told(driver(world, scenario, "back").job.rollback_job())
            await task
            if "not_restored=1" in said:
                kept += 1
                lost += [request] * (b"precious" not in world.state().files.values())
        return kept, lost

    kept, lost = run_virtual(run())
    assert kept
    assert lost == []


@pytest.mark.parametrize("after", ["aside", "complete_upload"])
def test_a_place_that_a_later_job_has_left_empty(after: str) -> None:
    """What another job has replaced since does not come back by a rollback; the copy stays."""
    mine = replace(OVER, committer="directory")
    later = Scenario("later", ({"m": "m"},), mode=Mode.REPLACE_TABLE)  # it does not see the other

    async def run() -> tuple[list[str], Sequence[str], Sequence[str]]:
        world = World.new()
        world.place(f"{ROOT}/p=1/x", "old x")
        await cut_short(world, mine, after)
        await asyncio.sleep(5)
        await whole(world, later, OTHER)
        report = await driver(world, mine, "back").job.rollback_job()
        assert b"old x" in world.state().files.values()
        there = [path for path in seen(world) if "/_temporary/" not in path]
        return there, report.not_restored, report.warnings

    there, left, warnings = run_virtual(run())
    assert sorted(there) == [f"{ROOT}/_SUCCESS", f"{ROOT}/m"]
    assert left == (f"{ROOT}/p=1/x",)
    assert "another writer has deleted it since" in warnings[0]


def test_a_marker_that_came_while_a_rollback_stood_still() -> None:
    """The marker of a later job is not replaced by the one from before, at whichever request."""
    mine, later = Scenario("mine", ({"x": "x"},)), Scenario("later", ({"m": "m"},))

    async def run() -> list[int]:
        base = World.new()
        base.place(f"{ROOT}/_SUCCESS", MARKER)
        await cut_short(base, mine, "commit-start")
        tasks = run_tasks(base, later, OTHER)
        lost = []
        count = await requests_of(base, mine, lambda who: who.job.rollback_job())
        for request in range(1, count + 1):
            world = base.copy()
            sleeper = driver(world, mine, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(sleeper.job.rollback_job()))
            await asyncio.sleep(ASLEEP / 2)
            await told(commit(later, driver(world, later, "later", job_id=OTHER), tasks))
            await task
            if OTHER.encode() not in seen(world)[f"{ROOT}/_SUCCESS"]:
                lost.append(request)
        return lost

    assert run_virtual(run()) == []


class _Meanwhile:
    """A policy that lets another act right after one of the requests."""

    def __init__(self, request: int, act: Callable[[], None]) -> None:
        self.left = request
        self.act = act

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> object:
            try:
                return await call(op)
            finally:
                self.left -= 1
                if self.left == 0:
                    self.act()

        return around


def test_a_marker_that_is_copied_during_a_rollback() -> None:
    """A driver that goes on until it is stopped loses no marker, wherever the rollback is."""
    mine, key = Scenario("mine", ({"x": "x"},)), f"{ROOT}/_SUCCESS"

    async def run() -> list[int]:
        base = World.new()
        base.place(key, MARKER)
        await cut_short(base, mine, "commit-start")
        probe = driver(base.copy(), mine, "probe")
        await probe.job.resume_job()
        (place,) = {
            word
            for text in probe.process.writes
            for word in text.split()
            if "/aside-" in word and word.endswith("/_SUCCESS")
        }
        lost = []
        for request in range(1, 60):
            world = base.copy()

            def copy_and_delete(world: World = world) -> None:
                if world.state().files.get(key) == MARKER.encode():
                    world.place(place, MARKER)
                    world.bucket.delete(key[1:])

            policy = _Meanwhile(request, copy_and_delete)
            await told(committer(world, mine, policy).rollback_job())
            if policy.left <= 0 and world.state().files.get(key, b"").strip() != MARKER.encode():
                lost.append(request)
        return lost

    assert run_virtual(run()) == []


class _Unanswered:
    """A policy under which a copy that replaces something is done, and its answer is lost."""

    def __init__(self, *, before: bool) -> None:
        self.before = before

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> object:
            if op.name != "copy_if" or op.options.get("replaces") is None:
                return await call(op)
            if not self.before:
                await call(op)
            raise OutcomeUnknownError("copy_if", op.path, "no response came")

        return around


@pytest.mark.parametrize("before", [True, False])
async def test_the_lost_answer_of_a_copy_back(before: bool) -> None:
    """If it was done the rollback says so; if not, it is not said, and is done the next time."""
    world = World.new()
    world.place(f"{ROOT}/y", "precious")
    await cut_short(world, OVER, "complete_upload /out/t/y")
    said = await told(committer(world, OVER, _Unanswered(before=before)).rollback_job())
    assert ("restored=1" in said) == (not before)
    await told(committer(world, OVER).rollback_job())

    assert seen(world) == {f"{ROOT}/y": b"precious"}


async def test_what_is_put_back_replaces_nothing_else() -> None:
    """What another writes between the look and the copy stays: the copy names what it replaces."""
    world = World.new()
    world.place(f"{ROOT}/y", "precious")
    await cut_short(world, OVER, "complete_upload /out/t/y")
    upload, parts = world.upload(f"{ROOT}/y", "of another")

    class Hasty:
        def around(self, call: Call) -> Call:
            async def around(op: Op) -> object:
                if op.name == "copy_if" and op.options.get("replaces"):
                    listed = [CompletedPart(at, part.etag) for at, part in enumerate(parts, 1)]
                    world.bucket.complete("out/t/y", upload, listed)
                return await call(op)

            return around

    report = await committer(world, OVER, Hasty()).rollback_job()

    assert seen(world) == {f"{ROOT}/y": b"of another"}
    assert report.not_restored == (f"{ROOT}/y",)

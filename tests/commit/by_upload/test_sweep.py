"""Aborting what a job's tasks have left: what its own files name, below its own destination."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from asynccommit.commit.by_upload import sweep as sweep_module
from asynccommit.commit.by_upload.sweep import sweep
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.errors import DeniedError
from asynccommit.formats.commit_record import ABORTED
from asynccommit.formats.pending import encode_pending
from asynccommit.formats.pending_set import PendingSet, encode_pending_set
from asynccommit.formats.upload_record import IntendedUpload, UploadIntent, encode_upload_intent
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.faults import Fault, Faults
from tests.support.upload_jobs import (
    JOB,
    OTHER,
    ROOT,
    Scenario,
    World,
    alone,
    committer,
    pending_of,
)

PLAIN = Scenario("plain", ({"a": "a"},))
LAYOUT = MagicLayout(PLAIN.layout().dest, JOB)
ATTEMPT = LAYOUT.ids(0, 5)[1]


def aborted() -> World:
    """Return a job that is being aborted."""
    world, _ = alone(PLAIN)
    world.bucket.put(LAYOUT.record[1:], ABORTED)
    return world


def intend(world: World, job_id: str, *uploads: IntendedUpload) -> None:
    """Write an intent of a task attempt."""
    intent = UploadIntent(job_id, ATTEMPT, uploads, 1)
    world.bucket.put(LAYOUT.intent(ATTEMPT, 0)[1:], encode_upload_intent(intent))


@pytest.mark.parametrize("path", ["/out/tt/x", "/out/t/_SUCCESS", "/out/t/__magic_job-o/x", "/x"])
async def test_an_intent_that_names_others_uploads(path: str) -> None:
    """An upload that goes elsewhere, or to the committers' places, is left alone and said."""
    world = aborted()
    upload_id, _ = world.upload(path, "of another")
    intend(world, JOB, IntendedUpload(path[1:], upload_id))
    run = committer(world, PLAIN)._run()
    swept = await sweep(run, among_open=False)

    assert [found for found, _ in world.state().uploads] == [path]
    assert (swept.uploads, len(swept.unreadable), len(run.warnings)) == (1, 1, 1)


async def test_files_of_another_job() -> None:
    """Files that say they are of another job are not acted upon, wherever they lie."""
    world = aborted()
    other = replace(pending_of(world, LAYOUT, "x", "x", ATTEMPT), job_id=OTHER)
    intend(world, OTHER, IntendedUpload(other.key, other.upload_id))
    pending = f"{LAYOUT.task_base(ATTEMPT)}/x.pending"
    world.bucket.put(pending[1:], encode_pending(other))
    late = encode_pending_set(PendingSet(JOB, (other,)))
    world.bucket.put(LAYOUT.pending_set("task_7")[1:], late)
    swept = await sweep(committer(world, PLAIN)._run(), among_open=False)

    assert [found for found, _ in world.state().uploads] == [f"{ROOT}/x"]
    assert len(swept.unreadable) == 3


async def test_nothing_is_read_if_nothing_is_open() -> None:
    """After a commit that left no uploads one listing is all that a sweep takes."""
    world = World.new()
    intend(world, JOB)
    faults = Faults()
    await sweep(committer(world, PLAIN, faults)._run(), among_open=True)

    assert [op.name for op in faults.seen] == ["list_uploads"]


async def test_uploads_may_not_be_listed() -> None:
    """Who may not list uploads tries all that the job's files name."""
    world = aborted()
    faults = Faults(Fault("list_uploads", DeniedError))
    swept = await sweep(committer(world, PLAIN, faults)._run(), among_open=True)

    assert swept.uploads == 1
    assert not world.state().uploads


async def test_the_aborted_are_counted() -> None:
    """However many requests overlap, the number of aborted uploads is that of the requests."""
    world, _ = alone(Scenario("sets", tuple({f"f{n}": "x", f"g{n}": "x"} for n in range(9))))
    world.bucket.put(LAYOUT.record[1:], ABORTED)

    class Slow:
        def around(self, call: Call) -> Call:
            async def around(op: Op) -> object:
                await asyncio.sleep(0)
                return await call(op)

            return around

    swept = await sweep(committer(world, PLAIN, Slow())._run(), among_open=False)

    assert swept.uploads == 18
    assert not world.state().uploads


async def test_large_sets_are_held_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that name uploads are read together only while there is room for them."""
    world, _ = alone(Scenario("sets", tuple({f"f{n}": "x"} for n in range(9))))
    world.bucket.put(LAYOUT.record[1:], ABORTED)
    monkeypatch.setattr(sweep_module, "_ROOM", 10)
    held, most = set[str](), list[int]()

    class Held:
        def around(self, call: Call) -> Call:
            async def around(op: Op) -> object:
                is_set = op.name == "get" and op.path.endswith(".pendingset")
                if is_set:
                    held.add(op.path)
                    most.append(len(held))
                    await asyncio.sleep(0)
                try:
                    return await call(op)
                finally:
                    held.discard(op.path)

            return around

    swept = await sweep(committer(world, PLAIN, Held())._run(), among_open=False)

    assert swept.uploads == 9
    assert max(most) == 1

"""A task that nobody waits for goes on while its job is aborted, or when that has ended.

Whenever that is, no upload is left that no file of the job names, unless the abort has said so.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.commit.registry import Committer
from asynccommit.errors import CommitError, StoreError
from asynccommit.formats.pending import encode_pending
from asynccommit.inspect.open_uploads import find_uploads
from asynccommit.results import AbortReport
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_upload_tasks import FILES, PLACE
from tests.crash.test_upload_tasks import committer as task_committer
from tests.support.upload_jobs import (
    DEST,
    JOB,
    ROOT,
    Scenario,
    World,
    alone,
    committer,
    pending_of,
    save_set,
)
from tests.support.uploads import keys, new_bucket

PLAIN = Scenario("plain", ({"a": "a"}, {"b": "b"}))
LAYOUT = MagicLayout(DEST, JOB)
STEP = int(os.environ.get("ASYNCCOMMIT_STRAGGLERS", "7"))
"""At every so many-th request of an abort a task of ours goes on; another one for each its own."""
TASK, ATTEMPT = LAYOUT.ids(5, 0)


class At:
    """A policy that does something before the so many-th request, from 1."""

    def __init__(self, number: int, act: Callable[[], Awaitable[object]]) -> None:
        self.seen = 0
        self._number = number
        self._act = act

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> Any:
            self.seen += 1
            if self.seen == self._number:
                await self._act()
            return await call(op)

        return around


# --- tasks of Hadoop's, which say of an upload when it is closed, and look for nothing ------------


class Straggler:
    """A task attempt of Hadoop's that has begun a file before the abort.

    Args:
        world: where.
        begins: it begins another one when it closes the first.
        commits: it commits what it has closed.
    """

    def __init__(self, world: World, *, begins: bool, commits: bool) -> None:
        self._world = world
        self._begins, self._commits = begins, commits
        self._first = pending_of(world, LAYOUT, "late", "begun before", ATTEMPT)

    async def go_on(self) -> None:
        """Close what was begun."""
        if self._commits:
            save_set(self._world, LAYOUT, TASK, ATTEMPT, (self._first,))
            return
        found = [self._first]
        if self._begins:
            found.append(pending_of(self._world, LAYOUT, "later", "begun late", ATTEMPT))
        for one in found:
            place = f"{LAYOUT.task_base(ATTEMPT)}/{one.key.rpartition('/')[2]}.pending"
            self._world.bucket.put(place[1:], encode_pending(one))


async def unnamed(world: World) -> list[str]:
    """Return the open uploads that no file of the job names."""
    store = SimS3Store(DEST, {"bucket": world.bucket})
    found = await find_uploads(store, DEST, 0.0)
    return [one.upload.path for one in found.uploads if JOB not in one.jobs]


async def abort_beside(number: int, **straggler: bool) -> tuple[int, list[str]]:
    """Abort a job while a task goes on at one request; return how many there were, and problems."""
    world, _ = alone(PLAIN)
    late = Straggler(world, **straggler)
    at = At(number, late.go_on)
    report = await committer(world, PLAIN, at).abort_job()
    ended = at.seen < number
    problems = []
    if ended:
        said = " ".join(report.warnings)
        if f"{ROOT}/late" not in said or f"asynccommit uploads list {DEST}" not in said:
            problems.append(f"nothing was said of an open upload: {report}")
        await late.go_on()
    problems += [f"{path} is open, and nobody knows" for path in await unnamed(world)]
    again = await committer(world, PLAIN).abort_job()
    problems += [f"{path} is open after a second abort" for path, _ in world.state().uploads]
    problems += [f"{path} remains: {again}" for path in world.state().files]
    return at.seen, [f"at request {number}: {text}" for text in problems]


@pytest.mark.parametrize(
    "straggler",
    [
        {"begins": False, "commits": False},
        {"begins": True, "commits": False},
        {"begins": False, "commits": True},
    ],
    ids=["closes", "begins", "commits"],
)
def test_a_task_of_hadoops(straggler: dict[str, bool]) -> None:
    """What it closes at any moment of the abort is aborted, or named by a file that stays."""
    number, found, seen = 0, list[str](), 1
    while number <= seen:
        number += 1
        seen, problems = run_virtual(abort_beside(number, **straggler))
        found += problems
    assert found == []
    assert number > 10


# --- tasks of ours, which look ------------


async def run_task(job: Committer) -> None:
    """Set up, write and commit a task attempt that may be told that its job has ended."""
    task_id, attempt_id = job.layout.ids(0, 0)
    await job.setup_task(attempt_id)
    for name, data in FILES.items():
        await job.work(attempt_id).put(name, data)
    await job.commit_task(task_id, attempt_id)


async def abort_within(
    name: str, local: str, task_at: int, abort_at: int
) -> tuple[int, int, list[str]]:
    """Hold a task at one request while its job is aborted, and that abort while the task goes on.

    Returns how many requests the task and the abort sent, and what is wrong then.
    """
    bucket, told = new_bucket(), list[AbortReport]()
    await task_committer(name, SimS3Store(PLACE, {"bucket": bucket}), local).setup_job()
    go_on, ended = asyncio.Event(), asyncio.Event()

    async def wake() -> None:
        go_on.set()
        await ended.wait()

    hook = At(abort_at, wake)

    async def abort() -> None:
        told.append(await _committer(name, bucket, hook, local).abort_job())
        go_on.set()

    aborting: list[asyncio.Task[None]] = []

    async def hold() -> None:
        aborting.append(asyncio.create_task(abort()))
        await go_on.wait()

    at = At(task_at, hold)
    with suppress(CommitError, StoreError):  # it is told that the job has ended, or comes before
        await run_task(_committer(name, bucket, at, local))
    ended.set()
    await asyncio.gather(*aborting)
    await asyncio.sleep(10)
    if not told:
        return at.seen, 0, []
    left = [f"{one.key} is open" for one in bucket.uploads.open.values()]
    await _committer(name, bucket, At(0, wake), local).abort_job()
    left += [f"{key} is left" for key in keys(bucket)]
    return at.seen, hook.seen, [f"task at {task_at}, abort at {abort_at}: {text}" for text in left]


def _committer(name: str, bucket: S3Bucket, policy: At, local: str) -> Committer:
    store = Wrapped(SimS3Store(PLACE, {"bucket": bucket}), policy)
    return task_committer(name, store, local)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["magic", "directory"])
def test_a_task_of_ours(name: str) -> None:
    """Whenever it is held while its job is aborted, it leaves no upload open."""
    found, task_at, most = list[str](), 0, 1
    with tempfile.TemporaryDirectory() as local:
        while task_at < most:
            task_at += 1
            abort_at, seen = task_at % STEP - STEP, 1
            while abort_at <= seen:
                abort_at += STEP
                place = f"{local}/{task_at}-{abort_at}"
                sent, seen, problems = run_virtual(abort_within(name, place, task_at, abort_at))
                most = max(most, sent)
                found += problems
    assert found == []
    assert most > 10

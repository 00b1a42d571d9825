"""Application masters in virtual time: ours, and a model of Hadoop's, on one store.

``ReferenceAm`` has Hadoop's order of a commit, with its flaws; it exists to show them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from asynccommit.errors import StoreError
from asynccommit.mapreduce.commit_window import Heartbeat, MarkerSettings, is_open
from asynccommit.mapreduce.committer import Check, CommitMarkers
from asynccommit.mapreduce.marker_store import Committed, MarkerStore
from asynccommit.mapreduce.markers import FAIL, STARTED, SUCCESS, Action, Markers, start_up
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Policy, Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Crash, Process, Suspension
from tests.support.crashes import EPOCH, ModelWorld

T = TypeVar("T")

JOB = "job_1700000000000_0007"
STAGING = f"/staging/alice/.staging/{JOB}"
OUT = "/out"
PARTS = 3
DIGEST = "sha256:abc"
BEAT = 1.0  # seconds from one answer of the resource manager to the next


class Attempt:
    """One attempt of an application master: a process, its store, and who it hears from.

    Args:
        world: where it runs.
        number: of the attempt, from 1.
        crash: where its process dies.
        stop: where it stands still.
        connected: whether the resource manager answers it.
        name: of the process, where two have one number.
        ahead: seconds by which its machine's clock is wrong.
        whole: its requests are sent as in life, and again if they are not answered.
        policies: what its requests meet besides.
    """

    def __init__(
        self,
        world: ModelWorld,
        number: int,
        *policies: Policy,
        crash: Crash | None = None,
        stop: Suspension | None = None,
        connected: bool = True,
        name: str = "",
        ahead: float = 0.0,
        whole: bool = False,
    ) -> None:
        self.number = number
        name = name or f"am-{number}"
        self.process = Process(name, crash, stop)
        below = world.store(self.process)
        self.store: Store = Wrapped(below, *policies)
        if whole:
            self.store = wrap(below, StoreSettings(random.Random(name), attempts=20))
        self.heartbeat = Heartbeat(self.process.clock)
        self.connected = connected
        self.place = MarkerStore(self.store, STAGING, JOB)
        ids = iter(range(10_000))
        self.host = Host(
            now=lambda: EPOCH + ahead + self.process.clock(),
            new_id=lambda: f"{name}-{next(ids)}",
            rng=random.Random(number),
            name=f"node-{number}",
            user="alice",
            clock=self.process.clock,
            process=f"{number}.boot",
        )

    def ours(self, settings: MarkerSettings | None = None) -> CommitMarkers:
        """Return what commits the job by our rules."""
        return CommitMarkers(
            self.store,
            Address("abfs", "", STAGING),
            JOB,
            epoch=self.number,
            host=self.host,
            heartbeat=self.heartbeat,
            settings=settings or MarkerSettings(lease=60.0),
        )

    def reference(self) -> ReferenceAm:
        """Return what commits it as Hadoop does."""
        return ReferenceAm(self.place, self.heartbeat)

    async def publish(self, check: Check = lambda: None) -> str:
        """Publish the output, a part a second, over what is there: that can be repeated."""
        for number in range(PARTS):
            check()
            await self.store.put(f"{OUT}/part-{number}", b"rows")
            await asyncio.sleep(1)
        return DIGEST

    async def is_heard(self) -> None:
        """Let the resource manager answer, for as long as the process can hear it."""
        while not self.process.dead:
            if self.connected and not self.process.is_stopped:
                self.heartbeat.beat()
            await asyncio.sleep(BEAT)


@asynccontextmanager
async def running(*attempts: Attempt) -> AsyncIterator[None]:
    """Let the resource manager answer these attempts, those that are connected."""
    tasks = [asyncio.create_task(attempt.is_heard()) for attempt in attempts]
    try:
        await asyncio.sleep(0.001)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def staged(world: ModelWorld) -> ModelWorld:
    """Return a world with the staging directory of a job that has not committed."""
    world.place(f"{STAGING}/job.split", "splits")
    world.place(f"{OUT}/.keep", "")
    return world


def markers(world: ModelWorld) -> Markers:
    """Return which markers are there."""
    tree = world.tree()
    started, success, fail = (f"{STAGING}/{name}" in tree for name in (STARTED, SUCCESS, FAIL))
    return Markers(True, started, success, fail)


def left(world: ModelWorld) -> set[str]:
    """Return the names of all that is in the staging directory beside what the job put there."""
    names = {path.removeprefix(f"{STAGING}/") for path in world.tree() if STAGING in path}
    return {name for name in names if "/" not in name} - {"job.split"}


def published(world: ModelWorld) -> int:
    """Return how many parts of the output are there."""
    return sum(f"{OUT}/part-{number}" in world.tree() for number in range(PARTS))


async def until_death(attempt: Attempt, act: Awaitable[T]) -> T | BaseException | None:
    """Return what ``act`` gives or raises, ``None`` if the process died on the way."""
    try:
        return await act
    except BaseException as error:
        return None if attempt.process.dead else error


class ReferenceAm:
    """Hadoop's order, as its ``CommitterEventHandler`` and ``MRAppMaster`` have it.

    Args:
        place: where the markers are.
        heartbeat: of its resource manager.
        window: seconds.
    """

    def __init__(self, place: MarkerStore, heartbeat: Heartbeat, window: float = 10.0) -> None:
        self._place, self._heartbeat, self._window = place, heartbeat, window
        self._committing: asyncio.Task[object] | None = None

    async def start(self, *, repeatable: bool = False) -> Action:
        """Start: look at the markers, and delete the start of a commit that is repeated."""
        there = (await self._place.look()).markers
        action = start_up(there, repeatable=repeatable)
        if action is Action.REPEAT:
            await self._place.store.delete(self._place.at(STARTED))
        return action

    async def commit(
        self, work: Callable[[], Coroutine[Any, Any, object]], *, repeatable: bool = False
    ) -> bool:
        """Say that it commits, wait for the window, commit, and say how it ended."""
        try:
            await self._touch(STARTED, repeatable)
            while not is_open(self._heartbeat.age, self._window):
                await self._heartbeat.next()
            self._committing = asyncio.create_task(work())
            await asyncio.wait([self._committing])
            self._committing.result()
            await self._touch(SUCCESS, repeatable)
        except (Exception, asyncio.CancelledError):
            with suppress(StoreError):
                await self._touch(FAIL, repeatable)
            return False
        return True

    async def abort(self, undo: Callable[[], Awaitable[T]]) -> T:
        """Interrupt the commit, and abort the job. The wait in between never waits."""
        if self._committing is not None:
            self._committing.cancel()
        return await undo()

    async def _touch(self, name: str, overwrite: bool) -> None:
        await self._place.store.put(self._place.at(name), b"", overwrite=overwrite)


async def commits(attempt: Attempt, **how: Any) -> Committed:
    """Commit by our rules, the work being to publish the output."""
    return await attempt.ours().commit(attempt.publish, **how)

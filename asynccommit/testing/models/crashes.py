"""Simulate processes that die or stop at a chosen request.

A ``Process`` stands for the program that sends the requests. After it dies, code of it that still
runs here (cleanup and background tasks) no longer reaches the store. A request that was in flight
at that moment may still take effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from asynccommit.stores.grant import check_grant
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.in_process import Sender, SimRequest, caught
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.refusals import WRITES as S3_WRITES

T = TypeVar("T")

WRITES = frozenset({"create", "mkdir", "append", "flush", "rename", "delete"})
"""The operations of the model that change it."""
LINGERS = 1.0  # seconds that a cancelled request stays in flight


class Crashed(BaseException):
    """Raised when the process is dead: nothing it does now has any effect."""


class When(Enum):
    """The fate of the request at which a process dies."""

    BEFORE = "before"  # it takes no effect
    AFTER = "after"  # it takes effect, and its response is lost
    LATE = "late"  # it takes effect some time after the process died


@dataclass(frozen=True, slots=True)
class Crash:
    """The death of a process at a given write, counted from 1."""

    write: int
    when: When = When.BEFORE
    late: float = 1.0


@dataclass(frozen=True, slots=True)
class Suspension:
    """The suspension of a process, as of its machine, at a given request."""

    request: int
    seconds: float
    after: bool = False


class LoopClock:
    """The time of the running event loop, also for threads that work for it."""

    def __init__(self) -> None:
        self._time: Callable[[], float] | None = None

    def __call__(self) -> float:
        """Return the time now; in a thread, that of the loop which asked last."""
        with suppress(RuntimeError):  # threads have none
            self._time = asyncio.get_running_loop().time
        assert self._time is not None, "no loop has asked yet"
        return self._time()


class Process:
    """A program that sends requests until it dies.

    Args:
        name: name of the process in its ``Host``.
        crash: write at which it dies; ``None`` if it does not.
        stop: request at which it is suspended, and for how long.

    ``writes`` names the writes that it has sent, ``moments`` holds the position of each of them
    among its requests, and ``hooks`` holds coroutines to await before a write, by its number.
    """

    def __init__(
        self, name: str, crash: Crash | None = None, stop: Suspension | None = None
    ) -> None:
        self.name = name
        self.crash = crash
        self.stop = stop
        self.requests = 0
        self.writes: list[str] = []
        self.moments: list[int] = []
        self.dead = False
        self.hooks: dict[int, Callable[[], Awaitable[object]]] = {}
        self._time = LoopClock()
        self._wake: asyncio.Event | None = None
        self._asleep = 0.0

    def __repr__(self) -> str:
        state = "dead" if self.dead else "alive"
        return f"<process {self.name}, {state} after {len(self.writes)} writes>"

    @property
    def is_stopped(self) -> bool:
        """Return whether the process is suspended now."""
        return not self.dead and self._wake is not None

    def clock(self) -> float:
        """Return the loop's time as the process sees it, without suspensions.

        So code of the process that runs here meanwhile, such as timers of background tasks, sees no
        time pass.
        """
        return self._asleep if self.is_stopped else self._time()

    def kill(self) -> None:
        """Kill the process now."""
        self.dead = True
        self.awaken()

    def suspend(self) -> None:
        """Suspend the process: it sends no requests and receives no responses."""
        if self._wake is None:
            self._wake, self._asleep = asyncio.Event(), asyncio.get_running_loop().time()

    def awaken(self) -> None:
        """Resume the process if it is suspended."""
        if self._wake is not None:
            self._wake.set()
        self._wake = None

    async def before(self, writes: bool, what: str) -> When | None:
        """Account for a request before it is sent; return how the process dies at it.

        Returns ``None`` if it does not die. Raises ``Crashed`` if it is dead already.
        """
        await self._awake()
        self.requests += 1
        if self.stop is not None and self.requests == self.stop.request:
            await self._fall_asleep(self.stop)
        if not writes:
            return None
        self.writes.append(what)
        self.moments.append(self.requests)
        if hook := self.hooks.get(len(self.writes)):
            await hook()
            await self._awake()
        if self.crash is None or len(self.writes) != self.crash.write:
            return None
        self.dead = True
        return self.crash.when

    async def after(self) -> None:
        """Account for a response. Raises ``Crashed`` if the process is dead."""
        await self._awake()

    async def _fall_asleep(self, stop: Suspension) -> None:
        self.suspend()
        asyncio.get_running_loop().call_later(stop.seconds, self.awaken)
        if not stop.after:
            await self._awake()

    async def _awake(self) -> None:
        """Wait until the process is resumed. Raises ``Crashed`` if it is dead."""
        if self._wake is not None:
            await self._wake.wait()
        if self.dead:
            raise Crashed(self.name)


class Mortal:
    """A policy directly above a store that applies a process's death to its requests.

    It counts calls of the store contract; ``MortalStore`` counts the requests that they consist of.
    """

    def __init__(self, process: Process) -> None:
        self._process = process

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        process = self._process

        async def sent(op: Op) -> Any:
            when = await process.before(op.writes, f"{op.name} {_paths(op)}")
            if when in (When.BEFORE, When.LATE):
                raise Crashed(process.name)
            try:
                return await call(op)
            finally:
                await process.after()

        return sent


def _paths(op: Op) -> str:
    return " -> ".join(arg for arg in op.args[:2] if isinstance(arg, str))


class MortalSender(Sender):
    """The requests of one process to a model.

    It is a base class that precedes a store's class.

    Every single request is counted, so that a process can die between creating a temporary file and
    renaming it. A request that is cancelled in flight takes effect.
    """

    _process: Process
    _writes: frozenset[str]

    async def _ask(self, asked: SimRequest, op: str, path: str, apply: Callable[[], T]) -> T:
        writes = op in self._writes
        when = await self._process.before(writes, f"{op} {path}" if writes else "")
        if when is not None:
            self._die(when, apply)
        if writes:
            check_grant()  # as the clients of real services do, just before they send
        effect = InFlight(apply)
        try:
            return await super()._ask(asked, op, path, effect)
        except asyncio.CancelledError:
            if writes:
                self.later(LINGERS, partial(caught, effect.linger))
            raise
        finally:
            await self._process.after()

    def _die(self, when: When, apply: Callable[[], object]) -> None:
        crash = self._process.crash
        if when is When.LATE and crash is not None:
            self.later(crash.late, partial(caught, apply))
        if when is When.AFTER:
            caught(apply)  # the response is lost
        raise Crashed(self._process.name)


class MortalStore(MortalSender, SimStore):
    """The simulated store, as one process reaches it.

    Args:
        address: see ``SimStore``.
        options: see ``SimStore``.
        process: process that sends the requests.
    """

    _writes = WRITES

    def __init__(self, address: Address, options: Mapping[str, Any], process: Process) -> None:
        super().__init__(address, options)
        self._process = process


class InFlight:
    """The effect of a request, which one that is cancelled in flight has once."""

    __slots__ = ("_apply", "_begun", "_over")

    def __init__(self, apply: Callable[[], Any]) -> None:
        self._apply = apply
        self._begun = False
        self._over = False

    def __call__(self) -> Any:
        """Apply the effect and return its result; ``None`` if it has lingered."""
        if self._over:
            return None
        self._begun = True
        return self._apply()

    def linger(self) -> Any:
        """Apply the effect of a cancelled request, unless that has happened."""
        if self._begun:
            return None
        self._over = True
        return self._apply()


class MortalS3Store(MortalSender, SimS3Store):
    """The simulated store, as one process reaches it. See ``MortalStore``.

    Args:
        address: see ``SimS3Store``.
        options: see ``SimS3Store``.
        process: process that sends the requests.
    """

    _writes = S3_WRITES

    def __init__(self, address: Address, options: Mapping[str, Any], process: Process) -> None:
        super().__init__(address, options)
        self._process = process

"""Processes that die or stop at a chosen request, and what is then still under way.

A ``Process`` stands for the program that sends the requests. When it dies, whatever of it goes on
running here, cleanup and background tasks, reaches the store no more. A request that was on the
wire at that moment may take effect all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from asynccommit.stores.grant import check_grant
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.errors import Asked
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.in_process import Sender

T = TypeVar("T")

WRITES = frozenset({"create", "mkdir", "append", "flush", "rename", "delete"})
"""The operations of the model that change it."""
LINGERS = 1.0  # seconds that a cancelled request is still on the wire


class Crashed(BaseException):
    """The process is dead: nothing of what it does now happens."""


class When(Enum):
    """What becomes of the request at which a process dies."""

    BEFORE = "before"  # it takes no effect
    AFTER = "after"  # it takes effect, and nobody hears the answer
    LATE = "late"  # it takes effect when the process is dead for a while


@dataclass(frozen=True, slots=True)
class Crash:
    """Where a process dies: at its so many-th write, from 1."""

    write: int
    when: When = When.BEFORE
    late: float = 1.0


@dataclass(frozen=True, slots=True)
class Suspension:
    """Where a process stands still, as one whose machine is suspended: at its n-th request."""

    request: int
    seconds: float
    after: bool = False


class LoopClock:
    """The time of the running loop, for threads that do its work too."""

    def __init__(self) -> None:
        self._time: Callable[[], float] | None = None

    def __call__(self) -> float:
        """Return the time now; in a thread, that of the loop which has asked last."""
        with suppress(RuntimeError):  # there is none in a thread
            self._time = asyncio.get_running_loop().time
        assert self._time is not None, "no loop has asked yet"
        return self._time()


class Process:
    """One program that sends requests, until it dies.

    Args:
        name: what its ``Host`` calls it.
        crash: where it dies; ``None`` if it does not.
        stop: where it stands still, and for how long.

    ``writes`` names the writes that it has sent, ``moments`` has the number of each of them among
    its requests, and ``hooks`` what is to be awaited before one of them, by its number.
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
        """Whether it stands still now."""
        return not self.dead and self._wake is not None

    def clock(self) -> float:
        """Return the loop's time as the process knows it: while it stands still, none passes.

        So what goes on in it here, timers of background tasks, comes to no conclusions meanwhile.
        """
        return self._asleep if self.is_stopped else self._time()

    def kill(self) -> None:
        """Let it die now."""
        self.dead = True
        self.awaken()

    def suspend(self) -> None:
        """Let it stand still from now on: no request is sent, and no answer is heard."""
        if self._wake is None:
            self._wake, self._asleep = asyncio.Event(), asyncio.get_running_loop().time()

    def awaken(self) -> None:
        """Let it go on, if it stands still."""
        if self._wake is not None:
            self._wake.set()
        self._wake = None

    async def before(self, writes: bool, what: str) -> When | None:
        """Pass before a request is sent; returns how the process dies at it, if it does.

        Raises ``Crashed`` if it is dead already.
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
        """Pass when the answer is there. Raises ``Crashed`` if nobody is left to hear it."""
        await self._awake()

    async def _fall_asleep(self, stop: Suspension) -> None:
        self.suspend()
        asyncio.get_running_loop().call_later(stop.seconds, self.awaken)
        if not stop.after:
            await self._awake()

    async def _awake(self) -> None:
        """Wait while it stands still. Raises ``Crashed`` if it is dead."""
        if self._wake is not None:
            await self._wake.wait()
        if self.dead:
            raise Crashed(self.name)


class Mortal:
    """A policy, to stand directly above a store: the requests of one process.

    It counts calls of the contract; ``MortalStore`` counts what they consist of.
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
    """The requests of one process to a model, to stand before a store's class among the bases.

    Every single one is counted, so that a process can die between making a temporary file and
    renaming it. What is cancelled while it is on the wire takes effect.
    """

    _process: Process
    _writes: frozenset[str]

    async def _ask(self, asked: Asked, op: str, path: str, apply: Callable[[], T]) -> T:
        writes = op in self._writes
        when = await self._process.before(writes, f"{op} {path}" if writes else "")
        if when is not None:
            self._die(when, apply)
        if writes:
            check_grant()  # as the clients of real services do, just before they send
        effect = Once(apply)
        try:
            return await super()._ask(asked, op, path, effect)
        except asyncio.CancelledError:
            if writes:
                self._apply_later(LINGERS, effect)
            raise
        finally:
            await self._process.after()

    def _die(self, when: When, apply: Callable[[], object]) -> None:
        crash = self._process.crash
        if when is When.LATE and crash is not None:
            self._apply_later(crash.late, apply)
        if when is When.AFTER:
            with suppress(Refusal):  # nobody hears it
                apply()
        raise Crashed(self._process.name)


class MortalStore(MortalSender, SimStore):
    """The simulated store, as one process reaches it.

    Args:
        address: see ``SimStore``.
        options: see ``SimStore``.
        process: whose requests these are.
    """

    _writes = WRITES

    def __init__(self, address: Address, options: Mapping[str, Any], process: Process) -> None:
        super().__init__(address, options)
        self._process = process


class Once:
    """A request's effect, which happens once however often it is called for."""

    __slots__ = ("_apply", "_done")

    def __init__(self, apply: Callable[[], Any]) -> None:
        self._apply = apply
        self._done = False

    def __call__(self) -> Any:
        """Let it happen; return what it gives, or nothing if it has happened."""
        if self._done:
            return None
        self._done = True
        return self._apply()

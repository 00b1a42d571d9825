"""Keep a minimum time between changes of one name, where required."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.shared import shared

_MOST = 4096  # names that are remembered in one interval: beyond, none is likely to come again
_MOVES = frozenset({"rename", "copy", "copy_if"})
_WRITES = frozenset({"put", "put_marker", "complete_upload"})
_CHANGED = (ThrottledError, OutcomeUnknownError)  # A refusal counts: the name is hot.


class Changes:
    """The times of the last changes of names, kept for one to two intervals.

    Args:
        interval: seconds.
        loop: the event loop of the clock and timers.
    """

    __slots__ = ("__weakref__", "_loop", "before", "full", "interval", "late", "until")

    def __init__(self, interval: float, loop: asyncio.AbstractEventLoop) -> None:
        self.interval = interval
        self.late: dict[str, float] = {}
        self.before: dict[str, float] = {}
        self.full = False
        self.until = 0.0
        self._loop = loop

    def __repr__(self) -> str:
        return f"Changes({len(self.late) + len(self.before)} names)"

    def rest(self, name: str) -> float:
        """Return the seconds until these names may be changed again."""
        last = self.late.get(name, self.before.get(name, -math.inf))
        return last + self.interval - self._loop.time()

    def mark(self, names: Iterable[str]) -> None:
        """Record that these names are changed now."""
        now = self._loop.time()
        if now >= self.until:
            self._turn(now)
        for name in names:
            self.late[name] = now
        if len(self.late) >= _MOST and not self.full:
            # A timer frees room, so that a caller without room need not read the clock.
            self.full = True
            self._loop.call_at(self.until, self._turn, self.until)

    def forget(self, names: Iterable[str]) -> None:
        """Remove a mark."""
        for name in names:
            self.late.pop(name, None)
            self.before.pop(name, None)

    def _turn(self, now: float) -> None:
        if now >= self.until:
            # After a pause, both generations are old.
            self.before = self.late if now < self.until + self.interval else {}
            self.late, self.full = {}, False
            self.until = now + self.interval


class PerObjectRate:
    """A policy that writes no name twice within ``interval`` seconds.

    Google accepts about one change of a name each second and refuses more with 429, which says
    nothing about the rate of the bucket. The changes are ``put``, ``rename`` (both names),
    ``copy``, ``delete`` and the completion of uploads. Only requests that write content to a name
    wait: a move or a deletion right after a write need not wait, and is repeated after a 429. All
    stores that one event loop opened on an account share the times of changes. Changes by other
    processes are unknown, so a 429 is still possible, and then the second attempt also keeps the
    interval. ``waited`` has the seconds that requests waited for their ``name``.

    The time of a change is the time of its response, so a request waits here before it waits for
    the rate or for a slot. An error response does not count as a change.

    The policy stands inside ``Retry``, so that each attempt keeps the interval, and outside the
    other policies: a request that waits for a name holds no slot and has not used a rate that
    others could use.

    Args:
        interval: seconds; 0 for stores without such a limit, at no cost.
        account: the name of what shares the names; empty for a store of its own.
    """

    def __init__(self, interval: float, account: str = "") -> None:
        if not 0 <= interval < float("inf"):
            raise ValueError(f"the interval must be 0 seconds or more, not {interval}")
        self.waited = {"name": 0.0}
        self._interval = interval
        self._account = account
        self._changes: Changes | None = None

    def __repr__(self) -> str:
        return f"Names({self._interval})"

    def around(self, call: Call) -> Call:
        if not self._interval:
            return call

        def spaced(op: Op) -> Any:
            kind = op.name
            if kind in _MOVES:
                written = op.args[1]
            elif kind in _WRITES:
                written = op.args[0]
            elif kind == "delete" or kind == "delete_many":
                written = None
            else:
                return call(op)
            changes = self._changes or self._join()
            if written in changes.late or written in changes.before:
                return self._wait(call, op, written, changes)
            return call(op) if changes.full else _change(call, op, changes)

        return spaced

    def _join(self) -> Changes:
        loop = asyncio.get_running_loop()
        changes = shared(Changes, self._account, lambda: Changes(self._interval, loop))
        self._changes = changes
        return changes

    async def _wait(self, call: Call, op: Op, written: str, changes: Changes) -> Any:
        while (rest := changes.rest(written)) > 0:
            self.waited["name"] += rest
            await asyncio.sleep(rest)
        return await _change(call, op, changes)


def _names(op: Op) -> Sequence[str]:
    """Return the names that ``op`` changes."""
    if op.name == "rename":
        return op.args
    if op.name in _MOVES:
        return op.args[1:2]
    if op.name == "delete_many":
        return [info.path for info in op.args[0]]
    return op.args[:1]


def _change(call: Call, op: Op, changes: Changes) -> Awaitable[Any]:
    """Send a change and mark it: now, and again when it is answered.

    The time when it took effect lies in between.
    """
    names = _names(op)
    changes.mark(names)
    return _marked(call(op), names, changes)


async def _marked(answer: Awaitable[Any], names: Sequence[str], changes: Changes) -> Any:
    try:
        answered = await answer
    except _CHANGED:
        changes.mark(names)
        raise
    except StoreError:
        changes.forget(names)
        raise
    changes.mark(names)
    return answered

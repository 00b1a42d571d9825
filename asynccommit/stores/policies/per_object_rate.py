"""Time between two changes of one name, for stores that refuse them in quick succession."""

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
    """When names were changed last, for an interval at least and for two at most.

    Args:
        interval: seconds.
        loop: whose clock and timers it uses.
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
        """Return the seconds until this may be changed again."""
        last = self.late.get(name, self.before.get(name, -math.inf))
        return last + self.interval - self._loop.time()

    def mark(self, names: Iterable[str]) -> None:
        """Note that these are changed now."""
        now = self._loop.time()
        if now >= self.until:
            self._turn(now)
        for name in names:
            self.late[name] = now
        if len(self.late) >= _MOST and not self.full:
            # A timer, so that whoever finds no room need not ask for the time.
            self.full = True
            self._loop.call_at(self.until, self._turn, self.until)

    def forget(self, names: Iterable[str]) -> None:
        """Take back a mark."""
        for name in names:
            self.late.pop(name, None)
            self.before.pop(name, None)

    def _turn(self, now: float) -> None:
        if now >= self.until:
            # After a silence both are old.
            self.before = self.late if now < self.until + self.interval else {}
            self.late, self.full = {}, False
            self.until = now + self.interval


class PerObjectRate:
    """Write no name within ``interval`` seconds of its last change.

    Google takes about one change of a name each second and refuses more with 429, which says
    nothing of the rate that the bucket takes. What changes a name is ``put``, ``rename`` (both
    names), ``copy``, ``delete`` and what completes an upload; what waits is what writes to it: who
    moves or deletes what was just written need not, and a 429 is sent again. All stores that one
    event loop opened on an account share what they know; what other processes change is not known,
    so 429 may come all the same, and then the second try has its distance too. ``waited`` has the
    seconds that requests waited for their ``name``.

    The time of a change is when it was answered, so a request waits here before it waits for the
    rate or for a slot. An answer that says no is no change.

    It stands inside ``Retry``, so that each attempt keeps its distance, and outside the rest: who
    waits for a name holds no slot and has not paid for a rate that others could use.

    Args:
        interval: seconds; 0 for stores that do not mind, and then this costs nothing.
        account: names what shares the names; empty for a store of its own.
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
        """See ``Policy.around``."""
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
    """Do it and mark it: now, and again when it is answered, for who knows when it took effect."""
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

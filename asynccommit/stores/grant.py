"""What goes with every request of an owner: whether it may be sent, and which directories it means.

A process that was suspended wakes in the middle of what it was doing, with requests that wait in
queues, for their turn or for a thread. So the last to handle a request, the thread that makes the
system call or the code that writes to a connection, asks once more. A grant is a context variable,
not an argument of each request: whatever is done under it is covered, by wrappers and stores that
know nothing of leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol


class Pins(Protocol):
    """Directories that are held as they were when they were pinned; made by a store."""

    async def aclose(self) -> None:
        """Let them go."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """What the requests of one owner are sent under.

    Attributes:
        check: raises what the caller is to be told if nothing may be changed any more; called in
            any thread, without waiting.
        pins: the directories that paths lead to, whatever bears their names by now.
    """

    check: Callable[[], object] | None = None
    pins: Pins | None = None


_granted: ContextVar[Grant | None] = ContextVar("asynccommit_grant", default=None)


def granted() -> Grant | None:
    """Return what requests of this context are sent under, ``None`` for no limits."""
    return _granted.get()


def check_grant() -> None:
    """Raise what the grant says if this context may change nothing any more."""
    grant = _granted.get()
    if grant is not None and grant.check is not None:
        grant.check()


@contextmanager
def granting(
    *, check: Callable[[], object] | None = None, pins: Pins | None = None
) -> Iterator[None]:
    """Send what is asked in this block under ``check`` and ``pins``; what is not given stays."""
    before = _granted.get() or Grant()
    with _sending(replace(before, check=check or before.check, pins=pins or before.pins)):
        yield


@contextmanager
def unchecked() -> Iterator[None]:
    """Send what is asked in this block whatever the time: it puts right what came too late."""
    with _sending(replace(_granted.get() or Grant(), check=None)):
        yield


@contextmanager
def _sending(grant: Grant) -> Iterator[None]:
    before = _granted.get()
    _granted.set(grant)
    try:
        yield
    finally:
        _granted.set(before)  # and no token: a lease may be entered by another task than made it

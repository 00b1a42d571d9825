"""The permission under which an owner's requests are sent.

A suspended process wakes in the middle of its work, with requests that wait in queues or for a
thread. Therefore the last code that handles a request checks the permission again: the thread that
makes the system call, or the code that writes to a connection. A grant is a context variable, not
an argument of each request: it covers everything that is done under it, through policies and stores
that know nothing of leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol


class Pins(Protocol):
    """Directories held since they were pinned; created by a store."""

    async def aclose(self) -> None:
        """Release the directories."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission under which the requests of one owner are sent.

    Attributes:
        check: raises the error for the caller if nothing may be changed any more; called in any
            thread, without waiting.
        pins: the directories that paths lead to, whatever has their names by now.
    """

    check: Callable[[], object] | None = None
    pins: Pins | None = None


_granted: ContextVar[Grant | None] = ContextVar("asynccommit_grant", default=None)


def granted() -> Grant | None:
    """Return the grant of this context, or ``None`` for no limits."""
    return _granted.get()


def check_grant() -> None:
    """Raise the grant's error if this context may change nothing any more."""
    grant = _granted.get()
    if grant is not None and grant.check is not None:
        grant.check()


@contextmanager
def granting(
    *, check: Callable[[], object] | None = None, pins: Pins | None = None
) -> Iterator[None]:
    """Send the requests of this block under ``check`` and ``pins``.

    An omitted argument keeps its current value.
    """
    before = _granted.get() or Grant()
    with _sending(replace(before, check=check or before.check, pins=pins or before.pins)):
        yield


@contextmanager
def unchecked() -> Iterator[None]:
    """Send the requests of this block without the check.

    The requests repair changes that came too late.
    """
    with _sending(replace(_granted.get() or Grant(), check=None)):
        yield


@contextmanager
def unpinned() -> Iterator[None]:
    """Send the requests of this block, about other jobs, without pins."""
    with _sending(replace(_granted.get() or Grant(), pins=None)):
        yield


@contextmanager
def _sending(grant: Grant) -> Iterator[None]:
    before = _granted.get()
    _granted.set(grant)
    try:
        yield
    finally:
        _granted.set(before)  # and no token: a lease may be entered by another task than made it

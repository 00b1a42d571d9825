"""State shared by all stores that one event loop opened on one account."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")

_Shared = WeakValueDictionary[tuple[type, str], Any]
_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()
_Kept = dict[tuple[type, str], Any]
_keeping: WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept] = WeakKeyDictionary()


def shared(kind: type[T], account: str, make: Callable[[], T]) -> T:
    """Return the running loop's ``kind`` of ``account``; make it if needed.

    It exists as long as somebody holds it. An account without a name shares nothing.
    """
    if not account:
        return make()
    here = _loops.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
    found: T | None = here.get((kind, account))
    if found is None:
        here[kind, account] = found = make()
    return found


def kept(kind: type[T], account: str, make: Callable[[], T]) -> T:
    """Return a shared object as ``shared`` does, but keep it with the loop.

    It survives the jobs of the loop. Keep it small.
    """
    if not account:
        return make()
    here = _keeping.setdefault(asyncio.get_running_loop(), {})
    found: T | None = here.get((kind, account))
    if found is None:
        here[kind, account] = found = make()
    return found

"""Work that goes on in the background after its caller has the result.

The next job at the same place waits for it, and so does the end of the program.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future, wait
from typing import Any

from asynccommit.runtime.at_exit import awaited

MAX_RUNNING = 16
"""Calls that may go on at once; the next one ends before its caller has the result."""

_running: dict[Future[Any], str] = {}
_lock = threading.Lock()


def go_on(future: Future[Any], place: str) -> bool:
    """Let ``future`` end in the background, unless too many do so.

    Returns whether it may. The work logs its errors itself.

    Args:
        future: the work.
        place: what it works on.
    """
    with _lock:
        if len(_running) >= MAX_RUNNING:
            return False
        _running[future] = place
    awaited(future)
    future.add_done_callback(_end)
    return True


def _end(future: Future[Any]) -> None:
    with _lock:
        _running.pop(future, None)


async def ended(place: str) -> None:
    """Wait until nothing runs in the background at a place."""
    for future in _at(place):
        await asyncio.wait([asyncio.wrap_future(future)])


def is_busy() -> bool:
    """Return whether anything runs in the background."""
    return bool(_at(None))


def wait_for_all(timeout: float | None = None) -> None:
    """Wait until nothing runs in the background. Raises ``TimeoutError``."""
    if wait(_at(None), timeout).not_done:
        raise TimeoutError(f"the clean-up of a commit still runs after {timeout} s")


def _at(place: str | None) -> list[Future[Any]]:
    with _lock:
        return [future for future, where in _running.items() if place in (None, where)]


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _running.clear()  # the parent ends them


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

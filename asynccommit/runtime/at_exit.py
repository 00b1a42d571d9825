"""Blocks that a program has entered and not left when it ends: they are left then, as by an error.

Python closes a generator that nobody holds any more only after its pools of threads have ended,
which stores use, and after the engine has: what the block does on leaving would wait for ever.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import count

_numbers = count()
_open: dict[int, tuple[threading.Thread, Callable[[], object]]] = {}
_watched = 0


def entered(leave: Callable[[], object]) -> int:
    """Let ``leave`` be called when the program ends; return what ``leaving`` takes."""
    _watch()
    number = next(_numbers)
    _open[number] = (threading.current_thread(), leave)
    return number


def leaving(number: int) -> bool:
    """Return whether a block is still to be left, which is up to the caller now."""
    return _open.pop(number, None) is not None


def _watch() -> None:
    global _watched
    if _watched == os.getpid():
        return
    _watched = os.getpid()
    _open.clear()  # a forked child leaves its parent's blocks alone
    import_module("concurrent.futures.thread")  # the last to register is the first to run
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_leave_all, _watched)


def _leave_all(process: int) -> None:
    """Leave what nobody else will, the innermost first: other threads may be at work yet."""
    if process != os.getpid():
        return
    for number, (thread, leave) in sorted(_open.items(), reverse=True):
        own = thread in (threading.main_thread(), threading.current_thread())
        if (own or not thread.is_alive()) and leaving(number):
            with suppress(BaseException):  # the error that the block is left with, among others
                leave()

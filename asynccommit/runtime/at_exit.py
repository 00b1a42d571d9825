"""Leave the blocks that a program has entered and not left when it ends, as an error would.

Python closes an abandoned generator only after its thread pools have ended, which stores use, and
after the engine has ended: the code that leaves the block would then wait for ever.
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
    """Call ``leave`` when the program ends; return a key for ``leaving``."""
    _watch()
    number = next(_numbers)
    _open[number] = (threading.current_thread(), leave)
    return number


def leaving(number: int) -> bool:
    """Return whether the block is still open; if so, the caller must leave it."""
    return _open.pop(number, None) is not None


def _watch() -> None:
    global _watched
    if _watched == os.getpid():
        return
    _watched = os.getpid()
    _open.clear()  # a forked child leaves its parent's blocks alone
    import_module("concurrent.futures.thread")  # callbacks run in reverse order of registration
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_leave_all, _watched)


def _leave_all(process: int) -> None:
    """Leave all open blocks, innermost first; other threads may still run."""
    if process != os.getpid():
        return
    for number, (thread, leave) in sorted(_open.items(), reverse=True):
        own = thread in (threading.main_thread(), threading.current_thread())
        if (own or not thread.is_alive()) and leaving(number):
            with suppress(BaseException):  # the error that the block is left with, among others
                leave()

"""Leave the blocks that a program has not left when it ends.

Python closes an abandoned generator only after its thread pools have ended, which stores use, and
after the engine has ended: the code that leaves the block would then wait for ever.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import count

_PATIENCE = 0.05
_numbers = count()
_open: dict[int, tuple[threading.Thread, Callable[[], object]]] = {}
_freeze: Callable[[], object] | None = None
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


def when_threads_remain(freeze: Callable[[], object]) -> None:
    """Call ``freeze`` at exit if other threads are still in blocks.

    It is called before the thread pools end, on which these threads depend.
    """
    global _freeze
    _watch()
    _freeze = freeze


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
    while _is_awaited():
        time.sleep(_PATIENCE)
    for number, (thread, leave) in sorted(_open.items(), reverse=True):
        own = thread in (threading.main_thread(), threading.current_thread())
        if (own or not thread.is_alive()) and leaving(number):
            with suppress(BaseException):  # the error that the block is left with, among others
                leave()
    if _open and _freeze is not None:
        _freeze()


def _is_awaited() -> bool:
    """Return whether a block is open in another thread that is no daemon.

    Python waits for such threads itself, but only after it has ended the thread pools: too late for
    what the block does.
    """
    own = threading.current_thread()
    threads = [thread for thread, _ in list(_open.values())]
    return any(t.is_alive() and not t.daemon for t in threads if t is not own)

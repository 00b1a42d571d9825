"""Leave the blocks that a program has not left when it ends.

Python closes an abandoned generator only after its thread pools have ended, which stores use, and
after the engine has ended: the code that leaves the block would then wait for ever.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from typing import Any

_PATIENCE = 0.05
_numbers = count()
_open: dict[int, tuple[threading.Thread, Callable[[], object]]] = {}
_busy: dict[int, threading.Thread] = {}
_awaited: set[Future[Any]] = set()
_freeze: Callable[[], object] | None = None
_watched = 0
_ending_since: float | None = None


def entered(leave: Callable[[], object]) -> int:
    """Call ``leave`` when the program ends; return a key for ``leaving``."""
    _watch()
    number = next(_numbers)
    _open[number] = (threading.current_thread(), leave)
    return number


@contextmanager
def busy() -> Iterator[None]:
    """Make the end of the program wait for what this thread does here.

    If it is a daemon, nothing waits for it: the engine is stopped under it.
    """
    _watch()
    number = next(_numbers)
    _busy[number] = threading.current_thread()
    try:
        yield
    finally:
        _busy.pop(number, None)


@contextmanager
def leaving(number: int) -> Iterator[bool]:
    """Yield whether the block is open; if so, leave it in this context.

    A program that ends waits for what is done here, as for the block itself.
    """
    _busy[number] = threading.current_thread()
    try:
        yield _open.pop(number, None) is not None
    finally:
        _busy.pop(number, None)


def awaited(future: Future[Any]) -> None:
    """Make the end of the program wait for ``future``."""
    _watch()
    _awaited.add(future)
    future.add_done_callback(_awaited.discard)


def seconds_of_end() -> float:
    """Return for how long the program has been ending; 0 while it runs."""
    return 0.0 if _ending_since is None else time.monotonic() - _ending_since


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
    _busy.clear()
    _awaited.clear()
    _open.clear()  # a forked child leaves its parent's blocks alone
    import_module("concurrent.futures.thread")  # callbacks run in reverse order of registration
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_leave_all, _watched)


def _leave_all(process: int) -> None:
    """Leave all open blocks, innermost first; other threads may still run."""
    global _ending_since
    if process != os.getpid():
        return
    while _is_awaited():
        time.sleep(_PATIENCE)
    _ending_since = time.monotonic()
    for number, (thread, leave) in sorted(_open.items(), reverse=True):
        own = thread in (threading.main_thread(), threading.current_thread())
        if own or not thread.is_alive():
            # The error that the block is left with, among others.
            with suppress(BaseException), leaving(number) as is_open:
                if is_open:
                    leave()
    wait(list(_awaited))
    if (_open or _busy) and _freeze is not None:
        _freeze()


def _is_awaited() -> bool:
    """Return whether another thread is in a block, or waits for the engine.

    Only of those that are no daemons: Python waits for them itself, but after it has ended the
    thread pools, which is too late for what the block does.
    """
    own = threading.current_thread()
    threads = [thread for thread, _ in list(_open.values())] + list(_busy.values())
    return any(t.is_alive() and not t.daemon for t in threads if t is not own)

"""The event loop thread of a process, shared by blocking callers.

Jobs that run at the same time share limiters this way, and a notebook's running loop does not
interfere. A forked process gets its own engine: a loop does not survive a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar, cast

from asynccommit.errors import AsyncCommitError, UnsupportedError
from asynccommit.runtime.at_exit import busy, when_threads_remain
from asynccommit.runtime.background import go_on

T = TypeVar("T")

_PATIENCE = 0.2
_GRACE = 60.0
_FINISHED = "the interrupted call had already finished"


class Early(Generic[T]):
    """A result that is given before the work for it has ended.

    Attributes:
        result: the early result.
        goes_on: whether the work ends in the background.
    """

    def __init__(self) -> None:
        self.result: Future[T] = Future()
        self.goes_on = False
        self._place = ""

    def give(self, value: T, place: str) -> None:
        """Give the result. Only the first call has an effect.

        Args:
            value: the result.
            place: what is worked on, see ``background.ended``.
        """
        if not self.result.done():
            self._place = place
            self.result.set_result(value)

    def is_taken_before(self, work: Future[Any]) -> bool:
        """Return whether the result is there before ``work`` has ended.

        After true ``work`` goes on in the background.
        """
        while not wait((self.result, work), _PATIENCE, FIRST_COMPLETED).done:
            pass
        self.goes_on = not work.done() and go_on(work, self._place)
        return self.goes_on


class Engine:
    """An event loop in a daemon thread, used through ``submit``; tests create their own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.frozen = False
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="asynccommit", daemon=True)
        self._thread.start()
        self._started.wait()

    def _serve(self) -> None:
        loop = self._loop = _new_loop()
        # A separate executor: the loop's own would be shut down by a new thread, and while the
        # interpreter ends, which is when this happens, Python 3.12 and later start no threads.
        executor = ThreadPoolExecutor(thread_name_prefix="asynccommit-default")
        loop.set_default_executor(executor)
        try:
            loop.call_soon(self._started.set)
            loop.run_forever()
            if self.frozen:
                _leave_tasks(loop)
            else:
                loop.run_until_complete(_end_tasks())
                loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            executor.shutdown()
            if not self.frozen:
                loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T], early: Early[T] | None = None) -> T:
        """Run ``coroutine`` on the engine's loop and return its result.

        An interrupt of the caller (Ctrl-C) cancels the coroutine and is raised after the coroutine
        has ended, so that nothing continues in the background.

        Args:
            coroutine: the work.
            early: takes the result before the work ends; the rest goes on in the background then,
                also after an interrupt.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise UnsupportedError("blocking calls cannot be made on the engine's own thread")
        assert self._loop is not None
        notes: list[str] = []
        future = asyncio.run_coroutine_threadsafe(_kept(coroutine, notes), self._loop)
        try:
            if early is not None and early.is_taken_before(future):
                return early.result.result()
            result, ending = _wait(future)
        except BaseException as error:
            if early is not None and early.goes_on:
                error.add_note(_FINISHED)
            elif not future.done():
                future.cancel()
                self._let_end()
            for note in notes:
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
            raise
        if ending is not None:
            raise ending
        return cast(T, result)

    def _let_end(self) -> None:
        """Wait until cancelled tasks have finished their cleanup."""
        assert self._loop is not None
        ended = asyncio.run_coroutine_threadsafe(_cancelled_tasks_end(), self._loop)
        try:
            ended.result(_GRACE)
        except TimeoutError:
            ended.cancel()

    def is_alive(self) -> bool:
        """Return whether the engine belongs to this process and its thread runs."""
        return self.pid == os.getpid() and self._thread.is_alive()

    def freeze(self) -> None:
        """Stop the loop, and let its callers wait until the process has ended.

        Daemon threads are frozen by the end of a process as well, wherever they are; an error that
        woke one would have it abort its job without the thread pools that this needs.
        """
        self.frozen = self.is_alive()
        self.close()

    def close(self) -> None:
        """Stop the loop and join its thread."""
        if self._loop is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_GRACE)


async def _kept(
    coroutine: Coroutine[Any, Any, T], notes: list[str]
) -> tuple[T | None, KeyboardInterrupt | SystemExit | None]:
    """Await ``coroutine`` and return an exception that would stop the loop.

    Raising it here would end all other callers too. The notes on its error go to ``notes``, because
    an interrupted caller does not see that error.
    """
    try:
        result = await coroutine
    except (KeyboardInterrupt, SystemExit) as ending:
        return None, ending
    except BaseException as error:
        notes += getattr(error, "__notes__", ())
        raise
    notes.append(_FINISHED)
    return result, None


def _wait(future: Future[T]) -> T:
    # A wait without a timeout cannot be interrupted on every platform.
    while True:
        try:
            return future.result(_PATIENCE)
        except TimeoutError:
            if future.done():
                return future.result()


async def _cancelled_tasks_end() -> None:
    tasks = [task for task in asyncio.all_tasks() if task.cancelling()]
    await asyncio.gather(*tasks, return_exceptions=True)


async def _end_tasks() -> None:
    """Cancel the remaining tasks and wait for them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _leave_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Leave the tasks of a loop pending, without warnings at exit."""
    loop.set_exception_handler(lambda *_: None)
    _abandoned.append((loop, asyncio.all_tasks(loop)))


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop, or of Python where gevent is at work."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("threading"):
        return asyncio.new_event_loop()  # uvloop's would block the only real thread
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


_abandoned: list[object] = []
_lock = threading.Lock()
_engine: Engine | None = None


def engine() -> Engine:
    """Return the engine of this process; start it if needed."""
    global _engine
    if _engine is not None and _engine.frozen:
        _wait_for_the_end()
    with _lock:
        if _engine is None or not _engine.is_alive():
            _engine = Engine()
            when_threads_remain(_engine.freeze)
            atexit.register(_engine.close)
        return _engine


def _wait_for_the_end() -> None:
    """Freeze any thread but the one that ends the process."""
    if threading.current_thread() is not threading.main_thread():
        threading.Event().wait()


def submit(coroutine: Coroutine[Any, Any, T], early: Early[T] | None = None) -> T:
    """Run ``coroutine`` on the engine of this process and return its result.

    ``early`` takes a result that is given before the work ends.
    """
    with busy():
        return engine().submit(coroutine, early)


def call(coroutine: Coroutine[Any, Any, T], early: Early[T] | None = None) -> T:
    """Run ``coroutine`` as ``submit`` does, for a public function that blocks.

    The traceback of an error of this package ends at the caller.
    """
    try:
        return submit(coroutine, early)
    except Exception as error:
        raise short(error) from error.__cause__


def _after_fork() -> None:
    global _engine, _lock
    _engine = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_log = logging.getLogger("asynccommit")


def short(error: BaseException, *, keep: BaseException | None = None) -> BaseException:
    """Return an error of this package without the frames of its causes.

    Its traceback ends at the public function, as its text names the thing and the remedy.
    ``ASYNCCOMMIT_TRACEBACK=full`` in the environment, or a logger ``asynccommit`` at level DEBUG,
    keeps all frames.

    Raise it with ``from error.__cause__`` where the caller's frames are to end. Other errors are
    returned unchanged.

    Args:
        error: the error.
        keep: an error of the caller's own code, which keeps its frames.
    """
    if not isinstance(error, AsyncCommitError) or _is_full():
        return error
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or found is keep or id(found) in seen:
            continue
        seen.add(id(found))
        found.__traceback__ = None
        waiting += (found.__cause__, found.__context__)
    return error


def _is_full() -> bool:
    if os.environ.get("ASYNCCOMMIT_TRACEBACK") == "full":
        return True
    return _log.isEnabledFor(logging.DEBUG)

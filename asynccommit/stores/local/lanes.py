"""Blocking calls in threads, batched by turn of the event loop.

All calls of one turn share one hop to a thread.

A hop costs some 60 us, a rename on a local disk 15: with one hop each, a loop makes 6,500 renames a
second. So calls wait until the loop has run its ready callbacks, then start together, and their
results return together.

How many threads a turn's calls are spread over is measured. Calls that mostly compute (a local
disk whose directories are in memory) run fastest one after the other; calls that mostly wait (a
network filesystem) run fastest all at once. The ratio of time passed to processor time tells
them apart. Threads that wait for each other raise it as well, but never above the number of
threads; the weight below 1 therefore brings a crowd on a quick disk back to one.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter, thread_time
from typing import Any, TypeVar

from asynccommit.errors import UnsupportedError

T = TypeVar("T")
_Call = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]
_Answer = tuple["asyncio.Future[Any]", Any, Exception | None]

_WEIGHT = 0.7  # of the measured ratio; see above
_MEMORY = 0.8  # what one measurement leaves of those before it


def spread(passed: float, computed: float, threads: int) -> int:
    """Return how many of ``threads`` to use for calls of this duration."""
    return max(1, min(threads, round(passed / computed * _WEIGHT)))


class Lanes:
    """Threads that run blocking calls for one event loop.

    Args:
        name: of the threads.
        threads: how many there may be.
        gather: run the calls of one turn together, for calls that are quick. Otherwise each call
            has a thread of its own as soon as one is free.
    """

    def __init__(self, name: str, threads: int = 16, *, gather: bool = True) -> None:
        self._name = name
        self._threads = threads
        self._gather = gather
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: list[_Call] = []
        self._begun: set[asyncio.Future[Any]] = set()
        self._settling: list[asyncio.Future[None]] = []
        self._passed = self._computed = 1e-6

    def submit(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Run ``function(*args)`` in a thread; return a future of its result."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._bind(loop)
        if not self._waiting:
            loop.call_soon(self._flush)
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append((future, function, args))
        return future

    async def settle(self, call: asyncio.Future[Any]) -> None:
        """Wait until no thread works on ``call``, which was cancelled.

        A cancellation does not end this wait: calls must be finished when it returns, or they could
        interfere with a clean-up.
        """
        while call in self._begun:
            ended = asyncio.get_running_loop().create_future()
            self._settling.append(ended)
            with suppress(asyncio.CancelledError):
                await ended

    async def aclose(self) -> None:
        """Wait for running calls and end the threads; later calls start new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)

    @property
    def lanes(self) -> int:
        """The number of threads that share the calls of one turn of the loop."""
        if not self._gather:
            return self._threads
        return spread(self._passed, self._computed, self._threads)

    def _bind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            raise UnsupportedError(
                "this store is in use by another event loop: open one store for each loop"
            )
        self._loop = loop

    def _flush(self) -> None:
        calls, self._waiting = self._waiting, []
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        size = -(-len(calls) // self.lanes) if self._gather else 1
        for start in range(0, len(calls), size):
            try:
                self._pool.submit(self._run, calls[start : start + size])
            except RuntimeError as error:  # no thread to be had, or the interpreter ends
                self._refuse(calls[start:], str(error))
                return

    def _refuse(self, calls: list[_Call], why: str) -> None:
        """Fail calls that no thread takes, as the system does out of resources."""
        refused = [(future, None, OSError(errno.EAGAIN, why)) for future, _, _ in calls]
        self._deliver([*refused], 0.0, 0.0)

    def _run(self, calls: list[_Call]) -> None:
        """Make the calls and hand the results to the loop. Runs in a thread."""
        assert self._loop is not None
        start, computed = perf_counter(), thread_time()
        answers: list[_Answer] = []
        begun = self._begun
        for future, function, args in calls:
            # In this order, and the loop the other way round (cancel, then look whether it has
            # begun): so no call is both given up there and made here.
            begun.add(future)
            if future.cancelled():
                begun.discard(future)
                continue
            try:
                answers.append((future, function(*args), None))
            except Exception as error:
                answers.append((future, None, error))
        computed, passed = thread_time() - computed, perf_counter() - start
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, answers, passed, computed)

    def _deliver(self, answers: list[_Answer], passed: float, computed: float) -> None:
        self._passed = self._passed * _MEMORY + passed
        self._computed = self._computed * _MEMORY + computed
        begun = self._begun
        for future, result, error in answers:
            begun.discard(future)
            if future.done():  # the caller was cancelled
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        while self._settling:
            ended = self._settling.pop()
            if not ended.done():
                ended.set_result(None)

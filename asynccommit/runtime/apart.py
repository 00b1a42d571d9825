"""Calls of functions that may block, apart from the event loop.

While a function runs on the event loop, no lease is renewed and no request of any job is sent. So
what a user gave is called in a thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds for which the event loop waits for a call; less than the owner's part of any lease."""

_POLL = 0.05


class OnLoop(Generic[T]):
    """A function that never blocks, and is called on the event loop."""

    def __init__(self, function: Callable[[T], object]) -> None:
        self._function = function

    def __call__(self, value: T) -> None:
        """Call the function with ``value``."""
        self._function(value)

    @property
    def is_busy(self) -> bool:
        """Return false: a call has ended when it returns."""
        return False

    async def end(self) -> None:
        """Return at once."""


class Apart(Generic[T]):
    """A function that is called in threads, one call at a time and in order.

    The caller waits for each call, until one takes longer than ``patience``. From then on it waits
    for none: of the values that come during a call, only the last one is passed on.

    An exception of the function is raised by the next call, or by ``end``.

    Args:
        function: called with one value.
        patience: seconds to wait for a call.
    """

    def __init__(self, function: Callable[[T], object], patience: float = PATIENCE) -> None:
        self._function = function
        self._patience = patience
        self._lock = threading.Lock()
        self._next: list[T] = []
        self._idle = threading.Event()
        self._idle.set()
        self._error: BaseException | None = None

    def __call__(self, value: T) -> None:
        """Call the function with ``value``, or have its thread do it."""
        with self._lock:
            self._next = [value]
            idle = self._idle.is_set()
            self._idle.clear()
        if idle:
            self._start()
        if self._patience and not self._idle.wait(self._patience):
            self._patience = 0.0
        self._raise()

    @property
    def is_busy(self) -> bool:
        """Return whether a call is under way or waits."""
        return not self._idle.is_set()

    async def end(self) -> None:
        """Wait until the last call has ended."""
        while self.is_busy:  # noqa: ASYNC110 - a thread ends it, under any event loop
            await asyncio.sleep(_POLL)
        self._raise()

    def _start(self) -> None:
        run = copy_context().run
        thread = threading.Thread(
            target=run, args=(self._work,), name="asynccommit-callback", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, and starts no threads any more
            run(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._next:
                    self._idle.set()
                    return
                value = self._next.pop()
            try:
                self._function(value)
            except BaseException as error:  # raised again where the value came from
                with self._lock:
                    self._error = error
                    self._next.clear()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def apart(function: Callable[[T], object] | None) -> OnLoop[T] | Apart[T] | None:
    """Return ``function`` as it is called beside a lease; ``None`` for none."""
    if function is None or isinstance(function, OnLoop | Apart):
        return function
    return Apart(function)


class Listener(Generic[T]):
    """A function of the user's that hears of progress until it fails.

    Args:
        function: see ``apart``; ``None`` for none.
        failed: takes its first exception; what is reported on goes on.
    """

    def __init__(
        self, function: Callable[[T], object] | None, failed: Callable[[Exception], object]
    ) -> None:
        self._function = apart(function)
        self._failed = failed
        self.listens = function is not None

    def __call__(self, value: T) -> None:
        """Call the function with ``value``, if it still listens."""
        if self._function is None or not self.listens:
            return
        try:
            self._function(value)
        except Exception as error:
            self._stop(error)

    @property
    def is_busy(self) -> bool:
        """Return whether a call has not ended."""
        return self._function is not None and self._function.is_busy

    async def end(self) -> None:
        """Wait until the last call has ended."""
        if self._function is not None:
            try:
                await self._function.end()
            except Exception as error:
                self._stop(error)

    def _stop(self, error: Exception) -> None:
        self.listens = False
        self._failed(error)

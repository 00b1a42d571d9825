"""An event loop whose time moves only when nothing is left to do: hours of waiting in no time.

Timers fire in their order and at exactly their time, so a run repeats. What comes from outside of
the loop (a socket, a thread) is waited for only while no timer is set: it is no part of a
simulation, and takes no time in it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own, which starts at 0 seconds."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        """Return the seconds that have passed on this loop's clock."""
        return self._now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the loop's threads; no timeout, which would be over at once."""
        await super().shutdown_default_executor()

    def skip(self, seconds: float) -> None:
        """Move the clock on."""
        self._now += seconds


class _Skipping(selectors.BaseSelector):
    """Waits for no timer: where the loop would wait for one, its clock is moved there."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(None if timeout is None else 0)
        if not ready and timeout:
            self._loop.skip(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end on a loop with virtual time, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)

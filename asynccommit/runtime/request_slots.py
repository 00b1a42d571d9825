"""A bounded number of slots, taken without a wait while one is free."""

from __future__ import annotations

import asyncio
from collections import deque


class RequestSlots:
    """Slots for one event loop, given to those that wait in their order.

    ``take`` is a plain call: a semaphore of asyncio has a coroutine for it, which costs each
    request a microsecond although it hardly ever waits.

    Args:
        count: the number of slots.

    Attributes:
        free: slots that nobody has; 0 while somebody waits.
    """

    __slots__ = ("_queue", "free")

    def __init__(self, count: int) -> None:
        self.free = count
        self._queue: deque[asyncio.Future[None]] = deque()

    def __repr__(self) -> str:
        return f"RequestSlots({self.free} free, {len(self._queue)} wait)"

    def take(self) -> bool:
        """Take a slot if one is free; return whether one was."""
        if self.free <= 0:
            return False
        self.free -= 1
        return True

    async def wait(self) -> None:
        """Take a slot, and wait for it if none is free."""
        if self.take():
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given the slot at that moment
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back: to the first that waits, if somebody does."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1

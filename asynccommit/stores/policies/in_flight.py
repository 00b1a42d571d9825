"""A limit on the number of requests in flight."""

from __future__ import annotations

import asyncio
from typing import Any

from asynccommit.stores.policies.funnel import Call, Op


class InFlightLimit:
    """A policy that limits the number of concurrent requests.

    ``slots`` is the maximum; ``None`` for no limit.

    It stands inside ``Retry``, so that a request that waits to be sent again holds no slot.
    """

    def __init__(self, slots: int | None) -> None:
        if slots is not None and slots < 1:
            raise ValueError(f"slots must be at least 1, not {slots}")
        self.slots = slots

    def __repr__(self) -> str:
        return f"Limit({self.slots})"

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        if self.slots is None:
            return call
        slots = asyncio.Semaphore(self.slots)

        async def limited(op: Op) -> Any:
            await slots.acquire()
            try:
                return await call(op)
            finally:
                slots.release()

        return limited

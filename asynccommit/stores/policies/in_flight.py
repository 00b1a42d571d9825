"""A limit on the number of requests in flight."""

from __future__ import annotations

import resource
from typing import Any

from asynccommit.runtime.concurrency import RequestSlots
from asynccommit.stores.policies.funnel import Call, Op

_OWN_FILES = 32
"""Open files that a program has besides its connections."""


def open_files_allow() -> int:
    """Return how many connections the limit of open files has room for.

    It is half of what is left, for this store is hardly ever the only one.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else max(4, (soft - _OWN_FILES) // 2)


class InFlightLimit:
    """A policy that limits the number of concurrent requests.

    ``slots`` is the maximum; ``None`` for no limit. ``free_slots`` are those of this moment.

    It stands inside ``Retry``, so that a request that waits to be sent again holds no slot.
    """

    def __init__(self, slots: int | None) -> None:
        if slots is not None and slots < 1:
            raise ValueError(f"slots must be at least 1, not {slots}")
        self.slots = slots
        self.free_slots = RequestSlots(slots or 0)

    def __repr__(self) -> str:
        return f"Limit({self.slots})"

    def around(self, call: Call) -> Call:
        if self.slots is None:
            return call
        slots = self.free_slots

        async def limited(op: Op) -> Any:
            if not slots.take():
                await slots.wait()
            try:
                return await call(op)
            finally:
                slots.release()

        return limited

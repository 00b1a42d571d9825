"""An order for slices of a commit in the process that does them."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import replace

from asynccommit.commit.orders import Order, Slice, Tally
from asynccommit.commit.slices.worker import Worker, check_version, look
from asynccommit.errors import UnsupportedError
from asynccommit.runners.messages import (
    Message,
    error_message,
    order_of,
    slice_of,
    tally_message,
)
from asynccommit.runtime.host import Host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.traffic import traffic_of
from asynccommit.stores.registry import StoreSettings, close_store, open_store


class OrderInHand:
    """The order that a process works for, one slice after the other.

    Args:
        host: clock and name of the process.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held = AsyncExitStack()
        self._worker: Worker | None = None
        self._store: Wrapped | None = None

    async def answer(self, message: Message) -> Message:
        """Return the answer to an order, or to a slice of the last one."""
        try:
            if "order" in message:
                await self._take(message["order"])
                return {"ready": True}
            return {"tally": tally_message(await self._do(slice_of(message["slice"])))}
        except Exception as error:
            return {"error": error_message(error)}

    async def aclose(self) -> None:
        """Give the order up, and close its store."""
        self._worker = self._store = None
        held, self._held = self._held, AsyncExitStack()
        await held.aclose()

    async def _do(self, piece: Slice) -> Tally:
        assert self._worker is not None
        assert self._store is not None
        before = traffic_of(self._store).refused
        tally = await self._worker.do(piece)
        return replace(tally, refused=traffic_of(self._store).refused - before)

    async def _take(self, message: Message) -> None:
        await self.aclose()
        check_version(message["version"])  # another one may have other messages
        order = order_of(message)
        if self._host.clock is time.monotonic:
            raise UnsupportedError("this system has no clock that counts suspension")
        store = self._store = _opened(order, self._host)
        self._held.push_async_callback(close_store, store)
        await look(order, store)
        if order.commit_id:
            worker = Worker(order, store, self._host)
            self._worker = await self._held.enter_async_context(worker)


def _opened(order: Order, host: Host) -> Wrapped:
    settings = StoreSettings(
        rng=host.rng,
        rate=order.options.get("rate"),
        parts=order.parts,
        attempts=order.options.get("attempts"),
        retry_seconds=float(str(order.options["retry_seconds"])),
        options=dict(order.storage),
        log_fields=order.layout.log_fields,
    )
    return open_store(order.layout.dest, settings)

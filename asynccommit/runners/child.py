"""A process that does slices of a commit for its parent.

Standard input and output carry JSON lines: an order or a slice, and the answer to it. An empty
object says that this process is at work. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import AsyncExitStack
from typing import Any

import orjson

from asynccommit.commit.orders import Order
from asynccommit.commit.slices.worker import Worker, look
from asynccommit.errors import UnsupportedError
from asynccommit.runners.messages import (
    Message,
    encode,
    error_message,
    order_of,
    slice_of,
    tally_message,
)
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, close_store, open_store

_PULSE = 5.0
_LONGEST = 1 << 28


class _Serving:
    """The order that this process works for."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held = AsyncExitStack()
        self._worker: Worker | None = None

    async def answer(self, message: Message) -> Message:
        """Return the answer to a message."""
        try:
            if "order" in message:
                await self._take(order_of(message["order"]))
                return {"ready": True}
            assert self._worker is not None
            return {"tally": tally_message(await self._worker.do(slice_of(message["slice"])))}
        except Exception as error:
            return {"error": error_message(error)}

    async def _take(self, order: Order) -> None:
        await self._held.aclose()
        self._worker = None
        if self._host.clock is time.monotonic:
            raise UnsupportedError("this system has no clock that counts suspension")
        store = _opened(order, self._host)
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


async def _serve(writing: int) -> None:
    reader = asyncio.StreamReader(limit=_LONGEST)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    messages: asyncio.Queue[Message] = asyncio.Queue()

    async def read() -> None:
        while line := await reader.readline():
            messages.put_nowait(orjson.loads(line))
        os._exit(0)  # whoever has started this is gone: nothing more may be sent

    async def beat() -> None:
        while True:
            await asyncio.sleep(_PULSE)
            _write(writing, {})

    serving = _Serving(this_host())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(read())
        tasks.create_task(beat())
        while True:
            _write(writing, await serving.answer(await messages.get()))


def _write(writing: int, message: dict[str, Any]) -> None:
    data = encode(message)
    try:
        while data:
            data = data[os.write(writing, data) :]
    except BrokenPipeError:
        os._exit(0)  # as at the end of the input


def main() -> None:
    """Answer until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the owner decides
    writing = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no message
    asyncio.run(_serve(writing))


if __name__ == "__main__":
    main()

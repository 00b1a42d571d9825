"""Slices of commits in the worker processes of a cluster.

A cluster calls ``do`` with an order and a slice, in any of its processes and threads. The stores
and permits of an order stay open in that process between its slices.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from contextlib import aclosing
from typing import TypeAlias

import orjson

from asynccommit.runners.messages import Message, encode
from asynccommit.runners.serving import OrderInHand
from asynccommit.runtime.host import this_host

_IDLE = 60.0
"""Seconds without a slice after which an order is given up."""


class Parcel:
    """An order and a slice on their way.

    Credentials may be among them, so nothing is shown.

    Args:
        order: the message with the order.
        piece: the message with a slice; empty to try whether the order can be done.
    """

    __slots__ = ("order", "piece")

    def __init__(self, order: bytes, piece: bytes = b"") -> None:
        self.order = order
        self.piece = piece

    def __repr__(self) -> str:
        return "Parcel()"


def do(parcel: Parcel) -> bytes:
    """Do the slice of a parcel in this process; return the answer."""
    global _home
    with _making:
        if _home is None or _home.process != os.getpid():  # a fork has no threads
            _home = _Home()
    return _home.ask(parcel).result()


_Asked: TypeAlias = "asyncio.Queue[tuple[bytes, Future[bytes]]]"


class _Home:
    """A thread with an event loop, on which orders are done."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._desks: dict[bytes, _Asked] = {}
        self._working: set[asyncio.Task[None]] = set()
        run = self._loop.run_forever
        threading.Thread(target=run, name="asynccommit-worker", daemon=True).start()

    def ask(self, parcel: Parcel) -> Future[bytes]:
        """Return the answer to come."""
        answer: Future[bytes] = Future()
        self._loop.call_soon_threadsafe(self._put, parcel, answer)
        return answer

    def _put(self, parcel: Parcel, answer: Future[bytes]) -> None:
        asked = self._desks.get(parcel.order)
        if asked is None:
            asked = self._desks[parcel.order] = asyncio.Queue()
            work = self._loop.create_task(self._work(parcel.order, asked))
            self._working.add(work)
            work.add_done_callback(self._working.discard)
        asked.put_nowait((parcel.piece, answer))

    async def _work(self, order: bytes, asked: _Asked) -> None:
        """Do the slices of an order, one after the other.

        One task does all, because its context has the permit that each request looks at.
        """
        async with aclosing(OrderInHand(this_host())) as serving:
            ready: Message = {"error": ""}
            while True:
                try:
                    piece, answer = await asyncio.wait_for(asked.get(), _IDLE)
                except TimeoutError:
                    if asked.empty():
                        del self._desks[order]
                        return
                    continue
                if "error" in ready:
                    ready = await serving.answer(orjson.loads(order))
                done = ready if "error" in ready or not piece else None
                done = done or await serving.answer(orjson.loads(piece))
                answer.set_result(encode(done))


_making = threading.Lock()
_home: _Home | None = None

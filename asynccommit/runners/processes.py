"""Workers that are processes of this machine.

Each runs ``python -m asynccommit.runners.child``, which imports nothing of the caller's program. It
inherits the environment, from which it has its credentials; options of the store that the caller
gave go through its standard input.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from asynccommit.commit.orders import Order, Slice, Tally, WorkerLostError
from asynccommit.errors import UnsupportedError
from asynccommit.runners.messages import (
    Message,
    encode,
    error_of,
    order_message,
    slice_message,
    tally_of,
)

_SILENCE = 60.0
"""Seconds without a message after which a worker counts as lost; it sends one every few."""
_LONGEST = 1 << 24
"""Maximum number of bytes of a line from a worker."""


class Processes:
    """A ``Runner`` of processes of this machine.

    Args:
        workers: number of processes.
        least: number of files from which they are used; below, nothing is said about it.
    """

    name = "processes"
    kills = True

    def __init__(self, workers: int, least: int = 0) -> None:
        self.workers = workers
        self.least = least
        self._free: asyncio.Queue[_Child | None] = asyncio.Queue()
        self._children: set[_Child] = set()

    async def open(self, order: Order) -> None:
        """See ``Runner.open``.

        All processes are started, and each looks at the destination.
        """
        if os.name == "nt":
            raise UnsupportedError("on Windows no processes are started")
        encode(order_message(order))  # before any is started
        async with asyncio.TaskGroup() as starting:
            begun = [starting.create_task(self._begin(order)) for _ in range(self.workers)]
        for task in begun:
            if isinstance(error := task.result(), Exception):
                raise error
            self._free.put_nowait(error)

    async def _begin(self, order: Order) -> _Child | Exception:
        """Return a child that can do the order, or the reason why there is none."""
        try:
            child = await _Child.start()
            self._children.add(child)
            await child.take(order)
        except (Exception, ExceptionGroup) as error:
            return error
        return child

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """See ``Runner.submit``.

        A worker that is lost is killed before that is raised.
        """
        child = await self._free.get()
        try:
            if child is None:
                child = await _Child.start()
                self._children.add(child)
            await child.take(order)
            return await child.do(piece)
        except (WorkerLostError, asyncio.CancelledError):
            if child is not None:
                await self._end(child)
                child = None
            raise
        finally:
            self._free.put_nowait(child)

    async def _end(self, child: _Child) -> None:
        self._children.discard(child)
        await child.kill()

    async def aclose(self) -> None:
        """See ``Runner.aclose``."""
        while self._children:
            await self._end(next(iter(self._children)))
        self._free = asyncio.Queue()


class _Child:
    """One process, which does one thing at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._order: Order | None = None

    @classmethod
    async def start(cls) -> _Child:
        """Start a process. Raises ``OSError``."""
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
        command = (sys.executable, "-P", "-m", "asynccommit.runners.child")
        env = {**os.environ, "PYTHONPATH": path}
        return cls(
            await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, env=env, limit=_LONGEST
            )
        )

    async def take(self, order: Order) -> None:
        """Have the process begin with an order, unless it has."""
        if order is not self._order:
            await self._ask({"order": order_message(order)})
            self._order = order

    async def do(self, piece: Slice) -> Tally:
        """Have a slice done."""
        return tally_of((await self._ask({"slice": slice_message(piece)}))["tally"])

    async def _ask(self, message: Message) -> Message:
        """Return the answer to a message.

        Raises the error that the process has sent, and ``WorkerLostError``.
        """
        data = encode(message)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            await asyncio.wait_for(self._process.stdin.drain(), _SILENCE)
            while (answer := await asyncio.wait_for(self._line(), _SILENCE)) == {}:
                pass
        except TimeoutError:
            raise WorkerLostError(f"process {self._process.pid} is silent") from None
        except (OSError, ValueError):
            code = self._process.returncode
            text = f"process {self._process.pid} has ended" + (f" with {code}" if code else "")
            raise WorkerLostError(text) from None
        if "error" in answer:
            raise error_of(answer["error"])
        return answer

    async def _line(self) -> Message:
        assert self._process.stdout is not None
        found: dict[str, Any] = orjson.loads(await self._process.stdout.readline())
        return found

    async def kill(self) -> None:
        """Kill the process, and wait until it is gone, also while cancelled."""
        with suppress(ProcessLookupError):
            self._process.kill()
        cancelled: asyncio.CancelledError | None = None
        while self._process.returncode is None:
            try:
                await self._process.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        self._process._transport.close()  # type: ignore[attr-defined]  # and with it the pipes
        if cancelled is not None:
            raise cancelled

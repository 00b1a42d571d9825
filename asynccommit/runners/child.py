"""A process that does slices of a commit for its parent.

Standard input and output carry JSON lines: an order or a slice, and the answer to it. An empty
object says that this process is at work. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import orjson

from asynccommit.runners.messages import Message, encode
from asynccommit.runners.serving import OrderInHand
from asynccommit.runtime.host import this_host

_PULSE = 5.0
_LONGEST = 1 << 28


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

    serving = OrderInHand(this_host())
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

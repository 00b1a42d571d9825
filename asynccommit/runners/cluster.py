"""Workers that are processes of a cluster which the caller has started.

Each slice is one task of the cluster, which the cluster may repeat, lose or run twice. What it runs
is ``desk.do``, so its processes need this package, in the same version, and credentials of their
own; options of the store that the caller gave are sent.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod

import orjson

from asynccommit.commit.orders import Order, Slice, Tally, WorkerLostError
from asynccommit.errors import UnsupportedError
from asynccommit.redact import redact
from asynccommit.runners.desk import Parcel
from asynccommit.runners.messages import (
    Message,
    encode,
    error_of,
    order_message,
    slice_message,
    tally_of,
)

MOST = 4
"""Number of processes that keep an account busy, as far as this was measured."""
_LONGEST = 600.0
"""Seconds for a slice, and twice as many each time that it is handed out again."""
_TELLING = re.compile(r"[\w.]*(Error|Exception)\b.*")


class Cluster(ABC):
    """A ``Runner`` of a cluster. Its subclasses say how a task is run there.

    Args:
        workers: number of slices at once; by default that of the processes, at most ``MOST``.
    """

    name = "cluster"
    least = 0
    kills = False

    def __init__(self, workers: int | None = None) -> None:
        self._given = workers
        self.workers = workers or 1

    @abstractmethod
    async def connect(self) -> int:
        """Return the number of processes that the cluster has.

        Raises ``UnsupportedError`` if there is no cluster.
        """

    @abstractmethod
    async def _run(self, parcel: Parcel) -> bytes:
        """Have ``do`` run in a process of the cluster; return its answer.

        Raises what the cluster raises.
        """

    async def open(self, order: Order) -> None:
        """See ``Runner.open``: as many processes as there will be workers look."""
        found = await self.connect()
        self.workers = self._given or max(1, min(MOST, found))
        async with asyncio.TaskGroup() as looking:
            looks = [looking.create_task(self._look(order)) for _ in range(self.workers)]
        for look in looks:
            if (error := look.result()) is not None:
                raise error

    async def _look(self, order: Order) -> Exception | None:
        try:
            await self._ask(Parcel(encode({"order": order_message(order)})), _LONGEST)
        except (Exception, ExceptionGroup) as error:
            return error
        return None

    async def submit(self, order: Order, piece: Slice) -> Tally:
        """See ``Runner.submit``."""
        told = (encode({"order": order_message(order)}), encode({"slice": slice_message(piece)}))
        answer = await self._ask(Parcel(*told), _LONGEST * 2**piece.attempt)
        return tally_of(answer["tally"])

    async def _ask(self, parcel: Parcel, seconds: float) -> Message:
        try:
            answer: Message = orjson.loads(await asyncio.wait_for(self._run(parcel), seconds))
        except TimeoutError:
            raise WorkerLostError(f"{self.name} has not answered in {seconds:,.0f} s") from None
        except Exception as error:
            raise WorkerLostError(in_a_line(error)) from None
        if "error" in answer:
            raise error_of(answer["error"])
        return answer

    async def aclose(self) -> None:  # noqa: B027  there is nothing to end
        """See ``Runner.aclose``: the cluster is the caller's."""


def in_a_line(error: BaseException) -> str:
    """Return the last cause that the error of a cluster tells, in a line."""
    if isinstance(error, UnsupportedError):
        return str(error)
    lines = f"{type(error).__name__}: {error}".splitlines()
    telling = [found[0] for line in lines if (found := _TELLING.match(line.strip()))]
    return redact(telling[-1] if len(lines) > 1 and telling else lines[0])[:500]


def missing(name: str, error: ImportError) -> UnsupportedError:
    """Return the error for a cluster whose package is not installed here."""
    text = f"{name} is not installed: pip install 'asynccommit[{name}]' ({error})"
    return UnsupportedError(text)

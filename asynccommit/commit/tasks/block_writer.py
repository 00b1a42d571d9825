"""A writer that sends blocks in the background, in bounded memory."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from io import BytesIO
from typing import ClassVar

from asynccommit.commit.tasks.writers import Chunk, FileWriter, abort_after
from asynccommit.errors import OptionError


class Slots:
    """A limit on the full blocks in memory of one task's files.

    Args:
        in_flight: blocks of one file in memory at most, the one that is being filled among them.

    Raises:
        OptionError: ``in_flight`` is less than 1.
    """

    def __init__(self, in_flight: int) -> None:
        if in_flight < 1:
            raise OptionError(f"{in_flight} blocks in memory: expected at least 1")
        self.alone = in_flight == 1
        self.free = asyncio.Semaphore(max(1, in_flight - 1))


class BlockWriter(FileWriter):
    """A file being written; its full blocks are sent in the background.

    A file has ``in_flight`` blocks of ``size`` bytes in memory at most, and each further file that
    is open beside it one more.

    Args:
        path: where the file will be.
        size: bytes of every block but the last.
        slots: shared by all files that are open.

    Attributes:
        length: bytes written.
        keeps_last: whether a full block is only sent when more follows, so that ``_finish`` is
            given bytes unless the file is empty.
    """

    keeps_last: ClassVar[bool] = False

    def __init__(self, path: str, size: int, slots: Slots) -> None:
        super().__init__()
        self.path = path
        self.length = 0
        self._size = size
        self._slots = slots
        self._buffer = BytesIO()
        self._begun = 0
        self._sending: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r}, {self.length} bytes)"

    @abstractmethod
    async def _begin_block(self, number: int) -> None:
        """Prepare to send the block ``number``, from 1. Raises ``StoreError``."""

    @abstractmethod
    async def _put(self, number: int, data: bytes) -> None:
        """Send a full block. Raises ``StoreError``."""

    @abstractmethod
    async def _finish(self, rest: bytes) -> None:
        """Send what is left and wait for all. Raises ``StoreError``."""

    @abstractmethod
    async def _discard(self) -> None:
        """Delete what was sent. Raises ``StoreError``."""

    async def write(self, data: Chunk) -> int:
        """Take ``data``; waits while too many blocks are in memory.

        Raises:
            OptionError: the file was closed before.
            RejectedError: the file is larger than the store can take.
            StoreError: a block could not be sent; the file must then be aborted.
        """
        self.check_open(self.path)
        self._check_sent()
        rest = memoryview(data).cast("B")
        try:
            while rest:
                if self._buffer.tell() == self._size:
                    await self._send(self._taken())
                count = min(len(rest), self._size - self._buffer.tell())
                self._buffer.write(rest[:count])
                self.length += count
                rest = rest[count:]
                if not self.keeps_last and self._buffer.tell() == self._size:
                    await self._send(self._taken())
        except asyncio.CancelledError:  # nobody knows how much of ``data`` is in the file
            text = "a write was cancelled in progress: abort the file"
            self._errors.append(OptionError(f"{self.path}: {text}"))
            raise
        return memoryview(data).nbytes

    async def aclose(self) -> None:
        """Send the rest and wait for all blocks; the file stays invisible.

        A file that cannot be closed is aborted. Closing twice is fine. Raises what ``write`` does.
        """
        if not self.takes_more:
            return
        with self.closing():
            try:
                self._check_sent()
                await self._finish(self._taken())
            except BaseException as error:
                await abort_after(error, self)
                raise

    async def abort(self) -> None:
        """Discard the file, unless it was closed or aborted.

        Raises ``StoreError``.
        """
        if not self.is_open:
            return
        self.is_open = False
        self._buffer = BytesIO()
        cut = [task for task in self._sending if task.cancel()]
        if cut:
            await asyncio.wait(cut)
        await self._discard()
        if cut:  # a block that was under way may have come after the first
            await self._discard()

    async def _all_sent(self) -> None:
        if self._sending:
            await asyncio.wait(self._sending)
        self._check_sent()

    async def _send(self, data: bytes) -> None:
        await self._begin_block(self._begun + 1)
        await self._slots.free.acquire()
        if self._errors:
            self._slots.free.release()
            self._check_sent()
        self._begun += 1
        task = asyncio.create_task(self._put(self._begun, data))
        self._sending.add(task)
        task.add_done_callback(self._ended)
        if self._slots.alone:
            del data
            await asyncio.wait([task])

    def _taken(self) -> bytes:
        data, self._buffer = self._buffer.getvalue(), BytesIO()
        return data

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Here and not in the task: one that is cancelled before its first step never runs. Whoever
        # writes or closes next is told.
        self._sending.discard(task)
        self._slots.free.release()
        if task.cancelled():
            self._errors.append(OptionError(f"{self.path}: sending a block was cancelled"))
        elif error := task.exception():
            self._errors.append(error)

    def _check_sent(self) -> None:
        if self._errors:
            raise self._errors[0]

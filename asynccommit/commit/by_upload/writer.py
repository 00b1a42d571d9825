"""Writing one file in parts, straight to its place, in bounded memory.

It is invisible: the owner of the parts decides later whether they become a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from io import BytesIO

from asynccommit.commit.writers import Chunk, FileWriter, abort_after
from asynccommit.errors import NotFoundError, OptionError, RejectedError
from asynccommit.options.uploads import PART_SIZE
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.parts import Part

_MIB = 1 << 20


class Slots:
    """A limit on the full parts in memory of one task's files.

    Args:
        in_flight: parts of one file in memory at most, the one that is being filled among them.

    Raises:
        OptionError: ``in_flight`` is less than 1.
    """

    def __init__(self, in_flight: int) -> None:
        if in_flight < 1:
            raise OptionError(f"{in_flight} parts in memory: expected at least 1")
        self.alone = in_flight == 1
        self.free = asyncio.Semaphore(max(1, in_flight - 1))


class UploadWriter(FileWriter):
    """One upload being written; parts are sent in the background.

    A file has ``in_flight`` parts of ``part_size`` bytes in memory at most, and each further file
    that is open beside it one more.

    Args:
        store: takes the parts.
        path: where the file will be.
        upload_id: the upload, which has been begun.
        part_size: bytes of every part but the last.
        slots: shared by all files that are open.
        closed: awaited when all parts are there; the file counts as closed when it returns.

    Attributes:
        parts: what the store has acknowledged; complete when the file is closed.
        length: bytes written.
    """

    def __init__(
        self,
        store: MultipartStore,
        path: str,
        upload_id: str,
        *,
        part_size: int,
        slots: Slots,
        closed: Callable[[UploadWriter], Awaitable[object]],
    ) -> None:
        super().__init__()
        self.path = path
        self.upload_id = upload_id
        self.length = 0
        self._store = store
        self._size = part_size
        self._slots = slots
        self._closed = closed
        self._buffer = BytesIO()
        self._sent: dict[int, Part] = {}
        self._begun = 0
        self._sending: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def __repr__(self) -> str:
        return f"UploadWriter({self.path!r}, {self.length} bytes)"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in their order."""
        return tuple(self._sent[number] for number in sorted(self._sent))

    async def write(self, data: Chunk) -> int:
        """Take ``data``; waits while too many parts are in memory.

        Raises:
            OptionError: the file was closed before.
            RejectedError: the file has as many parts as an upload can have.
            StoreError: a part could not be sent; the file must then be aborted.
        """
        self.check_open(self.path)
        self._check_sent()
        rest = memoryview(data).cast("B")
        try:
            while rest:
                taken = min(len(rest), self._size - self._buffer.tell())
                self._buffer.write(rest[:taken])
                self.length += taken
                rest = rest[taken:]
                if self._buffer.tell() == self._size:
                    await self._send()
        except asyncio.CancelledError:  # nobody knows how much of ``data`` is in the file
            text = "a write was cancelled in progress: abort the file"
            self._errors.append(OptionError(f"{self.path}: {text}"))
            raise
        return memoryview(data).nbytes

    async def aclose(self) -> None:
        """Send the rest and wait for all parts; the file stays invisible.

        An upload that cannot be closed is aborted. Closing twice is fine. Raises what ``write``
        does.
        """
        if not self.takes_more:
            return
        with self.closing():
            try:
                await self._finish()
            except BaseException as error:
                await abort_after(error, self)
                raise

    async def abort(self) -> None:
        """Abort the upload, unless it was closed or aborted.

        Raises ``StoreError``.
        """
        if not self.is_open:
            return
        self.is_open = False
        self._buffer = BytesIO()
        cut = [task for task in self._sending if task.cancel()]
        if cut:
            await asyncio.wait(cut)
        await abort_upload(self._store, self.path, self.upload_id)
        if cut:  # a part that was under way may have come after the first
            await abort_upload(self._store, self.path, self.upload_id)

    async def _finish(self) -> None:
        self._check_sent()
        if self._buffer.tell() or not self._begun:  # a file without bytes has one empty part
            await self._send()
        if self._sending:
            await asyncio.wait(self._sending)
        self._check_sent()
        await self._closed(self)

    async def _send(self) -> None:
        check_number(self._store, self.path, self._begun + 1, self._size)
        data, self._buffer = self._buffer.getvalue(), BytesIO()
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

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Here and not in the task: one that is cancelled before its first step never runs. Whoever
        # writes or closes next is told.
        self._sending.discard(task)
        self._slots.free.release()
        if task.cancelled():
            self._errors.append(OptionError(f"{self.path}: the sending of a part was cancelled"))
        elif error := task.exception():
            self._errors.append(error)

    async def _put(self, number: int, data: bytes) -> None:
        self._sent[number] = await self._store.put_part(self.path, self.upload_id, number, data)

    def _check_sent(self) -> None:
        if self._errors:
            raise self._errors[0]


async def abort_upload(store: MultipartStore, path: str, upload_id: str) -> None:
    """Delete an upload, if it still exists.

    Raises ``StoreError``.
    """
    with suppress(NotFoundError):
        await store.abort_upload(path, upload_id)


def check_number(store: MultipartStore, path: str, number: int, size: int) -> None:
    """Raise ``RejectedError`` if an upload cannot have so many parts."""
    limits = store.traits.multipart
    if limits is None or number <= limits.parts:
        return
    most, twice = limits.parts * size // _MIB, 2 * size // _MIB
    text = (
        f"the file is larger than {limits.parts} parts of {size} bytes ({most} MiB in total), "
        f"the maximum of an upload: set {PART_SIZE} to {twice}M or more"
    )
    raise RejectedError("put_part", path, text)


def part_size_for(store: MultipartStore, length: int, size: int) -> int:
    """Return ``size``, or the larger part size that a file needs.

    Raises ``RejectedError`` if no upload can be so long.
    """
    limits = store.traits.multipart
    if limits is None or length <= size * limits.parts:
        return size
    needed = -(-length // limits.parts)
    needed = -(-needed // _MIB) * _MIB
    if needed > limits.largest:
        text = f"{length} bytes are more than {limits.parts} parts of {limits.largest} bytes"
        raise RejectedError("create_upload", "", text)
    return needed


def ranges(length: int, size: int) -> Sequence[tuple[int, int, int]]:
    """Return number, offset and length of each part.

    An empty file has one part.
    """
    count = max(1, -(-length // size))
    return [(index + 1, index * size, min(size, length - index * size)) for index in range(count)]


def check_part_size(store: MultipartStore, size: int) -> None:
    """Raise ``OptionError`` if the store does not allow this part size."""
    limits = store.traits.multipart
    if limits is not None and not limits.smallest <= size <= limits.largest:
        raise OptionError(
            f"{PART_SIZE} is {size} bytes: {store.traits.name} takes parts from "
            f"{limits.smallest} to {limits.largest} bytes"
        )

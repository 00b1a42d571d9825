"""Writing one file in parts, straight to its place, in bounded memory.

It is invisible: the owner of the parts decides later whether they become a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from asynccommit.commit.tasks.block_writer import BlockWriter, Slots
from asynccommit.errors import NotFoundError, OptionError, RejectedError
from asynccommit.options.uploads import PART_SIZE
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.parts import Part

_MIB = 1 << 20


class UploadWriter(BlockWriter):
    """One upload being written; its parts are the blocks.

    Args:
        store: takes the parts.
        path: where the file will be.
        upload_id: the upload, which has been begun.
        part_size: bytes of every part but the last.
        slots: shared by all files that are open.
        closed: awaited when all parts are there; the file counts as closed when it returns.

    Attributes:
        parts: what the store has acknowledged; complete when the file is closed.
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
        super().__init__(path, part_size, slots)
        self.upload_id = upload_id
        self._store = store
        self._closed = closed
        self._sent: dict[int, Part] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in their order."""
        return tuple(self._sent[number] for number in sorted(self._sent))

    async def _begin_block(self, number: int) -> None:
        check_number(self._store, self.path, number, self._size)

    async def _put(self, number: int, data: bytes) -> None:
        self._sent[number] = await self._store.put_part(self.path, self.upload_id, number, data)

    async def _finish(self, rest: bytes) -> None:
        if rest or not self._begun:  # a file without bytes has one empty part
            await self._send(rest)
        await self._all_sent()
        await self._closed(self)

    async def _discard(self) -> None:
        await abort_upload(self._store, self.path, self.upload_id)


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

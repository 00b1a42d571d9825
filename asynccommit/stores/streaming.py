"""The contract of stores that take a file in blocks."""

from __future__ import annotations

from typing import Protocol, TypeVar

from asynccommit.stores.base import Info, Store


class Stream:
    """A file that is being sent in blocks, as its store knows it.

    Args:
        path: where the file will be once all its blocks are there.
    """

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"


S = TypeVar("S", bound=Stream)


class StreamingStore(Store, Protocol[S]):
    """A store that takes a file in blocks: ``Traits.streaming``.

    Nothing is visible before ``end_stream``. A stream that is neither ended nor aborted leaves at
    most a hidden file in the folder that ``begin_stream`` was given.
    """

    async def begin_stream(self, path: str, folder: str) -> S:
        """Begin to write the file ``path``.

        ``folder`` is a directory for files that are not complete; a missing one may be created. The
        result has the path at which the store completes the file: ``path``, or a hidden one in
        ``folder`` from which the caller renames it.

        Raises ``ExistsError`` if the file would be completed where something is.
        """
        ...

    async def put_block(self, path: str, stream: S, start: int, data: bytes) -> None:
        """Send the block that begins at the byte ``start``.

        A repetition has no further effect. The service compares a checksum, now or in
        ``end_stream``. Raises ``NotFoundError`` if the stream has been aborted.
        """
        ...

    async def end_stream(self, path: str, stream: S, start: int, data: bytes) -> Info:
        """Send the last block, which is not empty, and complete the file.

        All blocks before ``start`` must have been sent. Raises ``NotFoundError`` if the stream has
        been aborted, and ``ExistsError`` as ``begin_stream`` does.
        """
        ...

    async def abort_stream(self, path: str, stream: S) -> None:
        """Discard a stream.

        Raises ``NotFoundError`` if the store does not know it, or not any more.
        """
        ...

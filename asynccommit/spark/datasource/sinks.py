"""File objects for pyarrow that write to a local disk or to a store."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from asynccommit.commit.blocking_file import BlockingFile

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_GATHERED = 1 << 20
"""Bytes that are handed to a store's writer at once; each time costs a switch to the engine."""


class FileSink(Protocol):
    """A file that is being written."""

    def tell(self) -> int:
        """Return the number of bytes written."""
        ...

    def close(self) -> None:
        """Finish the file. Raises ``OSError``, ``StoreError``."""
        ...

    def abort(self) -> None:
        """Discard the file. Raises ``StoreError``."""
        ...


class LocalSink(pa.OSFile):  # type: ignore[misc]  # Arrow has no types
    """A local file, deleted with its task's directory on abort."""

    def abort(self) -> None:
        """See ``FileSink.abort``."""
        self.close()


class StoreSink(io.RawIOBase):
    """A file of a task on a store.

    Args:
        inner: receives the data, block by block.
    """

    def __init__(self, inner: BlockingFile) -> None:
        super().__init__()
        self._inner = inner
        self._gathered = bytearray()
        self._length = 0

    def writable(self) -> bool:
        """Return true: the file can be written to."""
        return True

    def tell(self) -> int:
        """See ``FileSink.tell``."""
        return self._length

    def write(self, data: ReadableBuffer) -> int:
        """Write all of ``data``. Raises ``StoreError``."""
        view = memoryview(data).cast("B")
        self._gathered += view
        self._length += len(view)
        if len(self._gathered) >= _GATHERED:
            self._hand_over()
        return len(view)

    def close(self) -> None:
        """See ``FileSink.close``."""
        if not self.closed:
            super().close()
            self._hand_over()
            self._inner.close()

    def abort(self) -> None:
        """See ``FileSink.abort``."""
        if not self.closed:
            super().close()
            self._inner.abort()

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, bytearray()
        if gathered:
            self._inner.write(gathered)

    def __del__(self) -> None:
        """Return a session's settings for commits and stores."""

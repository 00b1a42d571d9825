"""A blocking file object through which programs write a file of a task."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from asynccommit.commit.tasks.writers import Chunk, Writer, abort_after
from asynccommit.errors import StoreError
from asynccommit.runtime.loop_thread import submit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

GATHERED = 1 << 18
"""Bytes that are handed to the event loop at once; each hand-over stops the calling thread."""


class BlockingFile(io.RawIOBase):
    """A file written in increments.

    Leaving its block closes it; an exception aborts it. Small writes are gathered, so that an error
    of one may be raised by a later one, or when the file is closed.

    Args:
        inner: the file.
        name: its name.
        run: waits for a coroutine of the file; by default on the engine's loop.
        finish: runs the coroutine that closes the file; by default ``run``.
    """

    def __init__(
        self,
        inner: Writer,
        name: str,
        run: Callable[[Any], Any] = submit,
        finish: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__()
        self._run = run
        self._finish = finish or run
        self.name = name
        self._inner = inner
        self._gathered = bytearray()
        self._length = 0

    def writable(self) -> bool:
        """Return true: the file can be written to."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._length

    def write(self, data: ReadableBuffer) -> int:
        """Write all of ``data``.

        Raises ``StoreError``; the file is then aborted.
        """
        view = memoryview(data).cast("B")
        if len(self._gathered) + len(view) < GATHERED and not self.closed and self._inner.is_open:
            self._gathered += view
        else:
            gathered, self._gathered = self._gathered, bytearray()
            self._run(_write(self._inner, gathered, view))
        self._length += len(view)
        return len(view)

    def close(self) -> None:
        """Finish the file; it stays invisible until the job is committed.

        Raises ``StoreError``.
        """
        if not self.closed:
            super().close()
            gathered, self._gathered = self._gathered, bytearray()
            self._finish(_close(self._inner, gathered))

    def abort(self) -> None:
        """Discard the file. Raises ``StoreError``."""
        if not self.closed:
            super().close()
            self._gathered = bytearray()
            self._run(self._inner.abort())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        try:
            self.abort()
        except StoreError as failure:
            error.add_note(f"and what was written could not be aborted: {failure}")

    def __del__(self) -> None:
        """Do nothing: an unclosed file is discarded, not committed."""


async def _write(inner: Writer, *chunks: Chunk) -> None:
    try:
        for chunk in chunks:
            if chunk:
                await inner.write(chunk)
    except BaseException as error:  # what is lost of the file must not go unnoticed
        await abort_after(error, inner)
        raise


async def _close(inner: Writer, rest: bytearray) -> None:
    await _write(inner, rest)
    await inner.aclose()

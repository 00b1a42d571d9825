"""A blocking file object through which programs write a file of a task."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from asynccommit.commit.writers import Writer
from asynccommit.errors import StoreError
from asynccommit.runtime.loop_thread import submit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class BlockingFile(io.RawIOBase):
    """A file written in increments.

    Leaving its block closes it; an exception aborts it.

    Args:
        inner: the file.
        name: its name.
        run: waits for a coroutine of the file; by default on the engine's loop.
    """

    def __init__(self, inner: Writer, name: str, run: Callable[[Any], Any] = submit) -> None:
        super().__init__()
        self._run = run
        self.name = name
        self._inner = inner
        self._length = 0

    def writable(self) -> bool:
        """Return true: the file can be written to."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._length

    def write(self, data: ReadableBuffer) -> int:
        """Write all of ``data``.

        Raises ``StoreError``; the caller must then abort the file.
        """
        taken: int = self._run(self._inner.write(memoryview(data).cast("B")))
        self._length += taken
        return taken

    def close(self) -> None:
        """Finish the file; it stays invisible until the job is committed.

        Raises ``StoreError``.
        """
        if not self.closed:
            super().close()
            self._run(self._inner.aclose())

    def abort(self) -> None:
        """Discard the file. Raises ``StoreError``."""
        if not self.closed:
            super().close()
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

"""A file of a task as blocking programs write it: what takes file objects takes it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from asynccommit.commit.writers import Writer
from asynccommit.errors import StoreError
from asynccommit.runtime.loop_thread import submit

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class BlockingFile(io.RawIOBase):
    """A file that is written by and by; leaving its block closes it, an exception aborts it."""

    def __init__(self, inner: Writer, name: str) -> None:
        super().__init__()
        self.name = name
        self._inner = inner
        self._length = 0

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._length

    def write(self, data: ReadableBuffer) -> int:
        """Take all of ``data``. Raises ``StoreError``, and then the file is to be aborted."""
        taken = submit(self._inner.write(memoryview(data).cast("B")))
        self._length += taken
        return taken

    def close(self) -> None:
        """Finish the file; it stays invisible until the job is committed. Raises ``StoreError``."""
        if not self.closed:
            super().close()
            submit(self._inner.aclose())

    def abort(self) -> None:
        """Forget the file. Raises ``StoreError``."""
        if not self.closed:
            super().close()
            submit(self._inner.abort())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        try:
            self.abort()
        except StoreError as failure:
            error.add_note(f"and what was written could not be aborted: {failure}")

    def __del__(self) -> None:
        """Do nothing: who forgets a file has not said that it is whole."""

"""Files that tasks write incrementally, committed after closing."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from types import TracebackType
from typing import IO, Annotated, Protocol, Self, TypeAlias

import anyio

from asynccommit.errors import (
    NotFoundError,
    OptionError,
    PreconditionError,
    RejectedError,
    StoreError,
)
from asynccommit.options.checked import BUFFER
from asynccommit.stores.base import Modes
from asynccommit.stores.modes import MODES, create, make_directory

_GATHERED = 1 << 20
"""Bytes that are written to a local file at once; each write needs a thread."""
_CLEANUP_GRACE_SECONDS = 30.0
"""Seconds that the abort of a cancelled file may take."""

Chunk: TypeAlias = Annotated[bytes | bytearray | memoryview, BUFFER]


class Writer(Protocol):
    """An open file; its content counts only once it is closed."""

    is_open: bool

    async def write(self, data: Chunk) -> int:
        """Write ``data`` and return its length in bytes."""
        ...

    async def aclose(self) -> None:
        """Finish the file."""
        ...

    async def abort(self) -> None:
        """Discard the file, if it is open."""
        ...

    async def closed(self) -> None:
        """Wait for the end of ``aclose`` if another asyncio task is in it."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class FileWriter(ABC):
    """The base of all writers.

    As a context it closes the file, or aborts it on an exception.

    Attributes:
        is_open: whether the file has been neither closed nor aborted; true while it is being
            closed.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._closing = False
        self._close_ended = anyio.Event()

    @abstractmethod
    async def aclose(self) -> None:
        """See ``Writer.aclose``."""

    @abstractmethod
    async def abort(self) -> None:
        """See ``Writer.abort``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.aclose()
            return
        await abort_after(error, self)

    @property
    def takes_more(self) -> bool:
        """Return whether the file is open and not being closed."""
        return self.is_open and not self._closing

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Refuse writes during the block; the file is closed when it is left."""
        self._closing = True
        try:
            yield
        finally:
            self.is_open = False
            self._close_ended.set()

    async def closed(self) -> None:
        """Wait for the end of ``aclose`` if another asyncio task is in it."""
        if self._closing:
            await self._close_ended.wait()

    def check_open(self, path: str) -> None:
        """Raise ``OptionError`` if the file is closed, aborted or being closed."""
        if not self.takes_more:
            raise OptionError(f"{path} is closed and cannot be written")


class WholeWriter(FileWriter):
    """A file kept in memory until closed, for stores without uploads.

    Args:
        path: path of the file, for messages.
        save: writes the whole file.
    """

    def __init__(self, path: str, save: Callable[[bytes], Awaitable[object]]) -> None:
        super().__init__()
        self.path = path
        self._save = save
        self._buffer = BytesIO()

    async def write(self, data: Chunk) -> int:
        """See ``Writer.write``. Raises ``OptionError`` for a closed file."""
        self.check_open(self.path)
        return self._buffer.write(data)

    async def aclose(self) -> None:
        """Write the file. Raises ``StoreError``."""
        if self.takes_more:
            with self.closing():
                data, self._buffer = self._buffer.getvalue(), BytesIO()
                await self._save(data)

    async def abort(self) -> None:
        """Discard the file; nothing was written."""
        self.is_open = False
        self._buffer = BytesIO()


class LocalWriter(FileWriter):
    """A local file; its directory is created, an abort deletes the file.

    Args:
        path: on this machine.
        top: the directory above it that is never made.
        modes: the permissions of the file and of directories that are made.
    """

    def __init__(self, path: str, top: str = "/", modes: Modes = MODES) -> None:
        super().__init__()
        self.path = path
        self._top = top
        self._modes = modes
        self._file: IO[bytes] | None = None
        self._gathered = BytesIO()

    async def write(self, data: Chunk) -> int:
        """See ``Writer.write``.

        Raises ``OptionError`` for a closed file, and ``RejectedError`` for a failed write to the
        disk.
        """
        self.check_open(self.path)
        taken = self._gathered.write(data)
        if self._gathered.tell() >= _GATHERED:
            await self._flush(close=False)
        return taken

    async def aclose(self) -> None:
        """Write the remaining data; if that fails, the file is deleted.

        Raises ``RejectedError``.
        """
        if not self.takes_more:
            return
        with self.closing():
            try:
                await self._flush(close=True)
            except BaseException:  # a partial file must not be taken for a file of the task
                await _to_its_end(self._remove)
                raise

    async def abort(self) -> None:
        """Delete the file, unless it is being closed."""
        if self.takes_more:
            self.is_open = False
            await _to_its_end(self._remove)

    async def _flush(self, *, close: bool) -> None:
        data, self._gathered = self._gathered.getvalue(), BytesIO()
        await _to_its_end(self._write, data, close)

    def _write(self, data: bytes, close: bool) -> None:
        try:
            if self._file is None:
                make_parents(self.path, self._top, self._modes)
                self._file = open(self.path, "wb", buffering=0, opener=self._create)  # noqa: SIM115
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
            if close:
                self._file.close()
        except OSError as error:
            raise RejectedError("put", self.path, error.strerror or str(error)) from None

    def _create(self, path: str, flags: int) -> int:
        return create(path, flags, self._modes.file)

    def _remove(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                os.unlink(self.path)


def make_parents(path: str, top: str, modes: Modes = MODES) -> None:
    """Create the directories between ``top`` and the file ``path``.

    ``top`` itself is not created: it is deleted with its job or task, and a new one would look like
    a running one. Raises ``NotFoundError`` if it is missing, ``PreconditionError`` for a file in
    the way, and ``RejectedError``.
    """
    missing: list[str] = []
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        if len(parent) <= len(top):
            text = "the directory of the task attempt is gone: the task or its job has ended"
            raise NotFoundError("mkdir", parent, text)
        missing.append(parent)
        parent = os.path.dirname(parent)
    for directory in reversed(missing):
        _make(directory, modes.directory)


def _make(directory: str, mode: int) -> None:
    try:
        make_directory(directory, mode)
    except (FileExistsError, NotADirectoryError):
        if not os.path.isdir(directory):
            text = "a file is in its place, or in that of a parent directory"
            raise PreconditionError("mkdir", directory, text) from None
    except FileNotFoundError:
        text = "its parent directory was deleted: the task or its job has ended"
        raise NotFoundError("mkdir", directory, text) from None
    except OSError as error:
        raise RejectedError("mkdir", directory, error.strerror or str(error)) from None


async def _to_its_end(work: Callable[..., None], *args: object) -> None:
    """Await ``work`` in a thread to its end, also when cancelled."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise


async def abort_after(error: BaseException, file: Writer | FileWriter) -> None:
    """Abort ``file`` because of ``error``, also when cancelled.

    A failure of the abort becomes a note on ``error``.
    """
    try:
        with anyio.move_on_after(_CLEANUP_GRACE_SECONDS, shield=True):
            await file.abort()
    except StoreError as failure:
        error.add_note(f"and what was written could not be aborted: {failure}")

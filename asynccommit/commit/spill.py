"""The entries of a job, in memory or, if many, in a file.

The file has no name: it is gone when the process ends in any way, and no other process can open it.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, Any, Generic, NamedTuple, Self, TypeVar

import orjson

from asynccommit.errors import RejectedError
from asynccommit.runtime.concurrency import ChunkedItems

IN_MEMORY = 32_768
"""Entries held before the file is begun: some 20 MB."""
CHUNK = 2_048

R = TypeVar("R", bound=tuple[object, ...])


class Entry(NamedTuple):
    """One file to rename: decoded paths, and the expected result."""

    source: str
    dest: str
    size: int
    etag: str | None


class Rows(Generic[R]):
    """A list of rows, in order, in flat memory.

    Args:
        make: makes a row from its JSON list.
        directory: where the file goes when one is needed; ``None`` for the system's.
        in_memory: how many rows to hold before.
        weigh: returns the number of rows that a row counts as, if sizes differ.
    """

    def __init__(
        self,
        make: Callable[[list[Any]], R],
        directory: str | None = None,
        in_memory: int = IN_MEMORY,
        weigh: Callable[[Sequence[R]], int] = len,
    ) -> None:
        self.count = 0
        self._make = make
        self._directory = directory
        self._limit = in_memory
        self._weigh = weigh
        self._weight = 0
        self._held: list[R] = []
        self._file: IO[bytes] | None = None
        self._lock = asyncio.Lock()

    async def append(self, entries: Sequence[R]) -> None:
        """Add rows. Raises ``RejectedError`` if the local disk is full."""
        self.count += len(entries)
        self._held.extend(entries)
        self._weight += self._weigh(entries)
        if self._weight >= self._limit:
            async with self._lock:
                held, self._held, self._weight = self._held, [], 0
                await asyncio.to_thread(self._write, held)

    def entries(self) -> AsyncIterable[R] | Iterable[R]:
        """Return every row, for ``for_each``; no row may be added any more."""
        return self._held if self._file is None else ChunkedItems(self.chunks())

    async def each(self) -> AsyncIterator[R]:
        """Yield every row; no row may be added any more."""
        async for chunk in self.chunks():
            for row in chunk:
                yield row

    async def chunks(self) -> AsyncIterator[Sequence[R]]:
        """Yield every row, as many at a time as one read of the file gives.

        No row may be added any more.
        """
        if self._file is not None:
            position = 0
            while True:
                chunk, position = await asyncio.to_thread(self._read, position)
                if not chunk:
                    break
                yield chunk
        yield self._held

    def _write(self, entries: Sequence[R]) -> None:
        try:
            if self._file is None:
                self._file = unnamed_file(self._directory)
            self._file.seek(0, 2)
            for start in range(0, len(entries), CHUNK):
                data = _dumps([tuple(entry) for entry in entries[start : start + CHUNK]])
                self._file.write(len(data).to_bytes(8, "big") + data)
            self._file.flush()
        except OSError as error:
            raise spill_error(self._directory, error) from error

    def _read(self, position: int) -> tuple[list[R], int]:
        file = self._file
        if file is None:
            return [], position
        file.seek(position)
        length = int.from_bytes(file.read(8), "big")
        if not length:
            return [], position
        rows = _loads(file.read(length))
        return [self._make(row) for row in rows], position + 8 + length

    def close(self) -> None:
        """Release all memory and the file."""
        self._held = []
        file, self._file = self._file, None
        discard(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def in_batches(rows: AsyncIterable[R] | Iterable[R], size: int) -> AsyncIterator[Sequence[R]]:
    """Yield rows in order, ``size`` at a time; they are read lazily."""
    if not isinstance(rows, AsyncIterable):
        each = iter(rows)
        while some := list(islice(each, size)):
            yield some
        return
    batch: list[R] = []
    async for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Spill(Rows[Entry]):
    """A list of entries, in order, in flat memory.

    Args:
        directory: where the file goes when one is needed; ``None`` for the system's.
        in_memory: how many entries to hold before.
    """

    def __init__(self, directory: str | None = None, in_memory: int = IN_MEMORY) -> None:
        super().__init__(Entry._make, directory, in_memory)


def _dumps(rows: Sequence[tuple[object, ...]]) -> bytes:
    try:
        return orjson.dumps(rows)
    except TypeError:  # a local name that is not Unicode
        return json.dumps(rows).encode()


def _loads(data: bytes) -> list[list[Any]]:
    try:
        rows: list[list[Any]] = orjson.loads(data)
    except orjson.JSONDecodeError:
        rows = json.loads(data)
    return rows


def discard(file: IO[bytes] | None) -> None:
    """Close an unnamed file, which deletes its content."""
    if file is not None:
        with suppress(OSError):  # a full disk, reported before; the lost data is not needed
            file.close()


def spill_error(directory: str | None, error: OSError) -> RejectedError:
    """Return the error for a local disk that does not accept spilled data."""
    text = f"{error.strerror}: set another asynccommit.spill.directory"
    return RejectedError("spill", directory or tempfile.gettempdir(), text)


def unnamed_file(directory: str | None) -> IO[bytes]:
    """Open a file that no other process can open and that ends with this one."""
    return tempfile.TemporaryFile(dir=directory, prefix="asynccommit-")

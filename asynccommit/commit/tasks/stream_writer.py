"""A writer of one file in blocks, completed by the store at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar

from asynccommit.commit.tasks.block_writer import BlockWriter, Slots
from asynccommit.errors import ExistsError, NotFoundError, PreconditionError, RejectedError
from asynccommit.stores.base import Info, Streaming
from asynccommit.stores.streaming import Stream, StreamingStore
from asynccommit.stores.tree import remove_file

_TRIES = 5


class StreamWriter(BlockWriter):
    """A file being written; one of a single block is written by one call.

    Args:
        store: takes the blocks; its ``Traits.streaming`` is set.
        path: where the file will be.
        folder: a directory for files that are not complete.
        slots: shared by all files that are open.
        rules: of the store, for blocks.
        prepare: creates the directory of the file.
        save: writes a whole file.
        complete: awaited when a file in blocks is in its place.
    """

    keeps_last: ClassVar[bool] = True

    def __init__(
        self,
        store: StreamingStore[Stream],
        path: str,
        folder: str,
        *,
        slots: Slots,
        rules: Streaming,
        prepare: Callable[[], Awaitable[object]],
        save: Callable[[bytes], Awaitable[object]],
        complete: Callable[[], Awaitable[object]],
    ) -> None:
        super().__init__(path, rules.block, slots)
        self._store = store
        self._folder = folder
        self._prepare = prepare
        self._save = save
        self._complete = complete
        self._stream: Stream | None = None
        self._turn = asyncio.Semaphore(rules.at_once)
        self._broken = False

    async def _begin_block(self, number: int) -> None:
        if self._stream is None:
            self._stream = await self._begin()

    async def _begin(self) -> Stream:
        """Begin the file; delete an earlier one on stores that never replace."""
        await self._prepare()
        for _ in range(_TRIES - 1):
            with suppress(ExistsError):
                return await self._store.begin_stream(self.path, self._folder)
            with suppress(NotFoundError):
                await remove_file(self._store, self.path)
        return await self._store.begin_stream(self.path, self._folder)

    async def _put(self, number: int, data: bytes) -> None:
        async with self._turn:
            if self._broken or self._stream is None:
                return
            start = (number - 1) * self._size
            try:
                await self._store.put_block(self.path, self._stream, start, data)
            except BaseException:
                self._broken = True  # later blocks of a store that needs them in order would wait
                raise

    async def _finish(self, rest: bytes) -> None:
        if self._stream is None:
            await self._save(rest)
            return
        await self._all_sent()
        start = self.length - len(rest)
        info = await self._store.end_stream(self.path, self._stream, start, rest)
        if info.size != self.length:
            text = f"{self.length} bytes were written, and the file has {info.size}"
            raise RejectedError("end_stream", self.path, text)
        if info.path != self.path:
            await self._move(info)
        await self._complete()

    async def _move(self, info: Info) -> None:
        """Move the complete file to its place.

        Under its etag, since a creation and a move that are both executed again would replace it by
        an empty file. A second flush changes that etag, and nothing else.
        """
        for _ in range(_TRIES):
            try:
                await self._store.rename(info.path, self.path, replace=True, etag=info.etag)
                return
            except PreconditionError as error:
                refused = error
                found = await self._store.head(info.path)
                if found.etag == info.etag or found.size != self.length:
                    break
                info = found
        raise refused

    async def _discard(self) -> None:
        if self._stream is not None:
            with suppress(NotFoundError):
                await self._store.abort_stream(self.path, self._stream)

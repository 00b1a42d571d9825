"""What runs of a batch are about to publish: read again when it is known which of them counts.

The files of a batch are moved to their places before the log lists them. If its process dies in
between they are in no batch, and the next run of that batch has other ones. So each run says first,
in a hidden file in the directory of the log, what it will publish. That directory, too, has to be
there before any file is: readers of a table without one take all that they see.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import suppress

from asynccommit.errors import AsyncCommitError, SinkLogCorruptError
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_if_there, remove_file
from asynccommit.stores.urls import Address
from asynccommit.streaming.entries import FOLDER, LogFileWriter, SinkFile, decode_batch
from asynccommit.streaming.log import SinkLog

log = logging.getLogger(__name__)

_NAME = re.compile(r"\.(0|[1-9][0-9]{0,9})\.[\w.-]{1,200}\.files", re.ASCII).fullmatch


class Announced:
    """Announcements beside the log of one table.

    Args:
        store: where the table is.
        dest: the table.
        sink: its log.
    """

    def __init__(self, store: Store, dest: Address, sink: SinkLog) -> None:
        self._store, self._dest, self._sink = store, dest, sink
        self._said = set[str]()

    async def say(self, batch: int, run: str, files: Sequence[SinkFile]) -> None:
        """Say what a run of a batch is about to publish, and make the directory of the log.

        Args:
            batch: its number.
            run: unlike any other run: letters, digits, ``.``, ``_`` and ``-``.
            files: what it will publish.

        Raises ``StoreError`` if it could not be said: then publish nothing.
        """
        await self._sink.make_folder()
        path = self._dest.child(FOLDER, f".{batch}.{run}.files").path
        self._said.add(path)
        await self._store.put(path, LogFileWriter().add_all(files).data())
        if not self._store.traits.durable:
            await self._store.sync(path)
            await self._store.sync(self._dest.child(FOLDER).path)

    async def settle(self, batch: int, lost: Sequence[SinkFile] | None = None) -> None:
        """Delete what was announced for batches up to ``batch`` and is in none of them.

        The log has that batch, so no other run of one up to it can be listed any more. What goes
        wrong is a warning: the batch is committed all the same.

        Args:
            batch: at most the newest of the log.
            lost: what this run published for nothing, since the log has another of the batch.
        """
        try:
            if lost:
                await self._sink.abort(batch, lost)
            for info in await list_if_there(self._store, self._dest.child(FOLDER).path):
                found = _NAME(info.path.rpartition("/")[2])
                if found is not None and not info.is_dir and int(found[1]) <= batch:
                    await self._discard(int(found[1]), info)
        except AsyncCommitError as error:
            log.warning("what no batch lists of %s could not be deleted: %s", self._dest, error)

    async def _discard(self, batch: int, info: Info) -> None:
        if info.path not in self._said:
            data = await self._store.get(info.path, self._sink.settings.max_bytes)
            files: list[SinkFile] = []
            with suppress(SinkLogCorruptError):  # it was cut short, and nothing was published
                files = [file for file, _ in decode_batch(data, info.path)]
            await self._sink.abort(batch, files)
        await remove_file(self._store, info.path)

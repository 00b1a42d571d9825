"""Record which files a batch will publish, and clean up lost runs.

The files of a batch are moved to their places before the log lists them. If the process dies in
between they are in no batch, and the next run of that batch has other files. So each run first
records, in a hidden file in the directory of the log, what it will publish. The directory of the
log must also exist before any file does: readers of a table without one take all files that they
see.
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
    """The publish intents beside the log of one table.

    Args:
        store: store of the table.
        dest: the table.
        sink: log of the table.
    """

    def __init__(self, store: Store, dest: Address, sink: SinkLog) -> None:
        self._store, self._dest, self._sink = store, dest, sink
        self._said = set[str]()

    async def say(self, batch: int, run: str, files: Sequence[SinkFile]) -> None:
        """Record what a run of a batch will publish; create the log directory.

        Args:
            batch: number of the batch.
            run: unique id of the run: letters, digits, ``.``, ``_`` and ``-``.
            files: files that it will publish.

        Raises ``StoreError`` if the intent could not be written: then publish nothing.
        """
        await self._sink.make_folder()
        path = self._dest.child(FOLDER, f".{batch}.{run}.files").path
        self._said.add(path)
        await self._store.put(path, LogFileWriter().add_all(files).data())
        if not self._store.traits.durable:
            await self._store.sync(path)
            await self._store.sync(self._dest.child(FOLDER).path)

    async def settle(self, batch: int, lost: Sequence[SinkFile] | None = None) -> None:
        """Delete recorded files of batches up to ``batch`` that no batch lists.

        The log has that batch, so no other run of a batch up to it can be listed any more. Errors
        become warnings: the batch is committed anyway.

        Args:
            batch: at most the newest batch of the log.
            lost: files that this run published without effect, because the log has another run of
                the batch.
        """
        try:
            if lost:
                await self._sink.abort(batch, lost)
            for info in await list_if_there(self._store, self._dest.child(FOLDER).path):
                found = _NAME(info.path.rpartition("/")[2])
                if found is not None and not info.is_dir and int(found[1]) <= batch:
                    await self._discard(int(found[1]), info)
        except AsyncCommitError as error:
            log.warning(
                "files of %s that no batch lists could not be deleted: %s", self._dest, error
            )

    async def _discard(self, batch: int, info: Info) -> None:
        if info.path not in self._said:
            data = await self._store.get(info.path, self._sink.settings.max_bytes)
            files: list[SinkFile] = []
            with suppress(SinkLogCorruptError):  # it was cut short, and nothing was published
                files = [file for file, _ in decode_batch(data, info.path)]
            await self._sink.abort(batch, files)
        await remove_file(self._store, info.path)

"""Create a sink log file only if it does not exist: this commits a batch."""

from __future__ import annotations

from contextlib import suppress

from asynccommit.commit.conditions import prove_conditions
from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    RejectedError,
    SinkLogRaceError,
    StoreError,
    UnsupportedError,
)
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store, Traits
from asynccommit.stores.filesystem_names import checksum_of
from asynccommit.stores.tree import remove_file
from asynccommit.stores.urls import Address
from asynccommit.streaming.entries import FOLDER, HEADER
from asynccommit.streaming.listing import place, see


class BatchPublisher:
    """A publisher of log files, each of which becomes visible atomically.

    Args:
        store: store of the log.
        dest: the table.
        host: source of unique names.

    Raises:
        UnsupportedError: the store cannot create a file only if it does not exist.
    """

    def __init__(self, store: Store, dest: Address, host: Host) -> None:
        self._store = store
        self._dest = dest
        self._folder = dest.child(FOLDER).path
        self._host = host
        self._proven = store.traits.conditions_proven
        self._aside = _writes_aside(store.traits)

    async def make_folder(self) -> None:
        """Create the directory of the log, if the store has directories."""
        store = self._store
        if not store.traits.directories:
            return
        await store.mkdir(self._folder)
        if not store.traits.durable:
            await store.sync(self._dest.path)

    async def publish(self, name: str, data: bytes) -> None:
        """Create the log file ``name``.

        Raises:
            SinkLogRaceError: the file exists and is another writer's.
            OutcomeUnknownError: the result is unknown.
        """
        path = f"{self._folder}/{name}"
        await self._prove()
        try:
            await self._make(path, data)
        except (ExistsError, OutcomeUnknownError) as error:
            there = await self._look(path, len(data), error)
            if there is None:
                raise
            # Two batches without files have the same content, and neither has anything to lose.
            if there != data or (data == HEADER and isinstance(error, ExistsError)):
                raise self._race(name) from error
        if not self._store.traits.durable:
            await self._store.sync(self._folder)

    async def _make(self, path: str, data: bytes) -> None:
        if not self._aside:
            await self._store.put(path, data, overwrite=False)
            return
        folder, _, name = path.rpartition("/")
        temp = f"{folder}/.{name}.{self._host.new_id()}.tmp"
        try:
            await self._store.put(temp, data)
            if not self._store.traits.durable:
                await self._store.sync(temp)
            await self._store.rename(temp, path)
            if self._store.traits.checksums:  # Checksum files of a batch that somebody has deleted.
                with suppress(StoreError):
                    await self._store.delete(checksum_of(path))
        except BaseException:  # Without its source a rename cannot take effect late.
            with suppress(StoreError):
                await remove_file(self._store, temp)
            raise

    async def _look(self, path: str, size: int, error: StoreError) -> bytes | None:
        """Return the content of ``path``; ``None`` if it proves nothing."""
        try:
            return await self._store.get(path, size)
        except NotFoundError:
            return None
        except RejectedError:
            return b""  # it is larger than this write: another writer's file
        except StoreError as failed:
            if isinstance(error, ExistsError):
                return b""
            error.add_note(f"{path} could not be read: {failed}")
            return None

    async def _prove(self) -> None:
        """Check once that the server enforces create-only writes."""
        if self._proven:
            return
        probe = f"{self._folder}/.probe.{self._host.new_id()}.tmp"
        await self._store.put(probe, HEADER, overwrite=False)
        try:
            await prove_conditions(self._store, probe, HEADER)
        finally:
            with suppress(StoreError):
                await remove_file(self._store, probe)
        self._proven = True

    def _race(self, name: str) -> SinkLogRaceError:
        return SinkLogRaceError(
            place(self._dest, name),
            "another writer created it a moment ago, and this batch was not added: make sure "
            f"that only one query writes to {self._dest}, and start it again. {see(self._dest)}",
        )


def _writes_aside(traits: Traits) -> bool:
    """Return whether a file is made by a rename.

    That is the case if a put could be lost in a power failure, or replaces a file.
    """
    if traits.rename_no_replace and not (traits.durable and traits.conditional_put):
        return True
    if traits.conditional_put:
        return False
    raise UnsupportedError(
        f"{traits.name} cannot create a file only if it does not exist (If-None-Match), so two "
        "queries could write the same batch: use a store that can"
    )

"""Give the log of a streaming sink to another query, losing no batch.

Spark's sink drops each batch of a query whose number its log has. So a query whose checkpoint is
lost cannot begin at 0 again: it gets a checkpoint in which it is as if all batches of the log were
done, and nothing had been read of the sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from asynccommit.errors import OptionError, SinkLogForeignError
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.tree import list_if_there
from asynccommit.stores.urls import Address
from asynccommit.streaming.listing import place, read_listing
from asynccommit.streaming.log_owner import LogOwner, read_owner, write_owner

_OFFSETS = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'
_NOTHING_READ = b"\n-"
_COMMITTED = b'v1\n{"nextBatchWatermarkMs":0}'


@dataclass(frozen=True, slots=True)
class Adoption:
    """The result of giving a log to a query, or of a dry run.

    Attributes:
        dest: the table.
        before: the query that the log belonged to, if it named one.
        query: the query that it belongs to.
        newest: the newest batch of the log.
        checkpoint: the checkpoint that was made for the query.
    """

    dest: Address
    before: str | None
    query: str
    newest: int
    checkpoint: Address | None = None


class Adopting:
    """Gives the log of a table to a query.

    Args:
        store: store of the table.
        dest: the table.
        host: source of new ids.
        dry_run: only report what would be done.
    """

    def __init__(self, store: Store, dest: Address, host: Host, *, dry_run: bool) -> None:
        self._store, self._dest, self._host, self._dry = store, dest, host, dry_run

    async def to_query(self, query: str) -> Adoption:
        """Give the log to the query with this id, which has its checkpoint.

        Raises ``SinkLogForeignError`` if there is no log.
        """
        return await self._adopted(query, None)

    async def with_checkpoint(self, store: Store, checkpoint: Address, sources: int) -> Adoption:
        """Give the log to a new query, and make its checkpoint.

        Args:
            store: store of the checkpoint.
            checkpoint: a directory that has no files.
            sources: number of streams that the query reads.

        Raises:
            OptionError: the directory has files.
            SinkLogForeignError: there is no log.
        """
        if await list_if_there(store, checkpoint.path):
            raise OptionError(
                f"{checkpoint} is not empty: name a directory for a new checkpoint, and give the "
                "query that name (checkpointLocation)"
            )
        done = await self._adopted(self._host.new_id(), checkpoint, write=False)
        if not self._dry:
            await _make(store, checkpoint, done, sources)
            await write_owner(self._store, self._dest, LogOwner(done.query))
        return done

    async def _adopted(
        self, query: str, checkpoint: Address | None, *, write: bool = True
    ) -> Adoption:
        newest = (await read_listing(self._store, self._dest)).newest
        if newest is None:
            raise SinkLogForeignError(
                place(self._dest, ""), "there is no batch yet: any query may begin here"
            )
        before = await read_owner(self._store, self._dest)
        if write and not self._dry:
            await write_owner(self._store, self._dest, LogOwner(query))
        return Adoption(
            self._dest, None if before is None else str(before), query, newest, checkpoint
        )


async def _make(store: Store, checkpoint: Address, done: Adoption, sources: int) -> None:
    """Write a checkpoint after the newest batch, which has read nothing."""
    offsets = _OFFSETS + _NOTHING_READ * sources
    files = {
        "metadata": orjson.dumps({"id": done.query}),
        f"commits/{done.newest}": _COMMITTED,
        **{f"offsets/{n}": offsets for n in range(max(0, done.newest - 1), done.newest + 1)},
    }
    for name, data in files.items():
        path = checkpoint.child(*name.split("/")).path
        if store.traits.directories:
            await store.mkdir(path.rpartition("/")[0])
        await store.put(path, data)

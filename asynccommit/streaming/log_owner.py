"""Name the query that a sink log belongs to, in a hidden file beside it.

Spark's own sink takes a batch whose number is in the log for one that it has committed already,
whoever wrote it. So a query with a new checkpoint, or a second query, loses as many batches as the
log has, without an error. The first query that writes through this package is named here, and any
other one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from asynccommit.commit.hints import quoted
from asynccommit.errors import NotFoundError, SinkLogForeignError, SinkLogRaceError
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address
from asynccommit.streaming.entries import FOLDER
from asynccommit.streaming.listing import place, read_listing
from asynccommit.streaming.publish import BatchPublisher

NAME = ".asynccommit-query"
_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class LogOwner:
    """A query that writes to a log.

    Attributes:
        query: its id, the same after each restart.
        name: its name, if the user gave it one.
    """

    query: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name!r} ({self.query})" if self.name else self.query


async def read_owner(store: Store, dest: Address) -> LogOwner | None:
    """Return the query that a table's log belongs to, if it names one."""
    try:
        data = await store.get(dest.child(FOLDER, NAME).path, _LIMIT)
        value = orjson.loads(data)
        return LogOwner(str(value["query"]), str(value.get("name", "")))
    except NotFoundError:
        return None
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return LogOwner("unknown", f"see {place(dest, NAME)}")


async def claim_log(store: Store, dest: Address, owner: LogOwner, batch: int, host: Host) -> None:
    """Check that a log is a query's, and name the query if it names none.

    Args:
        store: store of the table.
        dest: the table.
        owner: the query.
        batch: the batch that it begins with, after a start or a restart.
        host: source of unique names.

    Raises:
        SinkLogForeignError: the log is another query's, or has batches that this query did not see.
    """
    found = await read_owner(store, dest)
    if found is not None and found.query != owner.query:
        raise SinkLogForeignError(place(dest, NAME), _belongs(dest, found, owner))
    await _require_next(store, dest, owner, batch, named=found is not None)
    if found is None:
        found = await _name(store, dest, owner, host)
        if found is not None and found.query != owner.query:
            raise SinkLogForeignError(place(dest, NAME), _belongs(dest, found, owner))


async def write_owner(store: Store, dest: Address, owner: LogOwner) -> None:
    """Name another query, while none writes to the table."""
    path = dest.child(FOLDER, NAME).path
    await store.put(path, _text(owner))
    if not store.traits.durable:
        await store.sync(path)


def _text(owner: LogOwner) -> bytes:
    return orjson.dumps({"query": owner.query, "name": owner.name})


async def _name(store: Store, dest: Address, owner: LogOwner, host: Host) -> LogOwner | None:
    publisher = BatchPublisher(store, dest, host)
    await publisher.make_folder()
    try:
        await publisher.publish(NAME, _text(owner))
    except SinkLogRaceError:
        return await read_owner(store, dest)
    return None


async def _require_next(
    store: Store, dest: Address, owner: LogOwner, batch: int, *, named: bool
) -> None:
    """Refuse a query that begins with a batch which Spark would drop.

    A query that is killed between a batch and its checkpoint runs that batch again, and no earlier
    one. Whether it wrote the batch is known only if the log names it.
    """
    newest = (await read_listing(store, dest)).newest
    if newest is not None and (batch < newest or (batch == newest and not named)):
        raise SinkLogForeignError(
            place(dest, str(newest)),
            f"the log has batches to {newest}, and query {owner} begins with batch {batch}: Spark "
            f"would drop what it writes until batch {newest + 1}. {_remedy(dest, owner)}",
        )


def _belongs(dest: Address, found: LogOwner, owner: LogOwner) -> str:
    return (
        f"the log belongs to query {found}, and query {owner} is another one: Spark would drop "
        f"those of its batches whose numbers the log has. {_remedy(dest, owner)}"
    )


def _remedy(dest: Address, owner: LogOwner) -> str:
    adopt = f"asynccommit sink-log adopt {quoted(str(dest))}"
    return (
        "Let the query write to a directory of its own, or restore its checkpoint. If that is "
        f"lost, {adopt} --checkpoint URL makes one that goes on after the log; if the log was this "
        f"query's all the time, {adopt} --query {owner.query} says so"
    )

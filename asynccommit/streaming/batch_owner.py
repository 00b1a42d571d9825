"""Whose a batch of a sink log is: of the query that writes it again, or of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asynccommit.streaming.entries import SinkFile
from asynccommit.streaming.listing import LogListing
from asynccommit.streaming.read import Entries, LogSource


@dataclass(frozen=True, slots=True)
class Whose:
    """What is known of a batch that is in the log.

    Attributes:
        query: who wrote it, ``None`` if it does not say.
        same: nothing would be lost: it lists all that is to be added.
    """

    query: str | None = None
    same: bool = False


async def whose(
    source: LogSource, listing: LogListing, batch_id: int, files: Sequence[SinkFile]
) -> Whose:
    """Return whose a batch is.

    A query adds its batches one after the other. So where the file of this one has expired, the
    newest batch that has an author tells.

    Args:
        source: the log.
        listing: what is in it.
        batch_id: at most its newest batch.
        files: what is to be added under this number.
    """
    if not files:
        return Whose(same=True)
    found = await _look(source, listing, batch_id, files)
    if found is not None:
        return found
    batches = {*listing.singles, *listing.compacts}
    for batch in sorted((one for one in batches if one > batch_id), reverse=True):
        later = await _look(source, listing, batch, files)
        if later is not None and (later.query or later.same):
            return later
    return Whose()


async def _look(
    source: LogSource, listing: LogListing, batch: int, files: Sequence[SinkFile]
) -> Whose | None:
    """Return what the file of a batch says, ``None`` if there is none."""
    info = listing.file(batch)
    if info is None:
        return None
    listed, query = set[str](), None
    name = info.path.rpartition("/")[2]
    for file, wrote in Entries(source.dest).of(name, await source.get(info)):
        listed.add(file.path)
        if wrote is not None and wrote.batch == batch:
            query = wrote.query
    return Whose(query, same=listed.issuperset(file.path for file in files))

"""Decide which query owns a batch of a sink log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asynccommit.streaming.entries import SinkFile
from asynccommit.streaming.listing import LogListing
from asynccommit.streaming.read import Entries, LogSource


@dataclass(frozen=True, slots=True)
class Whose:
    """The known owner of a batch in the log.

    Attributes:
        query: query that wrote the batch, ``None`` if the batch does not name it.
        same: the batch lists all files to be added, so nothing would be lost.
    """

    query: str | None = None
    same: bool = False


async def whose(
    source: LogSource, listing: LogListing, batch_id: int, files: Sequence[SinkFile]
) -> Whose:
    """Return the owner of a batch.

    A query adds its batches in order. So if the file of this batch has expired, the newest batch
    with a known author decides.

    Args:
        source: the log.
        listing: files of the log.
        batch_id: number of the batch, at most that of the newest one.
        files: files to be added under this number.
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
    """Return the owner in the file of a batch, ``None`` if there is no file."""
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

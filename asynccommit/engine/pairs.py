"""Read and check all files to rename before the first is renamed."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

from asynccommit.commit.fingerprints import Fingerprints, fingerprint
from asynccommit.commit.spill import CHUNK, Rows, in_batches
from asynccommit.engine.paths import checked_path
from asynccommit.errors import OptionError


class FileRename(NamedTuple):
    """One file to rename.

    Attributes:
        source: absolute path of the file.
        dest: its new absolute path.
        etag: the etag that the file must have, as listings show it; ``None`` for any.
        size: its size in bytes, for the report; 0 if unknown.
    """

    source: str
    dest: str
    etag: str | None = None
    size: int = 0


T = TypeVar("T")
Pairs = Iterable[Sequence[Any]] | AsyncIterable[Sequence[Any]]
"""Each is a ``FileRename``, or a tuple ``(source, dest)`` or ``(source, dest, etag)``."""


@asynccontextmanager
async def read_pairs(pairs: Pairs) -> AsyncIterator[Rows[FileRename]]:
    """Read all pairs, and refuse those of which one ends where another begins.

    Until the end nothing may be renamed: an iterable that lists a directory would show what was
    moved into it. Raises ``OptionError``, and what the iterable raises.
    """
    with Rows(FileRename._make) as found, Fingerprints() as sources, Fingerprints() as dests:
        async for batch in in_batches(map_each(pairs, _read), CHUNK):
            sources.add(pair.source for pair in batch)
            dests.add(pair.dest for pair in batch)
            await found.append(batch)
        if suspects := sources.common(dests):
            await _refuse_chains(found, suspects)
        yield found


async def _refuse_chains(pairs: Rows[FileRename], suspects: set[int]) -> None:
    """Raise ``OptionError`` if a destination is a source.

    Args:
        pairs: all pairs.
        suspects: the fingerprints that are of a source and of a destination.
    """
    sources = {it.source async for it in pairs.each() if fingerprint(it.source) in suspects}
    async for pair in pairs.each():
        if pair.dest in sources:
            raise OptionError(
                f"{pair.source} goes to {pair.dest}, which is moved as well: files are moved in no "
                "order, so move them in two steps"
            )


def _read(pair: Sequence[Any]) -> FileRename:
    try:
        entry = pair if isinstance(pair, FileRename) else FileRename(*pair)
    except TypeError:
        text = f"expected (source, dest) or (source, dest, etag), not {repr(pair)[:200]}"
        raise OptionError(text) from None
    entry = entry._replace(source=checked_path(entry.source), dest=checked_path(entry.dest))
    if entry.source == entry.dest:
        raise OptionError(f"{entry.source}: source and destination are the same")
    return entry


def map_each(
    items: Iterable[Any] | AsyncIterable[Any], read: Callable[[Any], T]
) -> Iterable[T] | AsyncIterable[T]:
    """Return ``items`` with ``read`` applied to each, of the same kind."""
    if isinstance(items, AsyncIterable):
        return _map_async(items, read)
    if isinstance(items, Sequence):
        return [read(item) for item in items]
    return map(read, items)


async def _map_async(items: AsyncIterable[Any], read: Callable[[Any], T]) -> AsyncIterator[T]:
    async for item in items:
        yield read(item)

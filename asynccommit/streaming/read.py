"""Reading a sink log: the entries that a reader sees, checked as strictly as they are relied on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from asynccommit.errors import NotFoundError, RejectedError, SinkLogCorruptError, UrlError
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.base import Info, Store
from asynccommit.stores.urls import Address, Under
from asynccommit.streaming.entries import FOLDER, SinkFile, Wrote, decode_batch
from asynccommit.streaming.listing import corrupt, place, read_listing, see

_TRIES = 5


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log, to be read.

    Attributes:
        store: where it is.
        dest: the table.
        max_bytes: of one file of the log.
        instead: name -> content that a file of the log will have.
    """

    store: Store
    dest: Address
    max_bytes: int
    instead: dict[str, bytes] = field(default_factory=dict)

    async def get(self, info: Info) -> bytes:
        """Return a file of the log. Raises ``SinkLogCorruptError`` for one that is too large."""
        name = info.path.rpartition("/")[2]
        if name in self.instead:
            return self.instead[name]
        if info.size > self.max_bytes:
            raise self._too_large(name)
        try:
            return await self.store.get(info.path, self.max_bytes)
        except RejectedError:
            raise self._too_large(name) from None

    def _too_large(self, name: str) -> SinkLogCorruptError:
        text = (
            f"holds more than {self.max_bytes} bytes: if Spark wrote that, allow more (max_bytes)"
        )
        return corrupt(self.dest, name, text)


class Entries:
    """Decodes files of one log, and refuses what readers would take for something else.

    Each path is remembered, 100 bytes or so, since one that is listed twice is read twice.

    Args:
        dest: the table.
    """

    def __init__(self, dest: Address) -> None:
        self._dest = dest
        self._under = Under(dest)
        self._log = f"{dest.child(FOLDER).path}/"
        self._seen: set[str] = set()

    def of(self, name: str, data: bytes) -> Iterable[tuple[SinkFile, Wrote | None]]:
        """Yield the entries of one file of the log. Raises ``SinkLogCorruptError``."""
        try:
            for file, wrote in decode_batch(data, place(self._dest, name)):
                self.check(name, file)
                yield file, wrote
        except SinkLogCorruptError as error:
            if error.reason.endswith(see(self._dest)):
                raise
            raise corrupt(self._dest, name, error.reason) from None

    def check(self, name: str, file: SinkFile) -> None:
        """Refuse a file outside of the table, and one that was there before."""
        try:
            path = self._under.path(file.path)
        except UrlError as error:
            text = f"lists a file that readers pass over in silence: {error}"
            raise corrupt(self._dest, name, text) from None
        if path.startswith(self._log):
            raise corrupt(
                self._dest, name, f"lists {file.path[:200]!r}, which is of the log itself"
            )
        if path in self._seen:
            raise corrupt(self._dest, name, f"lists {file.path[:200]!r} again: it is read twice")
        self._seen.add(path)


async def read_all(source: LogSource, interval: int) -> list[SinkFile]:
    """Return what a reader sees, in the order of the log.

    A reader that listed before a compaction may find files expired: then it looks again.

    Args:
        source: the log.
        interval: what is set, where the log does not say otherwise.
    """
    for _ in range(_TRIES):
        listing = await read_listing(source.store, source.dest)
        wanted = listing.wanted(listing.interval(interval))
        try:
            contents = await fetch(source, wanted)
        except NotFoundError:
            continue
        entries = Entries(source.dest)
        return [
            file
            for info, data in zip(wanted, contents, strict=True)
            for file, _ in entries.of(info.path.rpartition("/")[2], data)
        ]
    text = "its files go while they are read: another process deletes them"
    raise corrupt(source.dest, "", text)


async def fetch(source: LogSource, wanted: Sequence[Info]) -> list[bytes]:
    """Return the content of files, all at once. Raises ``NotFoundError``."""
    contents = [b""] * len(wanted)

    async def get(number: int) -> None:
        contents[number] = await source.get(wanted[number])

    await for_each(range(len(wanted)), get, workers=source.store.traits.workers)
    return contents


async def each_entry(
    source: LogSource, wanted: Sequence[Info], entries: Entries
) -> AsyncIterator[SinkFile]:
    """Yield the entries of files, of which one is in memory at a time."""
    for info in wanted:
        data = await source.get(info)
        for file, _ in entries.of(info.path.rpartition("/")[2], data):
            yield file

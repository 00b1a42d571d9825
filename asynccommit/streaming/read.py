"""Read the entries of a sink log that a reader sees, with strict checks."""

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
    """A log to read from.

    Attributes:
        store: store of the log.
        dest: the table.
        max_bytes: maximum size of one log file.
        instead: name -> content that replaces a log file's content.
    """

    store: Store
    dest: Address
    max_bytes: int
    instead: dict[str, bytes] = field(default_factory=dict)

    async def get(self, info: Info) -> bytes:
        """Return a log file's content.

        Raises ``SinkLogCorruptError`` if it is too large.
        """
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
    """A decoder for one log, which rejects entries readers would misread.

    All paths are kept in memory, about 100 bytes each, since a file that is listed twice is read
    twice.

    Args:
        dest: the table.
    """

    def __init__(self, dest: Address) -> None:
        self._dest = dest
        self._under = Under(dest)
        self._log = f"{dest.child(FOLDER).path}/"
        self._seen: set[str] = set()

    def of(self, name: str, data: bytes) -> Iterable[tuple[SinkFile, Wrote | None]]:
        """Yield the entries of one log file. Raises ``SinkLogCorruptError``."""
        try:
            for file, wrote in decode_batch(data, place(self._dest, name)):
                self.check(name, file)
                yield file, wrote
        except SinkLogCorruptError as error:
            if error.reason.endswith(see(self._dest)):
                raise
            raise corrupt(self._dest, name, error.reason) from None

    def check(self, name: str, file: SinkFile) -> None:
        """Reject a file outside of the table, and one that is listed twice."""
        try:
            path = self._under.path(file.path)
        except UrlError as error:
            text = f"lists a file that readers silently skip: {error}"
            raise corrupt(self._dest, name, text) from None
        if path.startswith(self._log):
            raise corrupt(
                self._dest, name, f"lists {file.path[:200]!r}, which belongs to the log itself"
            )
        if path in self._seen:
            raise corrupt(
                self._dest, name, f"lists {file.path[:200]!r} again: it would be read twice"
            )
        self._seen.add(path)


async def read_all(source: LogSource, interval: int) -> list[SinkFile]:
    """Return the files that a reader sees, in log order.

    If files expired between listing and reading, because of a compaction, the log is listed again.

    Args:
        source: the log.
        interval: configured interval, used if the log has no own one.
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
    text = "its files vanish while they are read: another process is deleting them"
    raise corrupt(source.dest, "", text)


async def fetch(source: LogSource, wanted: Sequence[Info]) -> list[bytes]:
    """Return the contents of files, read concurrently.

    Raises ``NotFoundError``.
    """
    contents = [b""] * len(wanted)

    async def get(number: int) -> None:
        contents[number] = await source.get(wanted[number])

    await for_each(range(len(wanted)), get, workers=source.store.traits.workers)
    return contents


async def each_entry(
    source: LogSource, wanted: Sequence[Info], entries: Entries
) -> AsyncIterator[SinkFile]:
    """Yield the entries of files, with one file in memory at a time."""
    for info in wanted:
        data = await source.get(info)
        for file, _ in entries.of(info.path.rpartition("/")[2], data):
            yield file

"""List the directory of a sink log, by file name alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from asynccommit.commit.hints import quoted
from asynccommit.errors import SinkLogCorruptError, SinkLogGapError
from asynccommit.stores.base import Info, Kind, Store
from asynccommit.stores.tree import list_if_there
from asynccommit.stores.urls import Address
from asynccommit.streaming.batches import (
    COMPACT,
    batch_of,
    derive_interval,
    file_name,
    is_compaction,
    is_strange,
    to_read,
)
from asynccommit.streaming.entries import FOLDER


@dataclass(slots=True)
class LogListing:
    """The files of a log.

    Attributes:
        dest: the table.
        singles: batch -> its file.
        compacts: batch -> its compact file.
        strange: entries that Spark would take for a batch but never writes: names like ``007``, and
            directories.
    """

    dest: Address
    singles: dict[int, Info] = field(default_factory=dict)
    compacts: dict[int, Info] = field(default_factory=dict)
    strange: list[Info] = field(default_factory=list)

    @property
    def newest(self) -> int | None:
        """The newest batch, ``None`` if there is none."""
        return max((*self.singles, *self.compacts), default=None)

    def interval(self, default: int) -> int:
        """Return the interval of the log. Raises ``SinkLogCorruptError``.

        The error means that the file names fit no interval.
        """
        interval = derive_interval(default, self.compacts)
        newest = max(self.compacts, default=None)
        if newest is not None and not is_compaction(newest, interval):
            below = max(batch for batch in self.compacts if batch < newest)
            raise corrupt(
                self.dest,
                f"{newest}{COMPACT}",
                f"{interval} batches after {below}{COMPACT} there cannot be a compact file: one "
                "of the two was not written by Spark",
            )
        return interval

    def put(self, name: str, size: int) -> None:
        """Add a file of this name to the listing."""
        batch, compact = batch_of(name) or (0, False)
        info = Info(self.dest.child(FOLDER, name).path, Kind.FILE, size)
        (self.compacts if compact else self.singles)[batch] = info

    def file(self, batch: int) -> Info | None:
        """Return the file of a batch; the compact one if both exist."""
        return self.compacts.get(batch) or self.singles.get(batch)

    def wanted(self, interval: int) -> list[Info]:
        """Return the files that a reader needs, in order.

        Raises:
            SinkLogCorruptError: Spark would misread the name of a file.
            SinkLogGapError: one of them is missing.
        """
        for info in self.strange:
            name = info.path.rpartition("/")[2]
            what = "is a directory" if info.is_dir else "has a name that Spark never writes"
            raise corrupt(self.dest, name, f"{what}, but would be read as a batch: move it away")
        newest = self.newest
        return [] if newest is None else self.named(to_read(newest, interval), interval)

    def named(self, batches: Iterable[int], interval: int) -> list[Info]:
        """Return the files of batches, each under its only valid name.

        Raises ``SinkLogGapError``.
        """
        found: list[Info] = []
        for batch in batches:
            kind = self.compacts if is_compaction(batch, interval) else self.singles
            if batch not in kind:
                raise self._gap(batch, interval)
            found.append(kind[batch])
        return found

    def _gap(self, batch: int, interval: int) -> SinkLogGapError:
        name = file_name(batch, interval)
        reason = f"is missing, but readers need it: compact files are {interval} batches apart"
        if batch in self.singles or batch in self.compacts:
            other = (self.file(batch) or self.singles[batch]).path.rpartition("/")[2]
            reason = f"{reason}, and {other} was written with another interval"
        return SinkLogGapError(place(self.dest, name), f"{reason}. {see(self.dest)}")


async def read_listing(store: Store, dest: Address) -> LogListing:
    """List the log of a table; a missing log has no files."""
    found = LogListing(dest)
    for info in await list_if_there(store, dest.child(FOLDER).path):
        name = info.path.rpartition("/")[2]
        batch = batch_of(name)
        if is_strange(name) or (batch is not None and info.is_dir):
            found.strange.append(info)
        elif batch is not None:
            (found.compacts if batch[1] else found.singles)[batch[0]] = info
    found.strange.sort()
    return found


def place(dest: Address, name: str) -> str:
    """Return the URL of a log file, for messages."""
    return str(dest.child(FOLDER, name))


def see(dest: Address, verb: str = "verify") -> str:
    """Return the command that shows more, or repairs the log."""
    does = {"verify": "shows what is wrong", "repair": "says what can be repaired"}[verb]
    return f"asynccommit sink-log {verb} {quoted(str(dest))} {does}"


def corrupt(dest: Address, name: str, problem: str) -> SinkLogCorruptError:
    """Return an error about one log file."""
    return SinkLogCorruptError(place(dest, name), f"{problem}. {see(dest)}")

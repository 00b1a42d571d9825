"""Write and read the log of a streaming file sink: ``_spark_metadata``.

A batch is one file of the log, which lists the files that the batch added; readers ignore a file of
the table that no batch lists. At a fixed interval the file is a compact one, which holds all
entries. So a batch is committed when its log file appears, by the writer whose file appears first:
log files are created only if they do not exist, and never replaced.

The rules are those of ``CompactibleFileStreamLog`` and ``FileStreamSink`` of Spark 4.3, with one
difference. Here a batch also names the query that wrote it, since a number alone does not: Spark's
own sink ignores every batch whose number is in the log, even that of a query with a new checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum

from asynccommit.commit.driver.owners import time_of
from asynccommit.errors import (
    OptionError,
    OutcomeUnknownError,
    SinkLogForeignError,
    SinkLogGapError,
    SinkLogRaceError,
    StoreError,
    UrlError,
)
from asynccommit.options.checked import checked
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address, Under
from asynccommit.streaming.batch_owner import whose
from asynccommit.streaming.batches import (
    COMPACT,
    MAX_BATCH,
    before_compaction,
    file_name,
    is_compaction,
)
from asynccommit.streaming.entries import FOLDER, QUERY, LogFileWriter, SinkFile, Wrote, sink_uri
from asynccommit.streaming.expire import Discarded, discard, expire
from asynccommit.streaming.listing import LogListing, place, read_listing, see
from asynccommit.streaming.publish import BatchPublisher
from asynccommit.streaming.read import Entries, LogSource, each_entry, read_all
from asynccommit.streaming.settings import SinkLogSettings

__all__ = ["Added", "Discarded", "SinkFile", "SinkLog", "SinkLogSettings"]

log = logging.getLogger(__name__)


class Added(Enum):
    """The result of adding a batch."""

    NEW = "new"
    ALREADY = "already"


class SinkLog:
    """The log of one table, written by one query at a time.

    Args:
        store: store of the table.
        dest: the table.
        settings: settings of the log; ``None`` for Spark's defaults.
        host: clock and ids; ``None`` for the real ones.

    Raises:
        OptionError: the table is inside another log, where readers ignore this one.
        UnsupportedError: the store cannot create a file only if it does not exist.
    """

    @checked
    def __init__(
        self,
        store: Store,
        dest: Address,
        settings: SinkLogSettings | None = None,
        *,
        host: Host | None = None,
    ) -> None:
        if FOLDER in dest.path.split("/"):
            raise OptionError(f"{dest} is inside a sink log: give the directory of the table")
        self.dest = dest
        self.settings = settings or SinkLogSettings()
        self.warnings: list[str] = []
        self._store = store
        self._host = host or this_host()
        self._source = LogSource(store, dest, self.settings.max_bytes)
        self._publisher = BatchPublisher(store, dest, self._host)
        self._doubtful: set[int] = set()
        self._kept = 0

    async def latest(self) -> int | None:
        """Return the newest batch of the log, ``None`` if there is none."""
        return (await self._look()).newest

    @checked
    async def wants(self, batch_id: int) -> bool:
        """Return whether a batch is not in the log yet and can follow it.

        Raises ``SinkLogGapError`` and ``SinkLogCorruptError`` as ``add`` does.
        """
        listing = await self._look()
        self._interval(listing, batch_id)
        return listing.newest is None or listing.newest < batch_id

    async def make_folder(self) -> None:
        """Create the directory of the log, if the store has directories.

        From then on readers see only listed files, so nothing before the first batch.
        """
        await self._publisher.make_folder()

    async def files(self) -> list[SinkFile]:
        """Return the files that a reader sees, in log order; empty without a log.

        Raises:
            SinkLogCorruptError: a log file is not as Spark writes it.
            SinkLogGapError: a batch is missing.
        """
        return await read_all(self._source, self.settings.interval)

    @checked
    async def entry(self, name: str) -> SinkFile:
        """Return the log entry for an existing file.

        Args:
            name: path below the table, as on disk: ``day=1/part-0.parquet``.

        Raises:
            NotFoundError: there is no such file.
            UrlError: the name cannot be that of a file of the table.
        """
        uri = sink_uri(self.dest.child(*name.split("/")))
        info = await self._store.head(Under(self.dest).path(uri))
        return SinkFile(uri, info.size, int(info.modified * 1000), is_dir=info.is_dir)

    @checked
    async def add(
        self, batch_id: int, files: Sequence[SinkFile], *, query: str | None = None
    ) -> Added:
        """Commit a batch; the same query may commit it again.

        Args:
            batch_id: number of the batch: 0, or one more than the newest.
            files: files that the batch adds to the table.
            query: name of the query, the same at every restart: Spark's query id.

        Returns whether the batch is new, or was in the log already.

        Raises:
            OptionError: a file is not below the table, or is named twice.
            SinkLogForeignError: the log has such a batch, and it is not known to be this query's.
            SinkLogGapError: readers would miss a batch.
            SinkLogRaceError: another writer was faster.
            SinkLogCorruptError: the log cannot be continued in its present state.
            OutcomeUnknownError: it is unknown whether the batch is in the log: add it again, and
                delete nothing.
        """
        self._check(batch_id, files, query)
        listing = await self._look()
        interval = self._interval(listing, batch_id)
        if listing.newest is not None and batch_id <= listing.newest:
            await self._require_own(listing, batch_id, files, query)
            self._doubtful.discard(batch_id)
            return Added.ALREADY
        if listing.newest is None and batch_id:
            interval = batch_id + 1  # as the only log file it is read only if it is a compact file
        data = await self._content(listing, interval, batch_id, files, query)
        await self._publish(file_name(batch_id, interval), batch_id, data, listing)
        try:
            await self._after(interval, batch_id)
        except StoreError as error:
            error.add_note(f"batch {batch_id} may be in the log: add it again unchanged")
            raise
        return Added.NEW

    @checked
    async def abort(
        self, batch_id: int, files: Sequence[SinkFile], *, sent: bool = False
    ) -> Discarded:
        """Delete a failed batch's files, except those the log lists or may list.

        Args:
            batch_id: number of the batch.
            files: files that its tasks wrote.
            sent: another process may have begun to add the batch: then its late write may still
                arrive, unless the log has a batch of that number.

        Returns the files that were deleted, and those that were kept with the reason. Raises the
        errors of ``files``: if the log cannot be read nothing is deleted.
        """
        newest = (await self._look()).newest
        under = Under(self.dest)
        listed = {under.path(file.path) for file in await self.files()}
        why = ""
        if (sent or batch_id in self._doubtful) and (newest is None or newest < batch_id):
            why = "the batch may still reach the log: add it again"
        return await discard(self._store, self.dest, list(files), listed, why)

    # --- checks --------------------------------------------------------------------------------

    async def _look(self) -> LogListing:
        return await read_listing(self._store, self.dest)

    def _check(self, batch_id: int, files: Sequence[SinkFile], query: str | None) -> None:
        if not 0 <= batch_id <= MAX_BATCH:
            raise OptionError(f"batch {batch_id}: expected 0 to {MAX_BATCH}")
        if query is not None and not 0 < len(query) <= QUERY:
            raise OptionError(f"the name of a query must have 1 to {QUERY} characters")
        under, seen, folder = Under(self.dest), set[str](), f"{self.dest.child(FOLDER).path}/"
        for file in files:
            try:
                path = under.path(file.path)
            except UrlError as error:
                raise OptionError(f"batch {batch_id}: {error}") from None
            if path in seen or f"{path}/".startswith(folder):
                what = "is listed twice" if path in seen else "belongs to the log itself"
                raise OptionError(f"batch {batch_id}: {file.path[:200]!r} {what}")
            if file.is_dir or file.action != "add" or file.size < 0 or file.modified < 0:
                raise OptionError(
                    f"batch {batch_id}: {file.path[:200]!r} is not a file that can be added"
                )
            seen.add(path)

    def _interval(self, listing: LogListing, batch_id: int) -> int:
        """Return the interval; the log must be complete and reach the batch.

        Raises ``SinkLogCorruptError`` and ``SinkLogGapError``.
        """
        interval = listing.interval(self.settings.interval)
        if (max(listing.compacts, default=-1) + 1) % (self._kept or interval) == 0:
            interval = self._kept or interval  # as in Spark, which computes it once for each writer
        self._kept = interval
        listing.wanted(interval)
        newest = -1 if listing.newest is None else listing.newest
        if batch_id <= newest + 1 or (newest < 0 and self.settings.begin_anywhere):
            return interval
        name = place(self.dest, file_name(newest + 1, interval))
        if newest >= 0:
            text = (
                f"is missing, and batch {batch_id} cannot follow batch {newest}: either batches "
                "of the log were lost, or the query wrote them elsewhere"
            )
        else:
            text = (
                f"is missing, and the query begins with batch {batch_id}. If the log was "
                "deleted, restore it; if the query wrote elsewhere before, give it a new "
                "checkpoint, or let the log begin here (asynccommit.sink.begin.anywhere)"
            )
        raise SinkLogGapError(name, f"{text}. {see(self.dest)}")

    async def _require_own(
        self, listing: LogListing, batch_id: int, files: Sequence[SinkFile], query: str | None
    ) -> None:
        """Check that an existing batch is this one.

        Raises ``SinkLogForeignError``.
        """
        found = await whose(self._source, listing, batch_id, files)
        if found.same or (query is not None and found.query == query):
            return
        if found.query is None and self.settings.adopt:
            return
        by = f"of query {found.query[:100]!r}" if found.query else "of an unnamed query"
        hint = "" if found.query else " If it is the same query, set asynccommit.sink.adopt."
        newest = listing.newest
        raise SinkLogForeignError(
            place(self.dest, str(batch_id)),
            f"the log has that batch already, {by}, and ends with batch {newest}; batch "
            f"{batch_id} was not added. A query with a new checkpoint begins at 0 and must write "
            f"to its own directory.{hint}",
        )

    # --- the batch -----------------------------------------------------------------------------

    async def _content(
        self,
        listing: LogListing,
        interval: int,
        batch_id: int,
        files: Sequence[SinkFile],
        query: str | None,
    ) -> bytes:
        wrote = None if query is None else Wrote(batch_id, query)
        if not is_compaction(batch_id, interval):
            return LogFileWriter(wrote).add_all(files).data()
        oldest = await self._oldest(listing)
        entries = Entries(self.dest)
        writer = LogFileWriter()
        if listing.newest is not None:
            window = listing.named(before_compaction(batch_id, interval), interval)
            async for file in each_entry(self._source, window, entries):
                if file.modified >= oldest:
                    writer.add(file)
        writer.wrote = wrote
        for file in files:
            entries.check(file_name(batch_id, interval), file)
            if file.modified >= oldest:
                writer.add(file)
        return writer.data()

    async def _oldest(self, listing: LogListing) -> int:
        """Return the oldest allowed time of a file, in milliseconds since 1970.

        The store's clock tells, as it dates the files.
        """
        if self.settings.retention is None:
            return 0
        if listing.newest is None:
            await self._publisher.make_folder()
        probe = self.dest.child(FOLDER, f".clock.{self._host.new_id()}.tmp").path
        now = await time_of(self._store, probe)
        return int(now * 1000) - int(self.settings.retention * 1000)

    async def _publish(self, name: str, batch_id: int, data: bytes, listing: LogListing) -> None:
        if listing.newest is None:
            await self._publisher.make_folder()
        self._doubtful.add(batch_id)
        try:
            await self._publisher.publish(name, data)
        except OutcomeUnknownError as error:
            error.add_note(
                f"batch {batch_id} may be in the log, or may still reach it: add it again"
            )
            raise
        except Exception:
            self._doubtful.discard(batch_id)
            raise
        self._doubtful.discard(batch_id)

    async def _after(self, interval: int, batch_id: int) -> None:
        """Check that the batch counts, then delete expired log files."""
        listing = await self._look()
        if not is_compaction(batch_id, interval) and batch_id in listing.compacts:
            raise SinkLogRaceError(
                place(self.dest, f"{batch_id}{COMPACT}"),
                "another writer with a different compact interval created it a moment ago, and "
                f"readers use that file: this batch was not added. {see(self.dest)}",
            )
        for text in await expire(self._store, listing, interval, self.settings):
            log.warning(text)
            self.warnings.append(text)

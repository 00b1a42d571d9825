"""Sink logs in tests: files of a table, and a log on a local disk for code that blocks."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import TypeVar

from asynccommit.runtime.host import Host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.tree import list_if_there
from asynccommit.stores.urls import Address, parse_url
from asynccommit.streaming.batch_names import NamedRun
from asynccommit.streaming.entries import FOLDER, LogFileWriter, sink_uri
from asynccommit.streaming.log import Added, SinkFile, SinkLog, SinkLogSettings
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Service
from asynccommit.testing.models.virtual_loop import run_virtual

T = TypeVar("T")
DEST = Address("s3a", "data", "/t")
LOG = "/t/_spark_metadata"
NOW = 1_795_000_000.0


def entry(dest: Address, name: str, size: int = 10, modified: int = 1_795_000_000_000) -> SinkFile:
    """Return an entry for a file of a table."""
    return SinkFile(sink_uri(dest.child(*name.split("/"))), size, modified)


async def announce(store: Store, dest: Address, run: NamedRun, listed: str = "") -> None:
    """Announce a run of a batch as Spark's driver does, or leave with it what it has listed."""
    if store.traits.directories:
        await store.mkdir(dest.child(FOLDER).path)
    await store.put(dest.child(FOLDER, run.name).path, listed.encode())


def of_disk(path: Path, table: Path) -> SinkFile:
    """Return the entry for a file that is there."""
    info = path.stat()
    place = parse_url(str(table)).child(*path.relative_to(table).parts)
    return SinkFile(sink_uri(place), info.st_size, int(info.st_mtime * 1000))


def log_files(table: Path) -> dict[str, str]:
    """Return the files of a log, without what is hidden."""
    folder = table / FOLDER
    names = [name for name in os.listdir(folder) if not name.startswith(".")]
    return {name: (folder / name).read_text() for name in sorted(names)}


def listed(text: str) -> list[str]:
    """Return the last names of what one file of a log lists."""
    return [json.loads(line)["path"].rpartition("/")[2] for line in text.split("\n")[1:]]


class BlockingLog:
    """A log on the local disk, for tests that block.

    Args:
        table: the directory.
        settings: as of ``SinkLog``.
        host: as of ``SinkLog``.
    """

    def __init__(
        self, table: Path, settings: SinkLogSettings | None = None, host: Host | None = None
    ) -> None:
        self.dest = parse_url(str(table))
        self._settings = settings
        self._host = host

    def add(self, batch: int, files: Iterable[SinkFile], query: str | None = None) -> Added:
        """See ``SinkLog.add``."""
        given = list(files)
        return self.run(lambda log: log.add(batch, given, query=query))

    def files(self) -> list[SinkFile]:
        """See ``SinkLog.files``."""
        return self.run(lambda log: log.files())

    def latest(self) -> int | None:
        """See ``SinkLog.latest``."""
        return self.run(lambda log: log.latest())

    def run(self, work: Callable[[SinkLog], Awaitable[T]]) -> T:
        """Do something with the log, opened for this alone."""

        async def opened() -> T:
            store = LocalStore()
            try:
                return await work(SinkLog(store, self.dest, self._settings, host=self._host))
            finally:
                await store.aclose()

        return submit(opened())


class Table:
    """An empty bucket with a table, and a clock that is set by hand."""

    def __init__(self) -> None:
        ids = map(str, count())
        self.now = NOW
        service = S3Service(now=lambda: self.now, new_id=lambda: next(ids))
        service.create_bucket("data")
        self.store = SimS3Store(DEST.at("/"), {"service": service})
        self.host = Host(lambda: self.now, lambda: next(ids), random.Random(0))

    def log(self, **settings: object) -> SinkLog:
        """Return the log, newly opened."""
        made = SinkLogSettings(**settings)  # type: ignore[arg-type]
        return SinkLog(self.store, DEST, made, host=self.host)

    def file(self, batch: int, number: int = 0, age: float = 0.0) -> SinkFile:
        """Return the entry of a file of a batch."""
        name = f"part-{number:05d}-{batch}.parquet"
        return entry(DEST, name, 10, int((self.now - age) * 1000))

    async def names(self) -> list[str]:
        """Return the files of the log, those of batches first, by number."""
        names = [i.path.rpartition("/")[2] for i in await list_if_there(self.store, LOG)]
        return sorted(names, key=lambda name: (not name[0].isdigit(), int_of(name)))

    async def put(self, files: Mapping[str, bytes]) -> None:
        """Write files of the log as they are given."""
        for name, data in files.items():
            await self.store.put(f"{LOG}/{name}", data)

    async def data(self, name: str) -> bytes:
        """Return a file of the log."""
        return await self.store.get(f"{LOG}/{name}", 1 << 20)


def int_of(name: str) -> int:
    """Return the number that a name begins with."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isdigit() else -1


def on_table(work: Callable[[Table], Awaitable[None]]) -> None:
    """Run a test in virtual time."""

    async def run() -> None:
        await work(Table())

    run_virtual(run())


def batch(*files: SinkFile) -> bytes:
    """Return a file of the log."""
    return LogFileWriter().add_all(files).data()

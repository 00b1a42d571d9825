"""Read the announcements of runs, and delete what lost runs left.

Spark's own file sink writes the files of a batch to their places at once, and then adds them to the
log. If its driver dies in between they are in no batch, and the next run of the batch has other
files. So under this package's protocol for that sink half of the id in a name is a token, of one
run of one batch. Before there are files the driver's JVM announces it, by an empty file in the
directory of the log whose name says everything. If a task had more than one attempt, the file has
the URIs of what the run listed, which the log may have dropped by the time that others are deleted.

A run that is over leaves its announcement if tasks may have left files. Once the log has the batch,
no other run of it can be listed any more, and the files with such a token that the log lacks are
deleted. A task that ends later finds the announcement gone, and deletes its own files.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from asynccommit.errors import NotFoundError
from asynccommit.stores.base import Info, Store
from asynccommit.stores.tree import list_if_there, remove_file, tree_pages, walk
from asynccommit.stores.urls import Address, Under
from asynccommit.streaming.entries import FOLDER, SinkFile, decode_batch, sink_uri
from asynccommit.streaming.expire import LISTED, Discarded, discard
from asynccommit.streaming.listing import LogListing, read_listing
from asynccommit.streaming.read import LogSource

TOKEN = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}"
_SAID = re.compile(
    rf"\.(0|[1-9][0-9]{{0,9}})\.({TOKEN})\.([\w-]{{1,64}})\.(batch|ended)", re.ASCII
).fullmatch
_FILE = re.compile(rf"part-[0-9]{{5,}}-({TOKEN})-.*", re.ASCII).fullmatch
_PAGE = 10_000  # files that are deleted before more are looked for


@dataclass(frozen=True, slots=True)
class NamedRun:
    """One run of a batch that has been announced.

    Attributes:
        batch: number of the batch.
        token: what its files have in their names.
        query: id of the query.
        ended: its tasks are refused, because its files are being deleted.
    """

    batch: int
    token: str
    query: str
    ended: bool = False

    @property
    def name(self) -> str:
        """The name of the announcement."""
        return f".{self.batch}.{self.token}.{self.query}.{'ended' if self.ended else 'batch'}"


def named_run(name: str) -> NamedRun | None:
    """Parse the name of an announcement; ``None`` for any other."""
    found = _SAID(name)
    return found and NamedRun(int(found[1]), found[2], found[3], found[4] == "ended")


def token_of(name: str) -> str | None:
    """Return the token in the name of a table's file, ``None`` without one."""
    found = _FILE(name)
    return found and found[1]


class BatchNames:
    """The announcements beside the log of one table.

    Args:
        store: store of the table.
        dest: the table.
        max_bytes: maximum size of a file of the log.
    """

    def __init__(self, store: Store, dest: Address, max_bytes: int) -> None:
        self._store, self._dest = store, dest
        self._source = LogSource(store, dest, max_bytes)

    async def abort(self, run: NamedRun, files: Iterable[str], *, sent: bool) -> Discarded:
        """Delete a failed run's files, except those the log may list.

        Args:
            run: the run; its announcement stays, for tasks that go on.
            files: URIs of the files that its tasks have reported.
            sent: the batch may reach the log yet.
        """
        info = _file_with(await read_listing(self._store, self._dest), run.batch)
        why = "the batch may still reach the log" if sent and info is None else ""
        listed = set[str]() if info is None else await self._listed([info], {run.token})
        entries = [SinkFile(uri, 0, 0) for uri in files]
        return await discard(self._store, self._dest, entries, listed, why)

    async def announced(self) -> list[NamedRun]:
        """Return the announced runs, oldest batch first."""
        names = [info.path for info in await list_if_there(self._store, self._log)]
        runs = (named_run(name.rpartition("/")[2]) for name in names)
        return sorted((run for run in runs if run), key=lambda run: (run.batch, run.name))

    async def settle(self, runs: Iterable[NamedRun]) -> Discarded:
        """Delete the files of runs that no batch lists, then their announcements.

        Runs of batches that the log does not have yet are left alone.

        Args:
            runs: runs that are over.

        Raises ``StoreError`` and ``SinkLogError``: then their announcements stay.
        """
        done, listing = Discarded(), await read_listing(self._store, self._dest)
        over = {run: info for run in runs if (info := _file_with(listing, run.batch))}
        if not over:
            return done
        under, listed = Under(self._dest), set[str]()
        for run in over:
            listed |= {under.path(uri) for uri in await self._end(run)}
        tokens = {run.token for run in over}
        listed |= await self._listed(set(over.values()), tokens)
        async for files in self._files(tokens):
            part = await discard(self._store, self._dest, files, listed, "")
            done.deleted += part.deleted
            done.kept |= {uri: why for uri, why in part.kept.items() if why != LISTED}
        if not done.kept:
            for run in over:
                await self._remove(replace(run, ended=True))
        return done

    async def _end(self, run: NamedRun) -> list[str]:
        """Have tasks of a run that end from now on delete their files themselves.

        Returns the files that the run has listed, if it said so.
        """
        try:
            data = await self._store.get(self._path(run), self._source.max_bytes)
        except NotFoundError:  # a start that died between the two names leaves both
            return []
        if not run.ended:
            await self._store.put(self._path(replace(run, ended=True)), data)
            await self._remove(run)
        return data.decode().split("\n") if data else []

    async def _remove(self, run: NamedRun) -> None:
        with suppress(NotFoundError):
            await remove_file(self._store, self._path(run))

    async def _listed(self, files: Iterable[Info], tokens: Collection[str]) -> set[str]:
        """Return the paths with one of the tokens that log files list."""
        under, found = Under(self._dest), set[str]()
        for info in files:
            for file, _ in decode_batch(await self._source.get(info), info.path):
                if token_of(file.path.rpartition("/")[2]) in tokens:
                    found.add(under.path(file.path))
        return found

    async def _files(self, tokens: Collection[str]) -> AsyncIterator[list[SinkFile]]:
        """Yield the files of the table with one of the tokens, some at a time."""
        found: list[SinkFile] = []
        async for info in _everything(self._store, self._dest.path):
            name = info.path.rpartition("/")[2]
            if info.is_dir or info.path.startswith(f"{self._log}/") or token_of(name) not in tokens:
                continue
            below = info.path[len(self._dest.path.rstrip("/")) + 1 :]
            uri = sink_uri(self._dest.child(*below.split("/")))
            found.append(SinkFile(uri, info.size, int(info.modified * 1000)))
            if len(found) == _PAGE:
                yield found
                found = []
        yield found

    @property
    def _log(self) -> str:
        return self._dest.child(FOLDER).path

    def _path(self, run: NamedRun) -> str:
        return self._dest.child(FOLDER, run.name).path


def _file_with(listing: LogListing, batch: int) -> Info | None:
    """Return the smallest log file with a batch, ``None`` without one."""
    if batch in listing.singles:
        return listing.singles[batch]
    later = min((one for one in listing.compacts if one >= batch), default=None)
    return None if later is None else listing.compacts[later]


async def _everything(store: Store, path: str) -> AsyncIterator[Info]:
    if not store.traits.bulk_delete:
        async for info in walk(store, path):
            yield info
        return
    async for page in tree_pages(store, path):
        for info in page:
            yield info

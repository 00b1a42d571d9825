"""Check a query of Spark's own file sink, and clean up after its batches.

The tasks write to final places, and Spark adds a batch to its log. The driver's JVM announces the
names of a run beforehand. What is done here is to keep a log to one query, and to delete what runs
have left that failed or died.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.stream_reports import job_of
from asynccommit.stores.base import Store
from asynccommit.stores.registry import StoreSettings, close_store, open_store
from asynccommit.stores.urls import Address, decode_uri
from asynccommit.streaming.batch_names import BatchNames, NamedRun
from asynccommit.streaming.listing import read_listing
from asynccommit.streaming.log_owner import LogOwner, claim_log

log = logging.getLogger("asynccommit.spark")

UNNAMED = "unnamed"
"""The id of a query whose JVM has told none."""

_MAX_BYTES = 4 << 30  # a log of Spark's own may be longer than one of ours
_REMEMBERED = 100

Storage = Mapping[str, Any]


class StreamBatches:
    """The queries of this process, and what earlier runs of them left."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, list[NamedRun]] = OrderedDict()

    def answer(self, request: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
        """Answer a request with what the JVM must know.

        Raises ``AsyncCommitError``.
        """
        steps = {"check": self._check, "end": self._end, "abort": self._abort}
        return submit(steps[request["step"]](request, storage))

    def tables(self, query: str) -> list[str]:
        """Return the tables that a query of this process has written to, as URLs."""
        starts = (start.split(" ") for start in self._left)  # a URI has no space
        return sorted({str(decode_uri(dest)) for dest, wrote, _ in starts if wrote == query})

    async def _check(self, request: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
        """Claim the log for a query that starts; see what earlier runs left."""
        async with _opened(request, storage) as (store, dest):
            await _claim(store, dest, request)
            left = await BatchNames(store, dest, _MAX_BYTES).announced()
        self._left[_start(request)] = left
        while len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)
        return {}

    async def _end(self, request: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
        """Delete what runs of batches up to this one left."""
        batch, start = request["batch"], _start(request)
        left = self._left.get(start, [])
        over = [one for one in left if one.batch <= batch]
        if over:
            async with _opened(request, storage) as (store, dest):
                done = await BatchNames(store, dest, _MAX_BYTES).settle(over)
            _tell(dest, len(done.deleted), done.kept)
            self._left[start] = left = [one for one in left if one.batch > batch]
        return {"settled": not left}

    async def _abort(self, request: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
        async with _opened(request, storage) as (store, dest):
            names = BatchNames(store, dest, _MAX_BYTES)
            done = await names.abort(_run(request), request["files"], sent=request["sent"])
            _tell(dest, len(done.deleted), done.kept)
        return {}


async def unfinished_runs(dest: Address, query: str, storage: Storage) -> list[JobStatus]:
    """Return the announced runs of a query's batches in Spark's file sink."""
    async with _open(dest, storage) as store:
        runs = await BatchNames(store, dest, _MAX_BYTES).announced()
        newest = (await read_listing(store, dest)).newest
    over = -1 if newest is None else newest
    return [
        JobStatus(
            job_of(run.batch, run.query),
            0,
            JobState.DEAD if run.batch <= over else JobState.RUNNING,
            key=job_of(run.batch, run.query),
            why="the log has the batch" if run.batch <= over else "it is announced beside the log",
        )
        for run in runs
        if run.query == query
    ]


def _tell(dest: Address, deleted: int, kept: Mapping[str, str]) -> None:
    if deleted:
        log.info("%s files of runs of batches that are over were deleted from %s", deleted, dest)
    for uri, why in list(kept.items())[:10]:
        log.warning("%s is in no batch, but was kept: %s", uri, why)


@asynccontextmanager
async def _opened(
    request: Mapping[str, Any], storage: Storage
) -> AsyncIterator[tuple[Store, Address]]:
    dest = decode_uri(request["dest"])
    async with _open(dest, storage) as store:
        yield store, dest


@asynccontextmanager
async def _open(dest: Address, storage: Storage) -> AsyncIterator[Store]:
    store = open_store(dest, StoreSettings(rng=this_host().rng, options=storage))
    try:
        yield store
    finally:
        await close_store(store)


async def _claim(store: Store, dest: Address, request: Mapping[str, Any]) -> None:
    if request["query"] == UNNAMED:
        return
    owner = LogOwner(request["query"], _name(request["description"]))
    await claim_log(store, dest, owner, request["batch"], this_host())


def _name(description: str) -> str:
    """Return a query's name, which the description of its jobs begins with."""
    first = description.replace("<br/>", "\n").partition("\n")[0]
    return "" if first.startswith(("id = ", "runId = ", "batch = ")) else first[:200]


def _run(request: Mapping[str, Any]) -> NamedRun:
    return NamedRun(request["batch"], request["token"], request["query"])


def _start(request: Mapping[str, Any]) -> str:
    """Name one start of a query, and what it writes to."""
    return f"{request['dest']} {request['query']} {request['run']}"


BATCHES = StreamBatches()
"""The batches of this process."""

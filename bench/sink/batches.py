"""Thousands of batches on a local disk: what adding and reading costs at the beginning and the end.

A compact file holds every entry before it, here as in Spark, so a compaction and a read cost what
the table has files: of these the cost of one entry is compared. What is between compactions should
cost the same whatever came before. Entries are counted in time of the processor, the rest waits
for the disk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import Address, parse_url
from asynccommit.streaming.batches import is_compaction
from asynccommit.streaming.entries import FOLDER, sink_uri
from asynccommit.streaming.log import Added, SinkFile, SinkLog, SinkLogSettings

FULL, QUICK = 10_000, 1_000
PARTS = 10
"""In how many parts the batches are, of which the first and the last are compared."""
SETTINGS = SinkLogSettings(cleanup_delay=0.0)
"""Spark's, but for the ten minutes that expired files are kept: here they would be all of them."""


def run(*, quick: bool, folder: str | None) -> dict[str, Any]:
    """Add the batches; returns what each tenth of them took."""
    with tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch:
        table = Path(scratch) / "table"
        table.mkdir()
        found: dict[str, Any] = submit(_measure(parse_url(str(table)), QUICK if quick else FULL))
        return {**found, "log_files_left": len(list((table / FOLDER).iterdir()))}


async def _measure(dest: Address, total: int) -> dict[str, Any]:
    store = LocalStore()
    try:
        parts = [
            await _part(store, dest, range(start, start + total // PARTS))
            for start in range(0, total, total // PARTS)
        ]
    finally:
        await store.aclose()
    return {"batches": total, "parts": parts}


async def _part(store: LocalStore, dest: Address, numbers: range) -> dict[str, float]:
    plain: list[float] = []
    compact: list[float] = []
    for number in numbers:
        # As a query does that is started again for each batch.
        log = SinkLog(store, dest, SETTINGS)
        begin, worked = time.perf_counter(), time.process_time()
        added = await log.add(number, _files(dest, number), query="bench")
        if added is not Added.NEW:
            raise AssertionError(f"batch {number} was there")
        if is_compaction(number, SETTINGS.interval):
            compact.append(time.process_time() - worked)
        else:
            plain.append(time.perf_counter() - begin)
    entries = numbers[-1] + 1
    read = await _read(SinkLog(store, dest, SETTINGS), entries)
    return {
        "entries": entries,
        "add_ms": _usual(plain) * 1e3,
        "compact_cpu_us_an_entry": _each(compact, numbers) * 1e6,
        "latest_ms": await _latest(store, dest) * 1e3,
        "read_cpu_ms": read * 1e3,
        "read_cpu_us_an_entry": read / entries * 1e6,
    }


def _files(dest: Address, number: int) -> list[SinkFile]:
    name = f"part-00000-91380a83-c55c-4431-ad3b-{number:012d}.c000.snappy.parquet"
    return [SinkFile(sink_uri(dest.child(f"day={number % 30}", name)), 480, 1_795_224_376_616)]


def _each(compact: Sequence[float], numbers: range) -> float:
    places = [number for number in numbers if is_compaction(number, SETTINGS.interval)]
    return _usual([took / (place + 1) for took, place in zip(compact, places, strict=True)])


def _usual(times: Sequence[float]) -> float:
    """Return the lower quartile: what others do on this machine makes the rest slower."""
    return quantiles(times, n=4)[0]


async def _read(log: SinkLog, entries: int) -> float:
    rounds: list[float] = []
    for _ in range(5):
        begin = time.process_time()
        files = await log.files()
        rounds.append(time.process_time() - begin)
        if len(files) != entries:
            raise AssertionError(f"{len(files)} entries are read, not {entries}")
    return min(rounds)


async def _latest(store: LocalStore, dest: Address) -> float:
    rounds: list[float] = []
    for _ in range(20):
        begin = time.perf_counter()
        await SinkLog(store, dest, SETTINGS).latest()
        rounds.append(time.perf_counter() - begin)
    return min(rounds)

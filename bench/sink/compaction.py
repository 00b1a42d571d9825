"""A batch that compacts a long log of Spark's file sink, ours and stock.

The drivers have little memory. The log is that of a query whose checkpoint was lost; ``adopt``
makes one that goes on after it. Each query has a JVM of its own, whose largest resident size the
system tells.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import Address, parse_url
from asynccommit.streaming.adopt import Adopting
from asynccommit.streaming.entries import FOLDER, LogFileWriter, sink_uri
from asynccommit.streaming.log import SinkFile
from bench.child import Child

FULL, QUICK = 10_000_000, 200_000
MEMORY = "512m"
"""The heap of the driver, with everything else that Spark has there."""
_COMPACT, _NEXT = 9, 19
"""Where the entries are, and the batch that repeats them, with Spark's interval."""
_CHUNK = 10_000


def run(*, quick: bool, folder: str | None) -> dict[str, Any]:
    """Measure both; returns seconds of the batch, and megabytes of the driver."""
    total = QUICK if quick else FULL
    found: dict[str, Any] = {"entries": total, "memory": MEMORY}
    with tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch:
        table = Path(scratch, "table")
        (table / FOLDER).mkdir(parents=True)
        size = _begin(parse_url(str(table)), total)
        found["log_megabytes"] = size / 1e6
        for kind in ("ours", "stock"):
            found[kind] = _compact(Path(scratch), kind)
            made = table / FOLDER / f"{_NEXT}.compact"
            found[kind]["bytes"] = made.stat().st_size
            for path in (made, made.with_name(f".{made.name}.crc")):
                path.unlink(missing_ok=True)
    if found["ours"]["bytes"] < size or found["stock"]["bytes"] < size:
        raise AssertionError(f"entries are missing: {found}")
    return found


def _begin(table: Address, total: int) -> int:
    """Write a compact file of so many entries, and empty batches after it.

    The same entries come again and again: to write others would take longer than the measurement.
    """
    log = Path(table.path, FOLDER)
    entries = LogFileWriter().add_all([_entry(table, n) for n in range(_CHUNK)]).data()[2:]
    with (log / f"{_COMPACT}.compact").open("wb") as file:
        file.write(LogFileWriter().data())
        for _ in range(total // _CHUNK):
            file.write(entries)
    for batch in range(_COMPACT + 1, _NEXT):
        (log / str(batch)).write_bytes(LogFileWriter().data())
    return (log / f"{_COMPACT}.compact").stat().st_size


def _entry(table: Address, number: int) -> SinkFile:
    name = f"part-00000-91380a83-c55c-4431-ad3b-{number:012d}.c000.snappy.parquet"
    return SinkFile(sink_uri(table.child(f"day={number % 30}", name)), 480, 1_795_224_376_616)


def _compact(scratch: Path, kind: str) -> dict[str, float]:
    checkpoint = scratch / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    submit(_adopt(parse_url(str(scratch / "table")), parse_url(str(checkpoint))))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory {MEMORY} pyspark-shell"
    try:
        with Child("bench.sink.compacting", str(scratch), kind) as child:
            found: dict[str, float] = child.ask("compact")
            return found
    finally:
        del os.environ["PYSPARK_SUBMIT_ARGS"]


async def _adopt(table: Address, checkpoint: Address) -> None:
    store = LocalStore()
    try:
        adopting = Adopting(store, table, this_host(), dry_run=False)
        await adopting.with_checkpoint(store, checkpoint, 1)
    finally:
        await store.aclose()


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        f"  a batch that compacts {found['entries']:,} entries ({found['log_megabytes']:.0f} MB), "
        f"in a driver with a heap of {found['memory']}"
    )
    for kind in ("ours", "stock"):
        one = found[kind]
        yield (
            f"  {kind:6} {one['seconds']:7.1f} s, {one['cpu']:6.1f} s of CPU; the JVM's largest "
            f"size {one['peak_megabytes']:.0f} MB, {one['before_megabytes']:.0f} MB before"
        )

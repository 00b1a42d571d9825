"""What a compaction takes of memory, for each file of the table."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import Address, parse_url
from asynccommit.streaming.entries import FOLDER, LogFileWriter, sink_uri
from asynccommit.streaming.log import SinkFile, SinkLog, SinkLogSettings

FULL, QUICK = 500_000, 50_000


def measure(total: int) -> dict[str, Any]:
    """Compact a log of ``total`` files; returns megabytes, and bytes a file."""
    with tempfile.TemporaryDirectory(prefix="asynccommit-bench-") as scratch:
        table = parse_url(scratch)
        size = _begin(table, total)
        gc.collect()
        before = memory("VmRSS")
        submit(_compact(table))
        growth = memory("VmHWM") - before
    return {
        "entries": total,
        "log_megabytes": size / 1e6,
        "peak_growth_megabytes": growth,
        "bytes_an_entry": growth * 1e6 / total,
    }


def memory(field: str) -> float:
    """Return resident memory in MB: as of now (``VmRSS``) or its peak (``VmHWM``)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise RuntimeError(f"the system does not say {field}")


def _begin(table: Address, total: int) -> int:
    """Leave a compact file of so many entries; a process that grew for it would tell nothing."""
    folder = Path(table.path) / FOLDER
    folder.mkdir()
    with (folder / "0.compact").open("wb") as file:
        file.write(LogFileWriter().data())
        for number in range(total):
            name = f"part-00000-91380a83-c55c-4431-ad3b-{number:012d}.c000.snappy.parquet"
            place = table.child(f"day={number % 30}", name)
            entry = SinkFile(sink_uri(place), 480, 1_795_224_376_616)
            file.write(LogFileWriter().add_all([entry]).data()[2:])
    return (folder / "0.compact").stat().st_size


async def _compact(table: Address) -> None:
    store = LocalStore()
    try:
        await SinkLog(store, table, SinkLogSettings(interval=1)).add(1, [])
    finally:
        await store.aclose()


if __name__ == "__main__":
    print(json.dumps(measure(QUICK if sys.argv[1] == "quick" else FULL)))

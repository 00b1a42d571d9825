"""What was measured of sink logs, as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.sink import compaction, queries

_KINDS = {
    "add_ms": "add, between compactions",
    "latest_ms": "newest batch",
    "compact_cpu_us_an_entry": "compaction, CPU an entry",
    "read_cpu_us_an_entry": "read of all, CPU an entry",
}


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "Streaming sink log, local disk: first and last tenth of the batches"
    if "batches" in result:
        yield from _batches(result["batches"])
    if "memory" in result:
        found = result["memory"]
        yield (
            f"  compaction of {found['entries']:,} entries ({found['log_megabytes']:.0f} MB): "
            f"{found['peak_growth_megabytes']:.0f} MB more at the peak, "
            f"{found['bytes_an_entry']:.0f} bytes an entry"
        )
    if "queries" in result:
        yield from queries.lines(result["queries"])
    if "compaction" in result:
        yield from compaction.lines(result["compaction"])


def _batches(found: Mapping[str, Any]) -> Iterator[str]:
    first, last = found["parts"][0], found["parts"][-1]
    yield f"  {'':28} {'first':>10} {'last':>10} {'ratio':>7}"
    for key, name in _KINDS.items():
        unit = "ms" if key.endswith("_ms") else "us"
        one, other = first[key], last[key]
        yield f"  {name:28} {one:7.2f} {unit} {other:7.2f} {unit} {other / one:6.2f}x"
    yield (
        f"  {found['batches']:,} batches leave {found['log_files_left']} files of the log; "
        f"a read of {last['entries']:,} entries takes {last['read_cpu_ms']:.0f} ms of CPU"
    )

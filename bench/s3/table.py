"""What was measured on S3, as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench.s3 import small


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of all rows that were measured."""
    for row, text in _ROWS.items():
        if row in result:
            yield from text(result[row])


def _complete(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"CPU of the client for one upload completed, against {found['server']} in another "
        f"process, {found['in_flight']} in flight, {found['rounds']} rounds of "
        f"{found['uploads']:,} (others a tenth), turn by turn"
    )
    yield f"  {'':30}" + "".join(f"{word:>13}" for word in ("best", "median", "to ours"))
    for name, best in found["best"].items():
        middle, times = found["median"][name], found["times_ours"][name]
        cells = (f"{best:,.1f} us", f"{middle:,.1f} us", f"{times:.2f}x")
        yield f"  {name:30}" + "".join(f"{cell:>13}" for cell in cells)
    yield f"  target: aiobotocore >= {found['target']:.1f}x"


def _moto(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Completing {found['uploads']:,} uploads on moto, {found['in_flight']} in flight, median "
        f"of {found['rounds']}: moto answers one request at a time, whoever asks"
    )
    yield f"  {'':30}" + "".join(f"{word:>13}" for word in ("wall", "client CPU", "to ours"))
    for name, seconds in found["seconds"].items():
        cells = (
            f"{seconds:.2f} s",
            f"{found['cpu_us'][name]:,.0f} us",
            f"{found['times_ours'][name]:.2f}x",
        )
        yield f"  {name:30}" + "".join(f"{cell:>13}" for cell in cells)


def _memory(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"A task that streams {found['bytes'] / 1e9:.1f} GB in parts of "
        f"{found['part_bytes'] / 2**20:.0f} MiB, {found['in_flight']} in flight"
    )
    yield (
        f"  most memory above the start: {found['peak_bytes'] / 2**20:,.0f} MiB; parts in flight "
        f"are {found['bound_bytes'] / 2**20:,.0f} MiB; {found['seconds']:.1f} s"
    )


def _flat(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Job commits of uploads, {found['files_of_a_task']} files a task, on a bucket that keeps "
        "nothing, each in a process of its own"
    )
    for one in found["commits"]:
        yield (
            f"  {one['files']:>9,} files: {one['peak_bytes'] / 2**20:,.0f} MiB at most above the "
            f"start; {one['seconds']:.1f} s"
        )
    yield (
        f"  memory of {found['times']} times the files: {found['ratio']:.2f}x  "
        f"target <= {found['target']:.1f}x"
    )


_ROWS: dict[str, Callable[[Any], Iterator[str]]] = {
    "complete": _complete,
    "moto": _moto,
    "memory": _memory,
    "flat": _flat,
    "small": small.lines,
}

"""What was measured on Google Cloud Storage, as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of all rows that were measured."""
    for row, text in _ROWS.items():
        if row in result:
            yield from text(result[row])


def _commit(found: dict[str, Any]) -> Iterator[str]:
    yield from _commits(found, "20 ms a response, 2,000 writes/s; others by hand, without records")
    target = found["requests_target"]
    yield (
        "  ours is: how many times as fast ours is on a flat bucket, by the whole job and by the "
        "moving alone; of reqs: what it sends to move the files, as a share of theirs"
    )
    yield f"  targets: > 1x by moving; <= {target:.2f}x of the requests of copy + delete"


def _ramp(found: dict[str, Any]) -> Iterator[str]:
    yield from _commits(found, "20 ms a response, and Google's rule about growing rates")


def _nolimit(found: dict[str, Any]) -> Iterator[str]:
    yield from _commits(found, "no limit: what engine and emulator can do, no promise for GCS")


def _commits(found: dict[str, Any], how: str) -> Iterator[str]:
    files = found["tasks"] * found["files"]
    yield (
        f"Job commit on an emulated bucket, {files:,} files of {found['tasks']} tasks in "
        f"{found['partitions']} partitions, turn by turn; {how}"
    )
    rounds = len(next(iter(found["rounds"].values()))) - 1
    states = {"first": "first of a process", "later": f"later, median of {rounds}"}
    for state, title in states.items():
        yield f"  {title:26} {'ramp: client, bucket':22}" + "".join(f"{_:>10}" for _ in _HEAD)
        for name, one in found[state].items():
            cells = "".join(f"{cell:>10}" for cell in _cells(one, found["ratios"][state][name]))
            yield f"    {name:24} {found['ramp'][name]:22}{cells}"


_HEAD = (
    *("wall", "files/s", "moved/s", "requests", "to move", "refused", "CPU"),
    *("ours is", "by moving", "of reqs"),
)


def _cells(one: Mapping[str, float], ratio: Mapping[str, float]) -> Iterator[str]:
    yield f"{one['seconds']:.2f} s"
    yield f"{one['files_per_second']:,.0f}"
    yield f"{one['moved_per_second']:,.0f}"
    yield f"{one['requests']:,.0f}"
    yield f"{one['moving']:,.0f}"
    yield f"{one['refused']:,.0f}"
    yield f"{one['cpu']:.2f} s"
    yield f"{ratio['speed']:.2f}x"
    yield f"{ratio['moving_speed']:.2f}x"
    yield f"{ratio['moving_requests']:.2f}x"


def _cleanup(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Deleting {found['files']:,} files, {found['latency'] * 1000:.0f} ms a response, "
        f"{found['in_flight']} requests in flight, median of {found['rounds']}; client's ramp off"
    )
    head = ("files/s", "wall", "requests", "refused", "client CPU", "server CPU")
    for setting, sizes in found["settings"].items():
        yield f"  {setting:26}" + "".join(f"{word:>13}" for word in head)
        for size, one in sizes.items():
            cells = (
                f"{one['per_second']:,.0f}",
                f"{one['seconds']:.2f} s",
                f"{one['requests']:,.0f}",
                f"{one['refused']:,.0f}",
                f"{one['cpu_us']:.1f} us",
                f"{one['server_cpu_us']:.1f} us",
            )
            yield f"    {f'{size} a request':24}" + "".join(f"{cell:>13}" for cell in cells)


def _cpu(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"CPU of the client for one file moved, against {found['server']} in another process, "
        f"{found['in_flight']} in flight, {found['rounds']} rounds of {found['files']:,} (others "
        "a tenth), turn by turn; no limit and no ramp"
    )
    yield f"  {'':30}" + "".join(f"{word:>13}" for word in ("best", "median", "to ours"))
    for name, best in found["best"].items():
        middle, times = found["median"][name], found["times_ours"][name]
        cells = (f"{best:,.1f} us", f"{middle:,.1f} us", f"{times:.2f}x")
        yield f"  {name:30}" + "".join(f"{cell:>13}" for cell in cells)


_ROWS: dict[str, Callable[[Any], Iterator[str]]] = {
    "commit": _commit,
    "ramp": _ramp,
    "nolimit": _nolimit,
    "cleanup": _cleanup,
    "cpu": _cpu,
}

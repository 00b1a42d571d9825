"""Bulk renames without a job: ours beside adlfs and gcsfs, at a limit, and in memory.

Each contender runs in a process of its own against the emulator in another one. Files are renamed
and not only asked for: the service is checked after every round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench import trees
from bench.child import Child

ROWS = ("adls", "gcs", "limit", "memory")
FULL = trees.Shape(tasks=200, files=100, partitions=10)
QUICK = trees.Shape(tasks=20, files=100, partitions=10)
LIMIT = 2_000
MILLIONS = 10_000_000

_CLIENT = "bench.bulk.client"
_PEERS = {"adls": "adlfs", "gcs": "gcsfs"}
_GOALS = {"adls": 10.0, "gcs": 5.0}


def run(rows: Sequence[str] = ROWS, *, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure ``rows``; return what each of them found."""
    shape = QUICK if quick else FULL
    measure: dict[str, Callable[[], Any]] = {
        "adls": lambda: _beside("adls", shape, 2 if quick else 3),
        "gcs": lambda: _beside("gcs", shape, 2 if quick else 5),
        "limit": lambda: _at_limit(shape),
        "memory": lambda: _memory(MILLIONS // 100 if quick else MILLIONS),
    }
    found = {}
    for row in ROWS:
        if row in rows:
            say(f"bulk-{row}")
            found[row] = measure[row]()
    return found


def _beside(kind: str, shape: trees.Shape, rounds: int) -> dict[str, Any]:
    """Measure ours and a peer, turn by turn."""
    names = ("ours", _PEERS[kind])
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with ExitStack() as running:
        service = running.enter_context(Child(f"bench.{kind}.service"))
        clients = {name: running.enter_context(Child(_CLIENT)) for name in names}
        for number in range(rounds):
            for name in names if number % 2 else names[::-1]:
                taken[name].append(_once(service, clients[name], kind, name, shape))
    middle = {
        name: {key: median(row[key] for row in rows) for key in ("seconds", "cpu")}
        for name, rows in taken.items()
    }
    ours, peer = (middle[name] for name in names)
    return {
        "files": shape.total,
        "rounds": rounds,
        "median": middle,
        "times_as_fast": peer["seconds"] / ours["seconds"],
        "times_less_cpu": peer["cpu"] / ours["cpu"],
        "goal": _GOALS[kind],
    }


def _once(
    service: Child, client: Child, kind: str, name: str, shape: trees.Shape
) -> dict[str, Any]:
    service.ask("reset" if kind == "adls" else "make")
    service.ask("arrange", tasks=shape.tasks, files=shape.files, partitions=shape.partitions)
    host = service.ask("host")
    row: dict[str, Any] = client.ask(
        "move",
        kind=kind,
        name=name,
        host=host,
        shape=[shape.tasks, shape.files, shape.partitions],
    )
    return row


def _at_limit(shape: trees.Shape) -> dict[str, Any]:
    """Measure how near to a limit of the account a move comes, once its rate is known."""
    with Child("bench.adls.service") as service, Child(_CLIENT) as client:
        service.ask("reset")
        service.ask("arrange", tasks=shape.tasks, files=shape.files, partitions=shape.partitions)
        service.ask("weather", climate={"limit": {"rate": LIMIT, "burst": LIMIT // 10}})
        row = client.ask(
            "move",
            kind="adls",
            name="ours",
            host=service.ask("host"),
            shape=[shape.tasks, shape.files, shape.partitions],
            rate=LIMIT,
        )
    return {
        "files": shape.total,
        "limit": LIMIT,
        "requests_per_second": row["requests"] / row["seconds"],
        "share": row["requests"] / row["seconds"] / LIMIT,
        "refused_share": row["refused"] / row["requests"],
    }


def _memory(count: int) -> dict[str, Any]:
    with Child(_CLIENT) as client:
        row: dict[str, Any] = client.ask("renamed_nowhere", count=count)
        return row


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the table."""
    for kind, peer in _PEERS.items():
        if row := result.get(kind):
            yield f"Renaming {row['files']:,} files on the emulator of {kind}, median of rounds"
            for name, values in row["median"].items():
                each = values["cpu"] / row["files"] * 1e6
                yield f"  {name:8} {values['seconds']:8.2f} s  {each:8.0f} us of CPU a file"
            yield (
                f"  ours is {row['times_as_fast']:.1f}x as fast as {peer} (goal {row['goal']:.0f}) "
                f"with {row['times_less_cpu']:.1f}x less CPU"
            )
    if row := result.get("limit"):
        yield (
            f"At a limit of {row['limit']:,} requests/s: {row['requests_per_second']:,.0f}, "
            f"{row['share']:.1%} of it (goal 98%), {row['refused_share']:.2%} refused (goal 0.5%)"
        )
    if row := result.get("memory"):
        yield (
            f"{row['pairs']:,} pairs from a generator over a store that does nothing: "
            f"{row['peak_growth_megabytes']:.0f} MB more (goal 150), {row['seconds']:.0f} s, "
            f"{row['microseconds']:.1f} us a pair"
        )

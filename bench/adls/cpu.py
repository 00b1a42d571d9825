"""What a rename costs the client, and how many a second one process sends over TLS.

The server answers 201 to everything from a process of its own, so nothing is left but the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.adls.senders import SENDERS
from bench.child import Child
from bench.meter import cpu_of
from bench.null import Null

OURS, AIOHTTP, SDK = "ours", "ours, aiohttp", "azure sdk"
BY_SDK = "ours, azure sdk"
WORKERS = 64
TARGETS = {
    "cpu_us": 60.0,
    "loop_us": 45.0,
    "times_sdk": 20.0,
    "times_aiohttp": 1.5,
    "times_transport": 2.0,
}
TLS_TARGET = 12_000.0
_SLOW = {SDK: 20, BY_SDK: 10}
"""Senders of which fewer requests are enough: name -> by how much."""

_MODULE = "bench.adls.client"
_WARM = 8


def cost(null: Null, *, quick: bool) -> dict[str, Any]:
    """Measure every sender turn by turn, each in its own process; returns medians and ratios.

    Rounds are short and many, and the best is told beside the median: whatever else runs on the
    machine shares its caches, and that counts as CPU time of ours.
    """
    count, rounds = (2_000, 8) if quick else (4_000, 25)
    with ExitStack() as running:
        clients = {name: running.enter_context(Child(_MODULE)) for name in SENDERS}
        for name, client in clients.items():
            own = count // _SLOW.get(name, 1)
            client.ask("open_sender", name=name, host=null.http, count=own)
            # Connections are made, and the rate that is found out by and by is high enough.
            for _ in range(_WARM):
                client.ask("rename", workers=WORKERS)
        taken: dict[str, list[dict[str, Any]]] = {name: [] for name in clients}
        for number in range(rounds):
            for name in _turned(list(clients), number):
                taken[name].append(clients[name].ask("rename", workers=WORKERS))
        for client in clients.values():
            client.ask("close")
    best = {name: _each(values, min) for name, values in taken.items()}
    return {
        "server": null.name,
        "renames": count,
        "workers": WORKERS,
        "rounds": rounds,
        "best": best,
        "median": {name: _each(values, median) for name, values in taken.items()},
        "times_sdk": best[SDK]["cpu_us"] / best[OURS]["cpu_us"],
        "times_transport": best["commit"]["cpu_us"] / best["transport alone"]["cpu_us"],
        "times_aiohttp": best[AIOHTTP]["cpu_us"] / best[OURS]["cpu_us"],
        "targets": TARGETS,
    }


def throughput(null: Null, *, quick: bool) -> dict[str, Any]:
    """Send renames over TLS for some seconds; returns how many a second."""
    count, rounds = (10_000, 4) if quick else (30_000, 12)
    with Child(_MODULE) as client:
        client.ask("open_store", host=null.https, ca_file=null.ca_file, count=count)
        for _ in range(_WARM):
            client.ask("rename", workers=2 * WORKERS)
        before = cpu_of(null.pid)
        taken = [client.ask("rename", workers=2 * WORKERS) for _ in range(rounds)]
        server = (cpu_of(null.pid) - before) / (count * rounds) * 1e6
        client.ask("close")
    return {
        "server": null.name,
        "renames": count,
        **_each(taken, median),
        "best_per_second": max(one["per_second"] for one in taken),
        "rounds_per_second": [one["per_second"] for one in taken],
        "server_cpu_us": server,
        "target_per_second": TLS_TARGET,
    }


def _turned(names: list[str], number: int) -> Iterable[str]:
    turn = number % len(names)
    return names[turn:] + names[:turn]


def _each(values: list[dict[str, Any]], of: Callable[[Iterable[float]], float]) -> dict[str, float]:
    return {key: of([one[key] for one in values]) for key in ("cpu_us", "loop_us", "per_second")}

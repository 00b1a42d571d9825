"""What completing an upload costs the client: ours, its layers, and clients of others.

The server says the same to everything, from a process of its own, so nothing is left but the
client: signing, sending, and reading the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.child import Child
from bench.null import Null
from bench.s3.account import WORKERS
from bench.s3.completers import COMPLETERS, OURS

CLIENT = "bench.s3.client"
TARGET = 2.0
"""How many times as much aiobotocore is to need."""

_OTHERS = ("aiobotocore", "botocore, 64 threads")
_TENTH = 10
_WARM = 2


def cost(null: Null, *, quick: bool) -> dict[str, Any]:
    """Measure turn by turn, each in its own process; returns best, median and ratios."""
    count, rounds = (2_000, 3) if quick else (20_000, 5)
    with ExitStack() as running:
        clients = {name: running.enter_context(Child(CLIENT)) for name in COMPLETERS}
        for name, client in clients.items():
            own = count // _TENTH if name in _OTHERS else count
            client.ask("open_completer", name=name, host=null.http, count=own)
            for _ in range(_WARM):
                client.ask("complete")
        taken: dict[str, list[dict[str, Any]]] = {name: [] for name in clients}
        for number in range(rounds):
            for name in _turned(list(clients), number):
                taken[name].append(clients[name].ask("complete"))
        for client in clients.values():
            client.ask("close")
    best = _each(taken, min)
    return {
        "server": null.name,
        "uploads": count,
        "in_flight": WORKERS,
        "rounds": rounds,
        "best": best,
        "median": _each(taken, median),
        "times_ours": {name: cpu / best[OURS] for name, cpu in best.items()},
        "target": TARGET,
    }


def _turned(names: list[str], number: int) -> Iterable[str]:
    turn = number % len(names)
    return names[turn:] + names[:turn]


def _each(
    taken: dict[str, list[dict[str, Any]]], of: Callable[[Iterable[float]], float]
) -> dict[str, float]:
    return {name: of([one["cpu_us"] for one in values]) for name, values in taken.items()}

"""What moving a file costs the client: ours, its layers one by one, and clients of others.

The server says the same to everything, from a process of its own, so nothing is left but the
client. There is no limit and no ramp, on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.child import Child
from bench.gcs.account import WORKERS
from bench.gcs.movers import MOVERS, OURS
from bench.gcs.peers import PEERS
from bench.null import Null

_SLOW = dict.fromkeys(PEERS, 10)
"""Clients of which fewer requests are enough: name -> by how much."""
_CLIENT = "bench.gcs.client"
_WARM = 4


def cost(null: Null, *, quick: bool) -> dict[str, Any]:
    """Measure turn by turn, each in its own process; returns best, median and ratios.

    Rounds are short and many, and the best is told beside the median: whatever else runs on the
    machine shares its caches, and that counts as CPU time of ours.
    """
    count, rounds = (2_000, 5) if quick else (4_000, 20)
    with ExitStack() as running:
        clients = {name: running.enter_context(Child(_CLIENT)) for name in MOVERS}
        for name, client in clients.items():
            own = count // _SLOW.get(name, 1)
            client.ask("open_mover", name=name, host=null.http, count=own)
            # Connections are made, and the rate that is found out by and by is high enough.
            for _ in range(_WARM):
                client.ask("move")
        taken: dict[str, list[dict[str, Any]]] = {name: [] for name in clients}
        for number in range(rounds):
            for name in _turned(list(clients), number):
                taken[name].append(clients[name].ask("move"))
        for client in clients.values():
            client.ask("close")
    best, middle = _each(taken, min), _each(taken, median)
    return {
        "server": null.name,
        "files": count,
        "in_flight": WORKERS,
        "rounds": rounds,
        "best": best,
        "median": middle,
        "times_ours": {name: cpu / best[OURS] for name, cpu in best.items()},
    }


def _turned(names: list[str], number: int) -> Iterable[str]:
    turn = number % len(names)
    return names[turn:] + names[:turn]


def _each(
    taken: dict[str, list[dict[str, Any]]], of: Callable[[Iterable[float]], float]
) -> dict[str, float]:
    return {name: of([one["cpu_us"] for one in values]) for name, values in taken.items()}

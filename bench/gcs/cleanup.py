"""Deleting what a job leaves: many files in one request against one request a file.

Through the whole stack of our store, so every file of a batch pays for itself where there is a
limit: what a batch saves is requests, latency and CPU, not quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from bench.child import Child

SIZES = (100, 25, 5, 1)
IN_FLIGHT = 64
LATENCY = 0.020
SETTINGS: Mapping[str, Mapping[str, float]] = {
    "2,000 writes/s": {"writes": 2_000.0, "name_interval": 1.0},
    "no limit": {},
}
"""What the bucket takes; the client's ramp is off in both."""

_FOLDER = "leftover"
_CLIENT = "bench.gcs.client"
_Row = dict[str, float]


def run(service: Child, *, quick: bool) -> dict[str, Any]:
    """Delete a folder of files in each way, turn by turn; returns medians."""
    count, rounds = (2_000, 2) if quick else (10_000, 3)
    found: dict[str, dict[str, _Row]] = {}
    for setting, quotas in SETTINGS.items():
        rows: dict[int, list[_Row]] = {size: [] for size in SIZES}
        with Child(_CLIENT) as client:
            _once(service, client, count, quotas, SIZES[0])  # finds out what the bucket takes
            for _ in range(rounds):
                for size in SIZES:
                    rows[size].append(_once(service, client, count, quotas, size))
        found[setting] = {str(size): _medians(taken) for size, taken in rows.items()}
    return {
        "files": count,
        "rounds": rounds,
        "in_flight": IN_FLIGHT,
        "latency": LATENCY,
        "settings": found,
    }


def _once(
    service: Child, client: Child, count: int, quotas: Mapping[str, float], size: int
) -> _Row:
    service.ask("make", quotas=dict(quotas), latency=LATENCY)
    service.ask("fill", folder=_FOLDER, count=count)
    before = service.ask("stats")
    row: _Row = client.ask(
        "delete", host=service.ask("host"), folder=_FOLDER, size=size, in_flight=IN_FLIGHT
    )
    after = service.ask("stats")
    service.ask("holds", expected=[])
    return {
        "seconds": row["seconds"],
        "per_second": row["per_second"],
        "cpu_us": row["cpu_us"],
        "requests": after["requests"] - before["requests"],
        "refused": after["refused"],
        "server_cpu_us": (after["cpu"] - before["cpu"]) / count * 1e6,
    }


def _medians(rows: list[_Row]) -> _Row:
    return {key: median(row[key] for row in rows) for key in rows[0]}

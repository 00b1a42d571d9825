"""What the engine costs for each file: a job commit over a store that does nothing."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from asynccommit.runtime.loop_thread import submit
from bench import noop, trees

FULL = trees.Shape(tasks=200, files=100, partitions=10)
QUICK = trees.Shape(tasks=50, files=100, partitions=10)
TARGET_MICROSECONDS = 10.0


def run(*, quick: bool) -> dict[str, Any]:
    """Measure whole commits and single requests; returns microseconds, medians of all rounds."""
    shape, rounds = (QUICK, 3) if quick else (FULL, 7)
    apart, stages = _commits(noop.NoopStore(shape, keep=True), rounds)
    together, _ = _commits(noop.NoopStore(shape, keep=True, together=True), rounds)
    return {
        "files": shape.total,
        "tasks": shape.tasks,
        "microseconds_per_file": median(together),
        "rounds_microseconds_per_file": together,
        "microseconds_per_file_one_by_one": median(apart),
        "rounds_microseconds_per_file_one_by_one": apart,
        "stages_microseconds_per_file": stages,
        "target_microseconds_per_file": TARGET_MICROSECONDS,
        "wrappers_microseconds_per_request": submit(_wrappers(1_000 if quick else 50_000)),
    }


def _commits(store: noop.NoopStore, rounds: int) -> tuple[list[float], dict[str, float]]:
    """Return microseconds a file of every commit, and medians of each stage's."""
    each = 1e6 / store.shape.total
    totals: list[float] = []
    stages: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        gc.collect()
        begin = time.perf_counter()
        report = submit(noop.commit(store))
        elapsed = time.perf_counter() - begin
        if number == 0:
            continue  # It pays for imports and caches.
        totals.append(elapsed * each)
        for stage, seconds in report.stages.items():
            stages.setdefault(stage, []).append(seconds * each)
    return totals, {stage: median(values) for stage, values in stages.items()}


async def _wrappers(count: int) -> float:
    """Return what the whole stack of wrappers adds to one request."""
    store = noop.NoopStore(trees.Shape(1, 1, 1), keep=False)
    stack = noop.wrapped(store)
    bare = await _time(lambda: store.rename("/a", "/b"), count)
    return (await _time(lambda: stack.rename("/a", "/b"), count) - bare) / count * 1e6


async def _time(request: Callable[[], Awaitable[object]], count: int) -> float:
    for _ in range(count // 10):
        await request()
    begin = time.perf_counter()
    for _ in range(count):
        await request()
    return time.perf_counter() - begin

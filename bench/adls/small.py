"""Job commit of small jobs at 30 ms a response: ours against Hadoop's manifest committer.

Nine Spark jobs in ten write fewer than 200 files. The caller of ours may go on when readers see the
whole job; the seconds of the clean-up are counted beside that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bench import trees
from bench.adls.commit import Bench, medians_of
from bench.child import Child
from tests.support import abfs

LATENCY = 0.03
SHAPES = (
    trees.Shape(tasks=1, files=1, partitions=1),
    trees.Shape(tasks=4, files=5, partitions=5),
    trees.Shape(tasks=8, files=25, partitions=10),
)
TARGETS = (0.6, 0.6, 0.5)
"""The part of Hadoop's time that the caller of ours may wait, by shape."""


def run(service: Child, *, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure each shape turn by turn; return medians, or why there is no Hadoop."""
    rounds, warm = (3, 1) if quick else (9, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's, about pandas
        why = abfs.why_not()
    found = []
    for shape, target in zip(SHAPES, TARGETS, strict=True):
        bench = Bench(service, shape, say, alone=why is not None)
        bench.climate = {"latency": {"model": "fixed", "seconds": LATENCY}}
        rows = bench.later(warm, rounds)
        rows.pop("hadoop, defaults", None)
        found.append({**asdict(shape), "median": medians_of(rows), "target": target})
    return {"latency": LATENCY, "rounds": rounds, "shapes": found, "skipped": why}

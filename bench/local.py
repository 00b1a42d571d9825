"""Job commit on the local disk: ours, Hadoop's committers and bare loops, turn by turn."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.results import JobReport
from bench import peers, trees
from tests.support.hadoop import Hadoop

FULL = trees.Shape(tasks=200, files=100, partitions=10)
QUICK = trees.Shape(tasks=50, files=40, partitions=10)
RECORD_STAGES = ("job_stage_save_commit_record", "job_stage_decide_outcome")
RECORD_TARGET = 0.05
TARGETS = {"hadoop_manifest": 3.0, "rename_loop": 0.4}


def run(*, quick: bool, folder: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all contenders in one run; returns medians, all rounds, and ratios to ours."""
    shape, rounds = (QUICK, 3) if quick else (FULL, 5)
    reports: list[JobReport] = []
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch,
        Hadoop.start("-Xms1g", "-Xmx2g") as hadoop,
    ):
        contenders = [
            peers.ours(reports),
            peers.ours_trusting(),
            peers.ours_v1(),
            peers.hadoop_manifest(hadoop),
            peers.hadoop_v1(hadoop),
            peers.bare_calls(),
            peers.bare_guarded(),
            peers.rename_loop(),
            peers.rename_executor(),
        ]
        trees.make_pool(f"{scratch}/pool", shape)
        _round(contenders, shape, scratch)  # Warms the JVM and the page cache; not counted.
        seconds: dict[str, list[float]] = {one.name: [] for one in contenders}
        for number in range(rounds):
            turn = number % len(contenders)
            timed = _round(contenders[turn:] + contenders[:turn], shape, scratch)
            for name, value in timed.items():
                seconds[name].append(value)
            say(f"round {number + 1} of {rounds}: " + _line(timed))
        filesystem = filesystem_of(scratch)
    return {
        **asdict(shape),
        "files": shape.total,
        "filesystem": filesystem,
        **_summary(seconds, shape),
        "record_share": median(_record_share(report) for report in reports[1:]),
        "record_target": RECORD_TARGET,
    }


def _record_share(report: JobReport) -> float:
    """Return the part of a commit that plan, record and outcome take."""
    return sum(report.stages[name] for name in RECORD_STAGES) / report.seconds


def _summary(seconds: dict[str, list[float]], shape: trees.Shape) -> dict[str, Any]:
    medians = {name: median(values) for name, values in seconds.items()}
    bests = {name: min(values) for name, values in seconds.items()}
    return {
        "rounds_seconds": seconds,
        "median_seconds": medians,
        "best_seconds": bests,
        "files_per_second": {name: shape.total / value for name, value in medians.items()},
        "ours_times_as_fast_as": _ratios(medians, "ours"),
        "ours_times_as_fast_as_by_best": _ratios(bests, "ours"),
        "ours_v1_times_as_fast_as": _ratios(medians, "ours_v1"),
        "bare_calls_times_as_fast_as": _ratios(medians, "bare_calls"),
        "bare_calls_times_as_fast_as_by_best": _ratios(bests, "bare_calls"),
        "targets": TARGETS,
    }


def _ratios(seconds: dict[str, float], of: str) -> dict[str, float]:
    return {name: value / seconds[of] for name, value in seconds.items()}


def _round(
    contenders: Sequence[peers.Contender], shape: trees.Shape, scratch: str
) -> dict[str, float]:
    return {one.name: _once(one, shape, scratch) for one in contenders}


def _once(contender: peers.Contender, shape: trees.Shape, scratch: str) -> float:
    """Arrange the tree, time the commit, check the output, give the files back."""
    pool, dest = f"{scratch}/pool", f"{scratch}/table"
    os.mkdir(dest)
    contender.arrange(pool, dest, shape)
    timed = contender.prepare(dest, shape)
    # Else a contender that syncs one file would pay for writing out the whole tree.
    os.sync()
    gc.collect()
    begin = time.perf_counter()
    timed()
    elapsed = time.perf_counter() - begin
    trees.check(dest, shape, committed=contender.committed)
    trees.give_back(pool, dest, shape)
    return elapsed


def filesystem_of(path: str) -> str:
    """Return the type of the filesystem that holds ``path``, where the system tells."""
    mounts: dict[Path, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _device, point, kind, *_rest = line.split()
            mounts[Path(point)] = kind
    real = Path(path).resolve()
    return next((mounts[place] for place in real.parents if place in mounts), "unknown")


def _line(timed: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f} s" for name, value in sorted(timed.items()))

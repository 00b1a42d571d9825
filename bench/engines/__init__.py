"""Engines' own writers against ours: the same rows, turn by turn, commit included.

On a local disk 10 million rows go to 200 partitions; on an emulated account, whose every response
takes 20 ms, a tenth of them, by pyarrow with adlfs and with ours. CPU time is that of all threads
of this process; it says what a writer costs where the disk or a neighbour is the limit.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench.engines.writers import LOCAL, Pair, on_adls, rows_of
from tests.support.engines import table_of

TARGETS = {"local": 1.1, "adls": 1.0}
"""Ours may take so many times what the engine's own writer takes."""
PARTITIONS = 200
LATENCY = 0.02
ROWS = ("local", "adls")


def run(
    asked: Any, *, quick: bool, folder: str | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure each engine; returns medians, all rounds, and the ratios.

    Args:
        asked: some of ``local`` and ``adls``.
        quick: a tenth of the rows, and fewer rounds.
        folder: where the tables are made.
        say: is called with each result.
    """
    count, rounds = (1_000_000, 3) if quick else (10_000_000, 5)
    result: dict[str, Any] = {"rows": count, "rounds": rounds, "partitions": PARTITIONS}
    with tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch:
        if "local" in asked:
            rows = rows_of(count, PARTITIONS)
            result["local"] = {
                name: _compare(pair, rows, Path(scratch), rounds, name, "local", say)
                for name, pair in LOCAL.items()
            }
        if "adls" in asked:
            with on_adls(LATENCY) as pair:
                rows = rows_of(count // 10, PARTITIONS)
                measured = _compare(pair, rows, None, rounds, "arrow", "adls", say)
                result["adls"] = {"arrow": measured}
    return result


def _compare(
    pair: Pair,
    rows: Any,
    folder: Path | None,
    rounds: int,
    name: str,
    kind: str,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Time both writers of a pair in turn, after a round that is not counted."""
    seconds: dict[str, list[float]] = {"own": [], "ours": []}
    cpu: dict[str, list[float]] = {"own": [], "ours": []}
    writers: Mapping[str, Any] = {"own": pair.own, "ours": pair.ours}
    for number in range(rounds + 1):
        for each in sorted(writers, reverse=bool(number % 2)):
            dest = f"{folder or 'bench'}/{name}-{each}-{number}"
            used, begun = time.process_time(), time.perf_counter()
            writers[each](rows, dest)
            took, used = time.perf_counter() - begun, time.process_time() - used
            if folder is not None:
                _check(Path(dest), len(rows))
                shutil.rmtree(dest)
            if number:
                seconds[each].append(took)
                cpu[each].append(used)
    medians = {each: median(taken) for each, taken in seconds.items()}
    times = medians["ours"] / medians["own"]
    best = min(seconds["ours"]) / min(seconds["own"])
    by_cpu = median(cpu["ours"]) / median(cpu["own"])
    say(f"{name} ({kind}): {times:.2f} times its own writer, {by_cpu:.2f} by CPU time")
    result = {"seconds": seconds, "cpu": cpu, "medians": medians}
    return {**result, "times": times, "times_by_best": best, "times_by_cpu": by_cpu}


def _check(dest: Path, count: int) -> None:
    found = len(table_of(dest))
    if found != count:
        raise AssertionError(f"{dest}: {found} rows instead of {count}")


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield what was measured, as text for people."""
    yield (
        f"Engines' own writers and ours, {result['rows']:,} rows to {result['partitions']} "
        f"partitions (a tenth of the rows on ADLS, {LATENCY * 1000:.0f} ms a response), commit "
        f"included, {result['rounds']} rounds"
    )
    for kind, target in TARGETS.items():
        for name, one in result.get(kind, {}).items():
            own, ours = one["medians"]["own"], one["medians"]["ours"]
            yield (
                f"  {kind:6} {name:8} own {own:6.2f} s  ours {ours:6.2f} s: {one['times']:.2f} "
                f"times ({one['times_by_best']:.2f} by best, {one['times_by_cpu']:.2f} by CPU; "
                f"target <= {target})"
            )

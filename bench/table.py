"""What was measured, as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def local(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the comparison on the local disk."""
    yield (
        f"Job commit, {result['files']:,} one-byte files of {result['tasks']} tasks in "
        f"{result['partitions']} partitions on {result['filesystem']}, turn by turn, "
        f"{len(result['rounds_seconds']['ours'])} rounds"
    )
    yield f"  {'':17} {'median':>9} {'best':>9} {'files/s':>9} {'ours is':>9} {'(best)':>9}  target"
    for name, seconds in sorted(result["median_seconds"].items(), key=lambda item: item[1]):
        target = result["targets"].get(name)
        yield (
            f"  {name:17} {seconds:7.3f} s {result['best_seconds'][name]:7.3f} s "
            f"{result['files_per_second'][name]:9,.0f} "
            f"{result['ours_times_as_fast_as'][name]:8.2f}x "
            f"{result['ours_times_as_fast_as_by_best'][name]:8.2f}x"
            + (f"  >= {target}x" if target else "")
        )
    yield (
        f"  Of ours, plan, commit record and outcome took {result['record_share']:.1%} "
        f"(median; target < {result['record_target']:.0%})"
    )
    yield (
        "  FileOutputCommitter 1: ours_v1 is "
        f"{result['ours_v1_times_as_fast_as']['hadoop_v1']:.2f}x as fast as hadoop_v1"
    )
    possible = result["bare_calls_times_as_fast_as"]["hadoop_manifest"]
    best = result["bare_calls_times_as_fast_as_by_best"]["hadoop_manifest"]
    yield (
        "  What the kernel leaves possible to a committer that renames file by file: bare_calls is "
        f"{possible:.2f}x ({best:.2f}x) as fast as hadoop_manifest"
    )


def overhead(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the engine's own cost."""
    yield f"Engine over a no-op store, {result['files']:,} files of {result['tasks']} tasks"
    whole, apart = result["microseconds_per_file"], result["microseconds_per_file_one_by_one"]
    yield _row("whole commit, a file", whole, "us", "target < 10 us; renames as the local disk's")
    yield _row("whole commit, a file", apart, "us", "target < 10 us; each rename a request, of it")
    for stage, value in result["stages_microseconds_per_file"].items():
        if stage != "committer_commit_job":
            yield _row(f"  {stage}", value, "us")
    yield _row("all wrappers, a request", result["wrappers_microseconds_per_request"], "us")


def memory(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the large job."""
    yield (
        f"{result['files']:,} files of {result['manifests']:,} manifests "
        f"({result['manifest_megabytes']:,.0f} MB) over a no-op store, in a process of its own"
    )
    yield _row("peak memory growth", result["peak_growth_megabytes"], "MB", "target < 200 MB")
    net = result["seconds"] - result["seconds_of_the_bench_itself"]
    yield _row("time of the engine", net, "s ", f"{net / result['files'] * 1e6:.1f} us a file")
    for stage, seconds in result["stages_seconds"].items():
        if seconds >= 0.05 and stage != "committer_commit_job":
            yield _row(f"  {stage}", seconds, "s ")


def _row(name: str, value: float, unit: str, note: str = "") -> str:
    return f"  {name:38} {value:9.2f} {unit}  {note}".rstrip()

"""The goals for ordinary jobs, with what was measured, in one table.

``python -m bench goals`` runs the parts that measure them and ends with this table. Requests and
round trips are exact; seconds and CPU are medians of the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench import write

PARTS = ("requests", "adls-small", "write", "s3-complete", "local")
COMPLETION, BARE = 125, 0.85
"""CPU of a completion on S3 in microseconds; the part of our time that bare calls may take."""
GCS_SECONDS = 0.48


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table, from the results of all parts."""
    yield f"Goals of ordinary jobs{'':38}{'measured':>18}{'goal':>14}"
    for title, measured, goal in (
        *_requests(result["requests"]),
        *_small(result["adls"]["small"]),
        *_write(result["write"]),
        *_rest(result),
    ):
        yield f"  {title:56}{measured:>20}{goal:>14}"


def _requests(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    rows = {row["store"]: row for row in found["rows"] if row["files"] == 1}
    adls, gcs = rows["adls"], rows["gcs"]
    cells = f"{adls['visible']} / {adls['trips']}; {adls['requests']}"
    yield "ADLS, 1 file: round trips to _SUCCESS / all; requests", cells, "9 / 14; 28"
    seconds = [f"{gcs[key] * found['latency']:.2f}" for key in ("visible", "trips")]
    yield "GCS, 1 file: seconds to _SUCCESS / all", " / ".join(seconds), f"{GCS_SECONDS}"
    yield "S3, 1 file: requests of the whole write", str(found["s3_write"]), "55"


def _small(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for shape in found["shapes"]:
        files, ours = shape["tasks"] * shape["files"], shape["median"]["ours"]["returned"]
        hadoop = shape["median"].get("hadoop")
        part = "no Hadoop" if hadoop is None else f"{ours / hadoop['returned']:.2f}"
        title = f"ADLS, {files} file{'s' if files > 1 else ''}: job commit, of Hadoop's time"
        yield title, part, f"{shape['target']}"


def _write(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if found["skipped"]:
        return
    ours, other = found["committers"]["ours"], found["committers"]["hadoop_v1"]
    goal = f"{write.REQUESTS}"
    yield "ADLS, df.write of 1 file: requests", f"{ours['requests']:.0f}", goal
    over = f"{ours['seconds'] - other['seconds']:+.2f} s"
    goal = f"+{write.SECONDS_OVER_V1} s"
    yield "ADLS, df.write of 1 file, beside FileOutputCommitter 1", over, goal
    title = f"ADLS, task commit of {write.PARTITIONS} partitions"
    yield title, f"{ours['task_seconds']:.2f} s", f"{write.TASK_SECONDS} s"


def _rest(result: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    ours = result["s3"]["complete"]["median"]["ours"]
    yield "S3, CPU of a completion", f"{ours:.0f} us", f"{COMPLETION} us"
    medians = result["local"]["median_seconds"]
    for name in ("bare_calls", "bare_guarded"):
        part = f"{medians[name] / medians['ours']:.2f}"
        yield f"20,000 local files: {name} takes of our time", part, f"{BARE}"
    floor = f"{medians['bare_calls'] / medians['bare_guarded']:.2f}"
    yield "  bare_calls takes of the time of bare_guarded", floor, "-"

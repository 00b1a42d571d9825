"""Requests and round trips of small jobs, counted in virtual time at 30 ms a response.

They are the same in every run. ``tests/commit/test_round_trips.py`` fails when one is added.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from asynccommit.simulate.placed import ModelTaskWriter
from asynccommit.simulate.run import World
from asynccommit.simulate.setup import Setup
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import VirtualLoop, run_virtual
from tests.support.round_trips import ANSWER, MeasuredJob, MeasuredUploads

SHAPES = ((1, 1, 1), (20, 4, 5), (200, 8, 10))
"""Files, tasks and partitions of the jobs."""
FILES, DIRECTORIES = 100_000, 1_000
"""A task that fills new directories, which are moved as they are."""
S3_WRITE = 55
TARGETS = {"adls": (28, 14, 9), "gcs": (None, None, 16)}
"""Requests, round trips, and round trips to ``_SUCCESS`` that a job of one file should take."""


@dataclass(frozen=True)
class Row:
    """The cost of one job commit.

    Attributes:
        store: the kind of store.
        files: files of the job.
        requests: requests in all.
        trips: round trips in all, one after the other.
        visible: round trips until ``_SUCCESS`` is visible, when a blocking caller goes on.
    """

    store: str
    files: int
    requests: int
    trips: int
    visible: int


def run() -> dict[str, Any]:
    """Count the requests of every job."""
    rows = []
    for files, tasks, partitions in SHAPES:
        rows.append(_renames("adls", files, MeasuredJob(), tasks, partitions))
        rows += [_bucket(store, files, tasks, partitions) for store in ("gcs", "gcs-hns")]
        rows.append(_renames("s3", files, MeasuredUploads(), tasks, partitions))
    rows.append(_renames("adls", FILES, MeasuredJob(), 1, DIRECTORIES))
    whole = MeasuredUploads()
    run_virtual(whole.run(1, 1, 1))
    order = [row.store for row in rows]
    rows.sort(key=lambda row: (order.index(row.store), row.files))
    return {
        "latency": ANSWER,
        "targets": TARGETS,
        "rows": [asdict(row) for row in rows],
        "s3_write": len(whole.weather.seen),
    }


def _renames(
    store: str, files: int, measured: MeasuredJob | MeasuredUploads, tasks: int, partitions: int
) -> Row:
    cost = run_virtual(measured.run(files, tasks, partitions))
    return Row(store, files, cost.job.requests, cost.job.trips, cost.visible)


def _bucket(store: str, files: int, tasks: int, partitions: int) -> Row:
    setup = Setup(files, tasks, partitions, Climate(latency=Latency(first=ANSWER)), store=store)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(math.inf)) as runner:
        loop = runner.get_loop()
        world = World(setup, loop)
        messages = ModelTaskWriter(world.model, world.layout, setup).all_tasks(lambda _: None)
        visible: list[float] = []

        async def commit() -> None:
            wrapped = world.wrapped()
            try:
                job = world.committer(wrapped)
                await job.commit_job(messages, on_visible=lambda _: visible.append(loop.time()))
            finally:
                await wrapped.aclose()

        begin = loop.time()
        runner.run(commit())
        trips = [round((at - begin) / ANSWER) for at in (loop.time(), *visible)]
    return Row(store, files, sum(world.model.weather.requests.values()), *trips)


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"Requests of a job commit, and round trips of {result['latency'] * 1000:.0f} ms"
    yield f"  {'':8} {'files':>6} {'requests':>9} {'trips':>6} {'to _SUCCESS':>12}  target (1 file)"
    for row in result["rows"]:
        wanted = result["targets"].get(row["store"]) if row["files"] == 1 else None
        yield (
            f"  {row['store']:8} {row['files']:6} {row['requests']:9} {row['trips']:6} "
            f"{row['visible']:12}"
            + ("  " + " / ".join("-" if n is None else str(n) for n in wanted) if wanted else "")
        )
    yield (
        f"  A write of one file to S3 takes {result['s3_write']} requests with setup and task "
        f"(target: {S3_WRITE})"
    )

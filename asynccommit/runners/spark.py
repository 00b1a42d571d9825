"""Executors of Spark, by a session in Python."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from asynccommit.errors import UnsupportedError
from asynccommit.runners.cluster import Cluster
from asynccommit.runners.desk import Parcel, do

_GROUP = "asynccommit"


class SparkWorkers(Cluster):
    """Executors of the Spark application of this program, for a commit.

    Args:
        spark: the session; by default the one that is active.
        workers: number of slices at once; by default that of the executors, at most 4.
    """

    name = "spark"

    def __init__(self, spark: Any = None, workers: int | None = None) -> None:
        super().__init__(workers)
        self._spark = spark
        self._context: Any = None
        self._threads: ThreadPoolExecutor | None = None

    async def connect(self) -> int:
        """See ``Cluster.connect``."""
        pyspark: Any = sys.modules.get("pyspark")  # whoever has a session has imported it
        context = _context_of(self._spark) if self._spark is not None else None
        if context is None and pyspark is not None:
            context = pyspark.SparkContext._active_spark_context
        if context is None:
            raise UnsupportedError("no Spark session is active in this program")
        if re.match(r"local(\[|$)", str(context.master)):
            raise UnsupportedError("Spark runs in one process: name processes instead")
        self._context = context
        return await asyncio.to_thread(_executors, context)

    async def _run(self, parcel: Parcel) -> bytes:
        """See ``Cluster._run``: each parcel is a job of one task."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max(self.workers, 1), "asynccommit-spark")
        loop = asyncio.get_running_loop()
        group = f"{_GROUP}-{id(parcel)}"
        try:
            return await loop.run_in_executor(self._threads, self._collect, parcel, group)
        except asyncio.CancelledError:
            self._context.cancelJobGroup(group)
            raise

    def _collect(self, parcel: Parcel, group: str) -> bytes:
        context = self._context
        context.setJobGroup(group, "asynccommit: rename files of a commit", interruptOnCancel=False)
        rows = context.parallelize([0], 1).mapPartitions(partial(_done, parcel))
        answers: list[bytes] = rows.collect()
        return answers[0]

    async def aclose(self) -> None:
        """See ``Runner.aclose``."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None


def _done(parcel: Parcel, rows: Iterable[int]) -> Iterator[bytes]:
    for _ in rows:
        yield do(parcel)


def _context_of(spark: Any) -> Any:
    """Return the context of a session.

    Raises ``UnsupportedError`` for one of Spark Connect.
    """
    try:
        return spark.sparkContext
    except Exception:
        raise UnsupportedError("a session of Spark Connect runs no tasks of this program") from None


def _executors(context: Any) -> int:
    """Return the number of executors, without the driver."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1

"""The Python Data Source against Spark's own writer: the same rows, in one session, turn by turn.

What is timed is all of the write, from the call to its return: planning, tasks, commit. A third
source takes the rows and drops them: what it takes is Spark's way of bringing rows to Python, below
which no source written in Python can go.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.demo.flights import SCHEMA, find_flights, unpack
from tests.support.spark import ENVIRONMENT, builder

TARGET = 1.3
"""Ours may take so many times what Spark's own writer takes."""
_SYNTHETIC = (
    "id",
    "id % 1000 as key",
    "cast(id as double) / 7 as value",
    "concat('row ', id % 100000) as text",
    "timestamp_micros(1700000000000000 + id * 1000) as moment",
)


def run(*, quick: bool, folder: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure each kind of rows; returns medians, all rounds, and how many times Spark's time.

    Args:
        quick: a tenth of the synthetic rows, and fewer rounds.
        folder: where the tables are made.
        say: is told what was measured.
    """
    rounds, rows = (3, 1_000_000) if quick else (5, 10_000_000)
    result: dict[str, Any] = {"target": TARGET, "rounds": rounds, "kinds": {}}
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch,
        _session(Path(scratch)) as spark,
    ):
        for name, frame, parted in _kinds(spark, Path(scratch), rows):
            measured = _compare(frame, Path(scratch, "out"), parted, rounds)
            result["kinds"][name] = measured
            say(
                f"{name}: {measured['times']:.2f} times Spark's own, {measured['floor_times']:.2f} "
                "by bringing the rows to Python alone"
            )
    return result


@contextmanager
def _session(scratch: Path) -> Iterator[Any]:
    from asynccommit.spark import register_data_source

    os.environ.update(ENVIRONMENT)
    spark = builder(scratch, "local[2]").config("spark.driver.memory", "2g").getOrCreate()
    register_data_source(spark)
    spark.dataSource.register(_floor_source())
    try:
        yield spark
    finally:
        spark.stop()


def _kinds(spark: Any, scratch: Path, rows: int) -> Iterator[tuple[str, Any, str | None]]:
    table = unpack(find_flights(), scratch, ())
    flights = spark.read.csv(str(table), SCHEMA, header=True, nullValue="NA")
    flights = flights.repartition(2).cache()
    yield f"{flights.count():,} flights", flights, None
    yield f"{flights.count():,} flights by month", flights, "month"
    flights.unpersist()
    yield f"{rows:,} synthetic rows", spark.range(0, rows, 1, 2).selectExpr(*_SYNTHETIC), None


def _compare(frame: Any, out: Path, parted: str | None, rounds: int) -> dict[str, Any]:
    writers: dict[str, Callable[[], None]] = {
        "stock": lambda: _stock(frame, out, parted),
        "ours": lambda: _ours(frame, out, parted),
        "floor": lambda: frame.write.format("floor").mode("append").save(str(out)),
    }
    for write in writers.values():  # starts Python, warms the JVM; not counted
        _timed(write, out)
    seconds: dict[str, list[float]] = {name: [] for name in writers}
    for number in range(rounds):
        turn = number % len(writers)
        for name in [*writers][turn:] + [*writers][:turn]:
            seconds[name].append(_timed(writers[name], out))
    medians = {name: median(values) for name, values in seconds.items()}
    return {
        "rounds_seconds": seconds,
        "median_seconds": medians,
        "times": medians["ours"] / medians["stock"],
        "times_by_best": min(seconds["ours"]) / min(seconds["stock"]),
        "floor_times": medians["floor"] / medians["stock"],
    }


def _timed(write: Callable[[], None], out: Path) -> float:
    shutil.rmtree(out, ignore_errors=True)
    begun = time.perf_counter()
    write()
    return time.perf_counter() - begun


def _stock(frame: Any, out: Path, parted: str | None) -> None:
    writer = frame.write if parted is None else frame.write.partitionBy(parted)
    writer.parquet(str(out))


def _ours(frame: Any, out: Path, parted: str | None) -> None:
    writer = frame.write.format("asynccommit").mode("append")
    if parted is not None:
        writer = writer.option("partition_by", parted)
    writer.save(str(out))


def _floor_source() -> Any:
    """Return a source that drops its rows; made here, so that tasks get it with its code."""
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    class FloorWriter(DataSourceArrowWriter):
        def write(self, iterator: Any) -> Any:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Floor(DataSource):
        @classmethod
        def name(cls) -> str:
            return "floor"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return FloorWriter()

    return Floor

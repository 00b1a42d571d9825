"""Several jobs at once: one table, threads, a stream's batches, and speculation."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import udf

from asynccommit.spark import last_report, reports
from tests.support.spark import TASK_FAILURES, leftovers, settles, visible, wait_until


def ids(spark: Any, table: Path) -> list[int]:
    """Return the ids in a table."""
    return sorted(row.id for row in spark.read.parquet(str(table)).collect())


def slow(frame: Any, *, fail: bool = False) -> Any:
    """Return a frame whose rows take a moment, so that jobs overlap."""

    def linger(value: int) -> int:
        import time

        time.sleep(0.05)
        if fail and value == 7:
            raise ValueError("boom")
        return value

    return frame.withColumn("id", udf(linger, "long", useArrow=False)("id"))


def test_two_jobs_into_one_table(spark: Any, frame: Any, table: Path) -> None:
    """Both are whole, whichever ends first and cleans up beside the other."""
    with ThreadPoolExecutor(2) as pool:
        done = [
            pool.submit(slow(frame).write.mode("append").partitionBy("p").parquet, str(table))
            for _ in range(2)
        ]
        for future in done:
            future.result()

    assert ids(spark, table) == sorted([*range(20), *range(20)])
    assert leftovers(table) == []


def test_job_that_fails_beside_another(spark: Any, frame: Any, table: Path) -> None:
    """The abort of one job takes nothing from the other."""
    with ThreadPoolExecutor(2) as pool:
        bad = pool.submit(slow(frame, fail=True).write.mode("append").parquet, str(table))
        good = pool.submit(slow(frame).write.mode("append").parquet, str(table))
        good.result()
        with pytest.raises(TASK_FAILURES, match="boom"):
            bad.result()

    assert ids(spark, table) == list(range(20))
    assert settles(table)


def test_two_threads_into_two_tables(spark: Any, frame: Any, table: Path) -> None:
    """Two commits run on one engine; each thread gets its own job's result."""
    barrier = threading.Barrier(2)

    def write(name: str) -> None:
        barrier.wait()
        for _ in range(3):
            frame.write.mode("overwrite").parquet(str(table / name))

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(write, name) for name in ("a", "b")]:
            future.result()

    assert ids(spark, table / "a") == ids(spark, table / "b") == list(range(20))
    assert len({report.job_id for report in reports()[-6:]}) == 6


def test_write_inside_foreach_batch(spark: Any, table: Path, tmp_path: Path) -> None:
    """A commit is asked for while Python answers another call of the JVM."""
    source = tmp_path / "source"
    spark.range(10).write.parquet(str(source))
    stream = spark.readStream.schema("id long").parquet(str(source))
    query = (
        stream.writeStream.foreachBatch(
            lambda batch, _: batch.write.mode("append").parquet(str(table))
        )
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)

    assert ids(spark, table) == list(range(10))
    assert leftovers(table) == []


@pytest.mark.full
@pytest.mark.parametrize(
    "spark", [pytest.param("cluster", marks=pytest.mark.cluster)], indirect=True
)
def test_speculation_with_both_attempts_finishing(spark: Any, table: Path, tmp_path: Path) -> None:
    """Scenario 50: two attempts of a task run to their end on two workers; one of them is in the
    table."""
    log = tmp_path / "attempts"
    log.mkdir()

    def linger(value: int) -> int:
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 2 and value == 11:
            # Each waits for the other: Spark kills the one that is behind.
            for moment in ("start", "end"):
                Path(log, f"{moment}-{context.attemptNumber()}").touch()
                for _ in range(600):
                    if len(list(Path(log).glob(f"{moment}-*"))) == 2:
                        break
                    time.sleep(0.05)
        return value

    frame = spark.range(0, 12, 1, 3).withColumn("v", udf(linger, "long", useArrow=False)("id"))
    frame.write.parquet(str(table))
    report = last_report()

    assert ids(spark, table) == list(range(12))
    assert wait_until(lambda: len(list(log.glob("end-*"))) == 2, 10)
    assert settles(table)
    assert report is not None
    assert report.files == len(visible(table)) == 3

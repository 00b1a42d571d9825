"""A query of Spark's file sink whose next batch compacts its log."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from bench.child import serve


def compact() -> dict[str, float]:
    """Run one batch; return its seconds, the JVM's CPU and its size."""
    from pyspark.sql import SparkSession

    import asynccommit.spark

    warnings.simplefilter("ignore")
    scratch, kind = Path(sys.argv[1]), sys.argv[2]
    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    made = made.config("spark.log.level", "ERROR").config("spark.driver.host", "127.0.0.1")
    made = made.config("spark.driver.bindAddress", "127.0.0.1")
    if kind == "ours":
        made = asynccommit.spark.configure(made, streams=True, progress=False)
    spark: Any = made.getOrCreate()
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    source = scratch / f"source-{kind}"
    source.mkdir()
    (source / "0.json").write_text('{"id": 1}')
    before, worked = _megabytes(pid), _seconds(pid)
    writer = spark.readStream.schema("id long").json(str(source)).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(scratch / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(scratch / "table"))
    query.awaitTermination()
    [batch] = [one for one in query.recentProgress if one["numInputRows"]]
    found = {
        "seconds": batch["durationMs"]["addBatch"] / 1000,
        "cpu": _seconds(pid) - worked,
        "before_megabytes": before,
        "peak_megabytes": _megabytes(pid),
    }
    spark.stop()
    return found


def _megabytes(pid: Any) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def _seconds(pid: Any) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    serve({"compact": compact})

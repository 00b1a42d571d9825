"""The part of a cell that runs inside the application, with its ``spark``.

It is executed in the application's own namespace and needs nothing of this repository: tasks get
its functions by value.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark import InheritableThread, SparkFiles

import asynccommit
import asynccommit.spark


def check(spark: Any) -> dict[str, Any]:
    """Write from every kind of thread, and look for the user's parts; return what was found."""
    given = json.loads(Path("given.json").read_text("utf-8"))
    found = {
        "active": asynccommit.spark.is_active(spark),
        "package": asynccommit.__file__,
        "master": spark.sparkContext.master,
        "version": spark.version,
        "process": spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName(),
        "rows": spark.read.parquet("flights").count(),
    }
    write_from_threads(spark)
    write_batches(spark)
    if given["classes"]:
        load_classes(spark, given["classes"])
    if given["module"]:
        found |= use_python(spark, given["module"])
    return found


def write_from_threads(spark: Any) -> None:
    """Write from ten threads of a pool, and from one that inherits."""

    def write(number: int) -> None:
        spark.range(number * 10, number * 10 + 10).write.parquet(f"threads/n={number}")

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(write, range(10)))
    inherited = InheritableThread(target=write, args=(10,))
    inherited.start()
    inherited.join()


def write_batches(spark: Any) -> None:
    """Start a query in a thread; its batches are written in the query's own."""

    def write(frame: Any, number: int) -> None:
        frame.write.mode("append").parquet("batches")

    def run() -> None:
        source = spark.readStream.schema("id long, n int").parquet("threads")
        query = source.writeStream.foreachBatch(write).option("checkpointLocation", "checkpoint")
        query.trigger(availableNow=True).start().awaitTermination()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()


def load_classes(spark: Any, names: list[str]) -> None:
    """Load the user's classes in the driver, and in tasks whose output is committed."""
    jvm = spark._jvm
    for name in names:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName(name, False, loader)
    text = jvm.org.apache.spark.sql.types.DataTypes.StringType
    spark._jsparkSession.udf().register("loads", jvm.org.field.Loads(), text)
    array = ", ".join(f"'{name}'" for name in names)
    rows = spark.range(0, 4, 1, 4).selectExpr("id", f"explode(array({array})) as name")
    rows.selectExpr("id", "name", "loads(name) as process").write.parquet("classes")


def use_python(spark: Any, name: str) -> dict[str, Any]:
    """Import the user's module in tasks, and read a file of the packed environment there."""

    def task(number: int) -> tuple[int, str, str]:
        packed = Path(SparkFiles.get("env"), "packed.txt").read_text("utf-8")
        return __import__(name).double(number), packed, sys.prefix

    return {"tasks": spark.sparkContext.parallelize(range(4), 4).map(task).collect()}


def finish(found: dict[str, Any]) -> None:
    """Leave what was found, with the reports of all jobs, to the runner."""
    reports = [[report.dest, report.files] for report in asynccommit.spark.reports()]
    last = asynccommit.spark.last_report()
    found |= {"reports": reports, "last": last.dest if last else None}
    Path("found.json").write_text(json.dumps(found), "utf-8")

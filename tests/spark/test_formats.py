"""An unchanged ``df.write``: formats, partitions, modes, names, metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from asynccommit.spark import last_report
from tests.support.spark import TASK_FAILURES, leftovers, settles, visible

FORMATS = ("parquet", "orc", "csv", "json")


def rows(spark: Any, fmt: str, table: Path) -> list[int]:
    """Return the ids in a table."""
    found = spark.read.schema("id long, p long, s string").format(fmt).load(str(table))
    return sorted(row.id for row in found.collect())


@pytest.mark.sample(3)
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("fmt", FORMATS)
def test_format_is_written_whole(
    spark: Any, frame: Any, table: Path, fmt: str, partitioned: bool
) -> None:
    """Every row is there once, with the marker, a report, and nothing left over."""
    writer = frame.write.format(fmt)
    (writer.partitionBy("p") if partitioned else writer).save(str(table))

    assert rows(spark, fmt, table) == list(range(20))
    assert leftovers(table) == []
    assert len(visible(table)) == (6 if partitioned else 2)
    report = last_report()
    assert report is not None
    marker = json.loads((table / "_SUCCESS").read_text())
    assert (marker["jobId"], marker["success"]) == (report.job_id, True)
    assert marker["jobIdSource"] == "spark.sql.sources.writeJobUUID"
    assert report.files == len(visible(table))


@pytest.mark.sample(1)
@pytest.mark.parametrize("partitioned", [False, True])
def test_text_is_written_whole(spark: Any, frame: Any, table: Path, partitioned: bool) -> None:
    """Text takes one column, partitioned or not."""
    writer = frame.select("s", "p") if partitioned else frame.select("s")
    (writer.write.partitionBy("p") if partitioned else writer.write).text(str(table))

    assert sorted(int(row.value) for row in spark.read.text(str(table)).collect()) == list(
        range(20)
    )
    assert leftovers(table) == []


@pytest.mark.parametrize("partitioned", [False, True])
def test_v2_writes_use_the_protocol_too(
    spark: Any, frame: Any, table: Path, partitioned: bool
) -> None:
    """Spark's second file writer commits by the same road."""
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        writer = frame.write.mode("append")
        (writer.partitionBy("p") if partitioned else writer).parquet(str(table))
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")

    report = last_report()
    assert report is not None
    assert report.files == len(visible(table)) > 0
    assert rows(spark, "parquet", table) == list(range(20))
    assert leftovers(table) == []


def test_append_adds(spark: Any, frame: Any, table: Path) -> None:
    """A second job's files join the first one's."""
    for _ in range(2):
        frame.write.mode("append").partitionBy("p").parquet(str(table))

    assert rows(spark, "parquet", table) == sorted([*range(20), *range(20)])
    assert leftovers(table) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("partitioned", [False, True])
def test_overwrite_replaces(spark: Any, frame: Any, table: Path, partitioned: bool) -> None:
    """Nothing of the old table is left, other partitions included."""
    frame.write.partitionBy("p").parquet(str(table))
    few = frame.where("id < 2")
    writer = few.write.mode("overwrite")
    (writer.partitionBy("p") if partitioned else writer).parquet(str(table))

    assert rows(spark, "parquet", table) == [0, 1]
    assert leftovers(table) == []
    assert not (table / "p=2").exists()


def test_overwrite_that_fails_loses_nothing(spark: Any, frame: Any, table: Path) -> None:
    """The old table stays when the job that should replace it fails; Spark's own loses it."""
    frame.write.parquet(str(table))
    with pytest.raises(TASK_FAILURES, match="boom"):
        frame.selectExpr("assert_true(id < 0, 'boom')").write.mode("overwrite").parquet(str(table))

    assert rows(spark, "parquet", table) == list(range(20))
    assert settles(table)


def test_errorifexists_refuses(frame: Any, table: Path) -> None:
    """Spark refuses before any task runs, and the table stays."""
    frame.write.parquet(str(table))
    before = visible(table)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        frame.write.parquet(str(table))

    assert visible(table) == before


def test_ignore_does_nothing(frame: Any, table: Path) -> None:
    """An existing table stays as it is."""
    frame.write.parquet(str(table))
    before = visible(table)
    frame.write.mode("ignore").parquet(str(table))

    assert visible(table) == before


@pytest.mark.sample(1)
@pytest.mark.parametrize("partitioned", [False, True])
def test_empty_frame_succeeds(spark: Any, frame: Any, table: Path, partitioned: bool) -> None:
    """There is a marker, and a file that holds the schema where Spark writes one."""
    writer = frame.where("id < 0").write
    (writer.partitionBy("p") if partitioned else writer).parquet(str(table))

    assert (table / "_SUCCESS").exists()
    assert leftovers(table) == []
    assert len(visible(table)) == (0 if partitioned else 1)


NAMES = ("a b", "50%", "a%20b", "1+1", "a:b", "a=b", "a/b", "ünï", "日本", "😀", "..", "it's", None)


def test_partition_values_of_all_kinds(spark: Any, table: Path) -> None:
    """Whatever a partition is called, the rows come back under that name."""
    values = [(i, name) for i, name in enumerate(NAMES)]
    spark.createDataFrame(values, "id long, p string").coalesce(1).write.partitionBy("p").parquet(
        str(table)
    )

    found = spark.read.schema("id long, p string").parquet(str(table)).collect()
    assert sorted((row.id, row.p) for row in found) == values
    assert leftovers(table) == []


def test_max_records_per_file(spark: Any, frame: Any, table: Path) -> None:
    """A task that writes several files commits them all."""
    frame.coalesce(1).write.option("maxRecordsPerFile", 4).parquet(str(table))

    assert len(visible(table)) == 5
    assert rows(spark, "parquet", table) == list(range(20))


def test_spark_metrics_count_what_was_written(spark: Any, frame: Any, table: Path) -> None:
    """Files, rows and bytes in Spark's own metrics are those of the table."""
    frame.write.partitionBy("p").parquet(str(table))

    metrics = write_metrics(spark)
    sizes = [(table / name).stat().st_size for name in visible(table)]
    assert metrics["number of written files"] == len(sizes)
    assert metrics["number of output rows"] == 20
    assert metrics["written output"] == pytest.approx(sum(sizes), rel=0.05)  # shown as "4.1 KiB"
    assert metrics["number of dynamic part"] == 3
    report = last_report()
    assert report is not None
    assert report.bytes == sum(sizes)


def write_metrics(spark: Any) -> dict[str, int]:
    """Return the metrics of the last statement that wrote files."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    for i in reversed(range(executions.size())):
        execution = executions.apply(i)
        values = store.executionMetrics(execution.executionId())
        named = {}
        for j in range(execution.metrics().size()):
            metric = execution.metrics().apply(j)
            text = values.get(metric.accumulatorId())
            if text.isDefined():
                named[metric.name()] = text.get()
        if "number of written files" in named:
            return {name: _number(text) for name, text in named.items()}
    raise AssertionError("no statement wrote files")


def _number(text: str) -> int:
    units = {"B": 1, "KiB": 1024}
    value, _, unit = text.replace(",", "").split("\n")[-1].partition(" ")
    return round(float(value) * units.get(unit.split(" ")[0], 1))


def test_rdd_saves_bypass_the_protocol(spark: Any, table: Path) -> None:
    """``saveAsTextFile`` goes by Hadoop's own committer: it has no SQL commit protocol."""
    before = last_report()
    spark.sparkContext.parallelize(["a", "b"], 2).saveAsTextFile(str(table))

    assert last_report() is before
    assert (table / "_SUCCESS").stat().st_size == 0


def test_options_of_a_write_reach_the_commit(spark: Any, frame: Any, table: Path) -> None:
    """An option under Hadoop's name given to one write works for that write."""
    frame.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(
        str(table)
    )

    assert not (table / "_SUCCESS").exists()
    assert rows(spark, "parquet", table) == list(range(20))

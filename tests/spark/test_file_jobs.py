"""Stock Spark, whose driver dies before the job commit: what its tasks committed is published."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit.cli import main
from asynccommit.spark import jars
from tests.support.spark import TASK_FAILURES, leftovers, visible

KEY = "spark.sql.sources.commitProtocolClass"
DYING = """
package org.asynccommit.tests;

import org.apache.hadoop.mapreduce.JobContext;
import org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol;

/** Spark's own commit protocol, of a driver that is gone when all tasks have committed. */
public class Dying extends SQLHadoopMapReduceCommitProtocol {
  public Dying(String jobId, String path, boolean dynamic) {
    super(jobId, path, dynamic);
  }

  @Override
  public void commitJob(JobContext context, @SEQ@ messages) {
    throw new IllegalStateException("the driver is dead");
  }

  @Override
  public void abortJob(JobContext context) {}
}
"""


@pytest.fixture
def dying(spark: Any, tmp_path: Path) -> Iterator[None]:
    """Let writes of the session die before their job commit."""
    here = jars.running_spark(spark)
    build = jars._sources(here)["Build.java"]
    sources = {"Build.java": build, "Dying.java": DYING.replace("@SEQ@", jars._SEQ[here.scala])}
    (tmp_path / "java").mkdir()
    jar = tmp_path / "dying.jar"
    jars._pack(jars._compile(here, sources, tmp_path / "java"), jar)
    spark.sql(f"ADD JAR '{jar}'")
    before = spark.conf.get(KEY)
    spark.conf.set(KEY, "org.asynccommit.tests.Dying")
    yield
    spark.conf.set(KEY, before)


@pytest.mark.parametrize("spark", ["local"], indirect=True)
@pytest.mark.usefixtures("dying")
def test_a_job_that_died_between_task_commit_and_job_commit(
    spark: Any, frame: Any, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tasks ran with Hadoop's classes; ``asynccommit commit`` finishes it, each row once."""
    with pytest.raises(TASK_FAILURES, match="the driver is dead"):
        frame.write.partitionBy("p").parquet(str(table))
    assert visible(table) == []
    tasks = list((table / "_temporary/0").glob("task_*"))
    assert len(tasks) == 2

    code = main(["commit", str(table), "--committer", "file_v1", "--tasks", "2"])
    said = capsys.readouterr()
    assert code == 0, said
    assert re.search(r"found job job_\d{14}\d+_\d{4}: 2 tasks committed", said.err)
    assert leftovers(table) == []
    assert sorted(row.id for row in spark.read.parquet(str(table)).collect()) == list(range(20))

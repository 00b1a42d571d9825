"""Sparks that bear the version of another: classes of theirs have other signatures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asynccommit.spark.jars import _SEQ, _compile, _pack, _sources, build_id, installed_spark
from tests.support.snippets import ROOT

_ERROR = """
package org.apache.spark.sql.execution;

public class QueryExecutionException extends Exception {
  public QueryExecutionException(String message, Exception cause) {
    super(message, cause);
  }
}
"""
_PROTOCOL = """
package org.apache.spark.sql.execution.datasources;

import org.apache.hadoop.mapreduce.JobContext;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;

public %s class SQLHadoopMapReduceCommitProtocol extends HadoopMapReduceCommitProtocol {
  public SQLHadoopMapReduceCommitProtocol(String jobId, String path, boolean dynamic%s) {
    super(jobId, path, dynamic);
  }

  %s
}
"""
_NAME = "SQLHadoopMapReduceCommitProtocol.java"

COMPILES: Mapping[str, str] = {"QueryExecutionException.java": _ERROR}
"""A change that needs no other source, and another jar."""

REFUSED: Mapping[str, Mapping[str, str]] = {
    "a method to implement": {
        _NAME: _PROTOCOL % ("abstract", "", "public abstract void beginVendor(JobContext context);")
    },
    "a form of a method": {
        _NAME: _PROTOCOL
        % ("", "", "public void commitJob(JobContext job, @SEQ@ messages, java.util.Map more) {}")
    },
    "a constructor": {_NAME: _PROTOCOL % ("", ", String vendor", "")},
}
"""Changes that no jar of this package fits."""


def jar_of_changes(folder: Path, sources: Mapping[str, str]) -> Path:
    """Compile classes of Spark anew; return their jar, which goes before Spark's own."""
    spark = installed_spark()
    said = {name: text.replace("@SEQ@", _SEQ[spark.scala]) for name, text in sources.items()}
    build = (ROOT / "asynccommit/spark/jvm/Build.java").read_text("utf-8")
    (folder / "changed").mkdir()
    classes = _compile(spark, {**said, "Build.java": build}, folder / "changed")
    _pack(classes, folder / "changed.jar")
    return folder / "changed.jar"


def jar_of_another_version(folder: Path) -> Path:
    """Return the jar that another version of this package would have compiled."""
    spark = installed_spark()
    sources = {
        name: text.replace(build_id(), "0.0.9 0123456789abcdef")
        for name, text in _sources(spark).items()
    }
    (folder / "older").mkdir()
    _pack(_compile(spark, sources, folder / "older"), folder / "older.jar")
    return folder / "older.jar"

"""The sources of the jar compile for the oldest line of Spark, whose Scala is another.

Other lines are tried by tox, and by the starts of ``make test-field``.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from asynccommit.demo.hadoop_jars import Dependency, cached_jars
from asynccommit.errors import UnsupportedError
from asynccommit.spark.jars import Spark, bundle
from tests.support.hadoop import java_command

OLDEST = "3.5.9"
WITHOUT = (  # what the sources do not need; the rest is 130 MB, fetched once
    "com.github.luben",
    "com.google.guava",
    "com.twitter",
    "com.univocity",
    "io.dropwizard.metrics",
    "io.netty",
    "net.razorvine",
    "net.sf.py4j",
    "org.apache.arrow",
    "org.apache.curator",
    "org.apache.datasketches",
    "org.apache.hive",
    "org.apache.ivy",
    "org.apache.orc",
    "org.apache.parquet",
    "org.apache.zookeeper",
    "org.glassfish.jersey.containers",
    "org.glassfish.jersey.core",
    "org.glassfish.jersey.inject",
    "org.roaringbitmap",
    "org.rocksdb",
)


@pytest.mark.jvm
@pytest.mark.full
def test_sources_compile_for_the_oldest_spark(tmp_path: Path) -> None:
    """Janino compiles them against Scala 2.12, and finds each method that they override."""
    java = java_command()
    if java is None:
        pytest.skip("needs java")
    wanted = [Dependency("org.apache.spark", "spark-sql_2.12", OLDEST)]
    try:
        jars = cached_jars(f"spark-{OLDEST}", wanted, without_groups=WITHOUT)
    except UnsupportedError as error:
        pytest.skip(str(error))

    jar = bundle(Spark(OLDEST, "2.12", os.pathsep.join(map(str, jars)), java), tmp_path)

    with zipfile.ZipFile(jar) as made:
        found = made.read("org/asynccommit/spark/signatures.txt").decode()
    protocol = "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol"
    assert f"v {protocol} newTaskTempFile " in found

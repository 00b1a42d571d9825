"""Run HDFS's own servers, a NameNode and a DataNode, in one JVM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asynccommit.demo.hadoop_jars import cached_jar, hadoop_version
from asynccommit.errors import AsyncCommitError, UnsupportedError
from asynccommit.spark.jars import installed_spark

# Of the versions that are known; Maven checks the others by the repository's checksum alone.
_DIGESTS = {"3.5.0": "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c"}
_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_PATIENCE = 180.0  # seconds; it takes 20 on a machine that has nothing else to do
_LOOK = 0.1


def minicluster_jar() -> Path:
    """Return the jar with HDFS's servers, of the version of PySpark's Hadoop.

    Raises ``UnsupportedError`` if it is neither cached nor can be fetched.
    """
    name, version = "hadoop-client-minicluster", hadoop_version()
    artifact = f"org.apache.hadoop:{name}:{version}"
    return cached_jar(artifact, f"{name}-{version}.jar", _DIGESTS.get(version))


@contextmanager
def serving_hdfs(jar: Path, folder: Path, log: Path) -> Iterator[str]:
    """Run the servers with their disks in ``folder``; yield the root's URL.

    They listen on 127.0.0.1 only. Raises ``AsyncCommitError`` if they do not start.
    """
    spark, facts = installed_spark(), folder / "hdfs.json"
    if shutil.which(spark.java) is None:
        raise UnsupportedError(f"HDFS needs Java, and {spark.java} does not run")
    folder.mkdir(parents=True, exist_ok=True)
    command = [spark.java, "-Xmx512m", "-cp", f"{jar}{os.pathsep}{spark.class_path}", _MAIN]
    command += ["-format", "-datanodes", "1", "-writeDetails", str(facts)]
    command += ["-D", f"hdfs.minidfs.basedir={folder}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder
        )
    try:
        yield f"hdfs://127.0.0.1:{_port(process, facts, log)}"
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], facts: Path, log: Path) -> int:
    """Return the port of the NameNode, once the servers have written it down."""
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            return int(json.loads(facts.read_text())["namenode_port"])
        except (OSError, ValueError, KeyError):  # not there, or not whole
            time.sleep(_LOOK)
    raise AsyncCommitError(f"HDFS did not start; its log is {log}")

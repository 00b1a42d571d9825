"""Job commit on a mini HDFS: ours over both clients, Hadoop's committers, and bare renames."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.spark.jars import compiled_jar, installed_spark
from bench import trees
from bench.hdfs.account import DEST, Account
from bench.hdfs.contenders import HdfsContender, contenders
from bench.meter import cpu_of
from tests.support import mini_hdfs
from tests.support.hadoop import Hadoop, jars
from tests.support.mini_hdfs import start_mini_hdfs

FULL = trees.Shape(tasks=200, files=100, partitions=10)
QUICK = trees.Shape(tasks=20, files=100, partitions=10)
TARGET = 1.5
"""How many times as fast as Hadoop's manifest committer ours should be."""


def run(*, quick: bool, folder: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all contenders in turn; returns medians, or why there is no HDFS."""
    if why := mini_hdfs.why_not():
        return {"skipped": why}
    shape, rounds = (QUICK, 2) if quick else (FULL, 3)
    classpath = f"{compiled_jar(installed_spark())}{os.pathsep}{jars()}"
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch,
        start_mini_hdfs(Path(scratch), "-Xms1g", "-Xmx1g") as cluster,
        Hadoop.start("-cp", classpath, "-Xms1g", "-Xmx1g") as driver,
    ):
        account = Account(cluster.url, shape)
        account.make_pool()
        say(f"{shape.total} files are made")
        pids = {"namenode": pid_of(cluster.hadoop), "driver": pid_of(driver), "python": os.getpid()}
        rows: dict[str, list[dict[str, float]]] = {}
        for number in range(rounds + 1):  # the first one warms up, and is not counted
            for one in contenders(account, driver):
                row = _once(one, account, pids)
                say(f"{number} {one.name}: " + ", ".join(f"{k} {v:.2f}" for k, v in row.items()))
                if number:
                    rows.setdefault(one.name, []).append(row)
    return _summary(shape, rows)


def pid_of(jvm: Hadoop) -> int:
    """Return the process of a JVM."""
    return int(jvm.jvm.java.lang.ProcessHandle.current().pid())


def _once(one: HdfsContender, account: Account, pids: dict[str, int]) -> dict[str, float]:
    """Arrange the files, time the commit, check that all are there, and take them back."""
    account.lend(one.where)
    timed = one.prepare()
    gc.collect()
    before = {name: cpu_of(pid) for name, pid in pids.items()}
    begin = time.perf_counter()
    timed()
    seconds = time.perf_counter() - begin
    cpu = {name: cpu_of(pid) - before[name] for name, pid in pids.items()}
    if account.is_there(f"{DEST}/_SUCCESS") != one.committed:
        raise AssertionError(f"{one.name}: _SUCCESS is wrong")
    account.take_back()
    return {"seconds": seconds, **cpu}


def _summary(shape: trees.Shape, rows: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    found = {
        name: {key: median(row[key] for row in all_) for key in all_[0]}
        for name, all_ in rows.items()
    }
    manifest = found["hadoop_manifest"]["seconds"]
    return {
        "files": shape.total,
        "rows": found,
        "rounds": rows,
        "times_as_fast_as_hadoop_manifest": {
            name: manifest / row["seconds"] for name, row in found.items()
        },
    }


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    if "skipped" in result:
        yield f"job commit on HDFS: skipped: {result['skipped']}"
        return
    files, ratios = result["files"], result["times_as_fast_as_hadoop_manifest"]
    yield f"job commit of {files} files on a mini HDFS; CPU seconds by process"
    yield f"  {'':16} {'wall':>8} {'files/s':>8} {'python':>8} {'driver':>8} {'NameNode':>9}"
    for name, row in result["rows"].items():
        yield (
            f"  {name:16} {row['seconds']:6.2f} s {files / row['seconds']:8.0f} "
            f"{row['python']:6.2f} s {row['driver']:6.2f} s {row['namenode']:7.2f} s"
            f"  {ratios[name]:.2f} times as fast as hadoop_manifest"
        )
    yield f"  target: ours {TARGET} times as fast as hadoop_manifest"

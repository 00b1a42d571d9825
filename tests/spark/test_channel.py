"""A driver whose Python has registered nothing: the JVM starts the engine as a child."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from asynccommit.spark import last_report
from tests.support.spark import answered_by, leftovers, wait_until

SETTING = "spark.asynccommit.python"
STORE = "spark.asynccommit.store"


def children(spark: Any) -> list[int]:
    """Return the processes that are children of the JVM and run the engine."""
    found = spark._jvm.java.lang.ProcessHandle.current().children().toArray()
    pids = [each.pid() for each in found if each.isAlive()]
    return [pid for pid in pids if is_engine(Path("/proc", str(pid), "cmdline"))]


def is_engine(command: Path) -> bool:
    """Return whether a process runs the engine."""
    return command.exists() and b"asynccommit.spark.child" in command.read_bytes()


def end(spark: Any) -> None:
    """Kill the child, if there is one."""
    for pid in children(spark):
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: children(spark) == [], 20)


@pytest.fixture(autouse=True)
def _engine(spark: Any, tmp_path: Path) -> Iterator[None]:
    """Have the application name this Python, with this package."""
    path = tmp_path / "engine"
    root = Path(__file__).parents[2]
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" "$@"\n')
    path.chmod(0o700)
    with engine_is(spark, str(path)):
        yield


@contextmanager
def engine_is(spark: Any, python: str) -> Iterator[None]:
    """Have the application name another Python."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get(SETTING, "")
    conf.set(SETTING, python)
    try:
        yield
    finally:
        conf.set(SETTING, before)


def ids(spark: Any, table: Path) -> list[int]:
    """Return the ids in a table, sorted."""
    return sorted(row.id for row in spark.read.parquet(str(table)).collect())


def test_one_child_commits_all_jobs(spark: Any, frame: Any, table: Path, tmp_path: Path) -> None:
    """The first job starts it, and jobs of many threads are under way in it at once."""
    end(spark)
    with answered_by(spark, None):
        frame.write.partitionBy("p").parquet(str(table))
        started = children(spark)
        tables = [tmp_path / str(number) for number in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: frame.write.parquet(str(each)), tables))
        assert children(spark) == started

    assert len(started) == 1
    for each in (table, *tables):
        assert ids(spark, each) == [*range(20)]
        assert leftovers(each) == []


def test_store_of_the_jvm_is_reached_over_the_channel(spark: Any, frame: Any, table: Path) -> None:
    """A child reaches the JVM's store by frames, as a Python driver does by Py4J."""
    table = table.parent.parent / "linked"  # a mount takes no encoded name
    table.mkdir()
    view = f"view{os.stat(table).st_ino}"  # Hadoop keeps the filesystem of a name
    conf = {STORE: "jvm", f"fs.viewfs.mounttable.{view}.link./data": table.as_uri()}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        with answered_by(spark, None):
            frame.write.partitionBy("p").parquet(f"viewfs://{view}/data/t")
            frame.write.mode("append").partitionBy("p").parquet(f"viewfs://{view}/data/t")
    finally:
        for key in conf:
            spark.conf.unset(key)

    assert ids(spark, table / "t") == sorted([*range(20)] * 2)
    assert not (table / "t/_temporary").exists()


def test_a_python_driver_goes_before_the_child(spark: Any, frame: Any, table: Path) -> None:
    """Once Python has registered, it commits, and the child is asked for nothing."""
    with answered_by(spark, None):
        frame.write.parquet(str(table))
    for pid in children(spark):
        os.kill(pid, signal.SIGSTOP)
    try:
        frame.write.mode("append").parquet(str(table))
    finally:
        end(spark)

    report = last_report()
    assert report is not None
    assert report.dest == f"file:{table}"
    assert ids(spark, table) == sorted([*range(20)] * 2)


def test_a_dead_child_is_replaced(spark: Any, frame: Any, table: Path) -> None:
    """A child that has died between two jobs is started again by the next one."""
    with answered_by(spark, None):
        frame.write.parquet(str(table))
        first = children(spark)
        end(spark)
        frame.write.mode("append").parquet(str(table))
        second = children(spark)

    assert (len(first), len(second)) == (1, 1)
    assert first != second
    assert ids(spark, table) == sorted([*range(20)] * 2)


BAD = {
    "nothing": ("/nowhere/python", "No such file or directory"),
    "no module": ("#!/bin/sh\necho No module named asynccommit >&2; exit 1", "exit code 1: No mod"),
    "silent": ("#!/bin/sh\nexec true", "has ended with exit code 0"),
    "no frames": ("#!/bin/sh\nread line; echo $line; echo Hello world", "it has sent a frame of"),
    "talker": ("#!/bin/sh\nexec yes", "it prints too much before the first frame"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_an_unusable_python_is_refused(spark: Any, frame: Any, tmp_path: Path, name: str) -> None:
    """The refusal names the program, why it is none, and the setting; nothing is made."""
    python, why = BAD[name]
    if python.startswith("#!"):
        (tmp_path / "python").write_text(python)
        (tmp_path / "python").chmod(0o700)
        python = str(tmp_path / "python")
    end(spark)
    with (
        answered_by(spark, None),
        engine_is(spark, python),
        pytest.raises(PySparkException) as caught,
    ):
        frame.write.parquet(str(tmp_path / "t"))

    said = str(caught.value)
    assert f"{python} (spark.asynccommit.python) does not run the engine: " in said
    assert why in said
    assert "Set spark.asynccommit.python" in said
    assert "call asynccommit.spark.configure(spark)" in said
    assert not (tmp_path / "t").exists()

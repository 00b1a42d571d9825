"""The log of a streaming file sink, written by us and by Spark itself, in turns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from asynccommit.errors import SinkLogForeignError
from asynccommit.runtime.host import this_host
from asynccommit.streaming import batches as sink_batches
from asynccommit.streaming.entries import FOLDER
from asynccommit.streaming.log import Added, SinkFile, SinkLogSettings
from tests.support.sink import BlockingLog, entry, log_files, of_disk

local = pytest.mark.parametrize("spark", ["local"], indirect=True)
"""What has nothing to do with where tasks run."""

LOG = "spark.sql.streaming.fileSink.log."
EXPIRING = {
    f"{LOG}compactInterval": "3",
    f"{LOG}cleanupDelay": "0",
    "spark.sql.streaming.minBatchesToRetain": "2",
}


@contextmanager
def conf(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    """Set values of a session, and unset them."""
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def spark_class(spark: Any, name: str) -> Any:
    """Return a class of Spark's streams: the package has changed since Spark 3."""
    packages = ("runtime.", "sinks.", "")
    for package in packages:
        full = f"org.apache.spark.sql.execution.streaming.{package}{name}"
        if isinstance(found := getattr_path(spark._jvm, full), type(spark._jvm.java.lang.Math)):
            return found
    raise AssertionError(f"no {name}")


def getattr_path(root: Any, path: str) -> Any:
    """Return what a dotted path leads to."""
    for name in path.split("."):
        root = getattr(root, name)
    return root


class SparkLog:
    """Spark's own class for the log of a directory."""

    def __init__(self, spark: Any, table: Path, retention: int | None = None) -> None:
        jvm = spark._jvm
        option = jvm.scala.Option
        # Py4J makes a long of what is no int.
        kept = option.empty() if retention is None else option.apply(retention)
        self._spark = spark
        self._status = spark_class(spark, "SinkFileStatus")
        made = spark_class(spark, "FileStreamSinkLog")
        self._log = made(1, spark._jsparkSession, f"file:{table / FOLDER}", kept)

    def add(self, batch: int, files: list[SinkFile]) -> bool:
        """Add a batch; says whether it was new."""
        array = self._spark.sparkContext._gateway.new_array(self._status, len(files))
        for number, file in enumerate(files):
            array[number] = self._status(
                *(file.path, file.size, file.is_dir, file.modified),
                *(file.replication, file.block_size, file.action),
            )
        added: bool = self._log.add(batch, array)
        return added

    def files(self) -> list[str]:
        """Return the paths that a reader sees."""
        return [status.path() for status in self._log.allFiles()]


def scala_range(values: Any) -> list[int]:
    """Return the numbers of a Scala sequence."""
    return [values.apply(number) for number in range(values.size())]


@local
def test_batch_numbers_are_reckoned_as_spark_does(spark: Any) -> None:
    """Scenario 57: names, compactions, windows and derived intervals are those of Spark's class."""
    theirs = spark_class(spark, "CompactibleFileStreamLog")

    for interval in (1, 2, 3, 10):
        for batch in (0, 1, 2, 8, 9, 10, 29, 30, 98, 99, 100):
            ours = sink_batches.is_compaction(batch, interval)
            assert theirs.isCompactionBatch(batch, interval) == ours
            every = theirs.getAllValidBatches(batch, interval)
            assert scala_range(every) == list(sink_batches.to_read(batch, interval))
            if ours:
                before = theirs.getValidBatchesBeforeCompactionBatch(batch, interval)
                expected = sink_batches.before_compaction(batch, interval)
                assert scala_range(before) == list(expected)
    for default in (1, 2, 3, 10, 100):
        for compact in (0, 1, 2, 9, 12, 22, 29, 30, 35, 99, 2309, 99_990):
            derived = theirs.deriveCompactInterval(default, compact)
            assert derived == sink_batches.derive_interval(default, [compact])


@pytest.mark.sample(1)
@local
@pytest.mark.parametrize("retention", [None, 3_000_000_000])
def test_log_is_the_same_to_the_byte(spark: Any, tmp_path: Path, retention: int | None) -> None:
    """Scenario 57: Twenty batches with compaction, retention and expiry leave the files that Spark
    leaves."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    settings = SinkLogSettings(
        interval=3,
        keep=2,
        cleanup_delay=0,
        retention=None if retention is None else retention / 1000,
    )
    log = BlockingLog(ours, settings)
    with conf(spark, EXPIRING):
        witness = SparkLog(spark, theirs, retention)
        now = int(this_host().now() * 1000)
        for batch in range(20):
            age = 4_000_000_000 if batch % 4 == 0 else 0
            names = [f"p=a b%{n}/ü part-{batch:05d}-{n}" for n in range(batch % 3)]
            files = [entry(log.dest, name, batch, now - age) for name in names]
            assert log.add(batch, files) is Added.NEW
            assert witness.add(batch, files)

    assert log_files(ours) == log_files(theirs)
    assert len(log_files(ours)) == 3  # the others have expired


@local
def test_in_turns(spark: Any, tmp_path: Path) -> None:
    """Spark's class and ours go on with each other's log, and see the same in it."""
    log = BlockingLog(tmp_path, SinkLogSettings(interval=3, keep=2, cleanup_delay=0))
    with conf(spark, EXPIRING):
        for batch in range(23):
            files = [entry(log.dest, f"part-{batch}-{n}") for n in range(2)]
            witness = SparkLog(spark, tmp_path)
            if batch % 5 < 2:
                assert witness.add(batch, files)
            else:
                assert log.add(batch, files, "query") is Added.NEW
            assert log.latest() == batch
            assert [file.path for file in log.files()] == witness.files()

    assert len(log.files()) == 46


# --- streams ---------------------------------------------------------------------------------


class Stream:
    """A stock query that reads files of numbers, one a batch, and writes Parquet to a table."""

    def __init__(self, spark: Any, root: Path, table: Path) -> None:
        self._spark = spark
        self._table = table
        self._checkpoint = root / "checkpoint"
        self._source = root / "source"
        self._numbers = count()
        self._source.mkdir(parents=True)

    def run(self, batches: int, first: int) -> str:
        """Write so many batches of one row each; returns the id of the query."""
        for value in range(first, first + batches):
            number = next(self._numbers)
            name = f"{number:03d}.json"
            (self._source / f".{name}").write_text(json.dumps({"id": value}))
            # In the order of their times the source takes them.
            os.utime(self._source / f".{name}", (1_795_000_000 + number,) * 2)
            os.rename(self._source / f".{name}", self._source / name)
        reader = self._spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        writer = reader.json(str(self._source)).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        query = writer.trigger(availableNow=True).start(str(self._table))
        assert query.awaitTermination(120)
        identity: str = query.id
        return identity


def write_rows(table: Path, name: str, values: list[int]) -> SinkFile:
    """Write a Parquet file of numbers into a table, which no log lists yet; return its entry."""
    table.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.table({"id": pyarrow.array(values, "int64")}), table / name)
    return of_disk(table / name, table)


def ids(spark: Any, table: Path) -> list[int]:
    """Return what a stock reader sees in a table."""
    found = spark.read.schema("id long").parquet(str(table)).collect()
    return sorted(row.id for row in found)


def test_stock_sink_and_ours_continue_each_other(spark: Any, table: Path, tmp_path: Path) -> None:
    """Scenario 58: stock, ours, stock again: a stock reader sees each listed row once, and no
    other."""
    log = BlockingLog(table, SinkLogSettings(interval=3))
    with conf(spark, {f"{LOG}compactInterval": "3"}):
        query = Stream(spark, tmp_path / "first", table).run(1, first=0)
        files = [write_rows(table, f"part-{n}.parquet", [10 + n, 20 + n]) for n in range(3)]
        assert log.add(1, files[:1], query) is Added.NEW
        assert log.add(2, files[1:2], query) is Added.NEW
        assert ids(spark, table) == [0, 10, 11, 20, 21]  # the third file is on disk, unlisted
        assert log.add(2, files[2:], query) is Added.ALREADY
        # A new checkpoint: Spark drops its batches 0 to 2, and goes on with 3.
        Stream(spark, tmp_path / "second", table).run(4, first=100)

    assert ids(spark, table) == [0, 10, 11, 20, 21, 103]
    assert sorted(log_files(table)) == ["0", "1", "2.compact", "3"]
    assert spark.read.parquet(str(table)).select("_metadata.file_name").distinct().count() == 4


@local
def test_new_checkpoint_on_an_old_log_is_refused(spark: Any, table: Path, tmp_path: Path) -> None:
    """Where Spark's sink drops the batches of a new checkpoint in silence, ours says so."""
    stream = Stream(spark, tmp_path / "first", table)
    query = stream.run(2, first=0)
    Stream(spark, tmp_path / "second", table).run(1, first=50)
    assert ids(spark, table) == [0, 1]  # the loss

    file = write_rows(table, "part-a.parquet", [50])
    log = BlockingLog(table)
    with pytest.raises(SinkLogForeignError, match=r"an unnamed query.*sink\.adopt"):
        log.add(0, [file], "another")
    adopting = BlockingLog(table, SinkLogSettings(adopt=True))
    assert adopting.add(1, [file], query) is Added.ALREADY
    assert adopting.add(2, [file], query) is Added.NEW
    with pytest.raises(SinkLogForeignError, match=f"of query '{query}'"):
        adopting.add(2, [replace(file, path=file.path + "x")], "another")
    assert ids(spark, table) == [0, 1, 50]

"""The Python Data Source on real Spark: what it writes, and what happens when things go wrong.

The surprises that tests name are those of Spark's own protocol for data sources written in Python:
what it calls when, in which process, and what it never calls.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from asynccommit import sync
from tests.support.spark import settles, visible

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.types import StructType

from asynccommit.errors import UnsupportedError
from asynccommit.options.job import Options
from asynccommit.spark import register_data_source
from asynccommit.spark.datasource.jobs import SourceJob
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.source import AsyncCommitDataSource, DataSourceBatchWriter
from asynccommit.spark.datasource.tasks import RowSchema

LOCAL = pytest.mark.parametrize("spark", ["local"], indirect=True)
CLUSTER = pytest.mark.parametrize(
    "spark", [pytest.param("cluster", marks=pytest.mark.cluster)], indirect=True
)

EVERY_TYPE = """
    select id, cast(id % 100 as byte) b, cast(id as short) sh, cast(id as int) i,
      cast(id as float) f, cast(id as double) do, cast(id as decimal(20,3)) d, id > 3 bo,
      date'1500-01-01' old, date'2026-07-31' dt, timestamp'1400-05-06 01:02:03.5' older,
      timestamp'2026-07-31 01:02:03.123456' ts, timestamp_ntz'2026-03-29 02:30:00' tn,
      array(id, null) a, map('k', array(id)) m, cast('x' as binary) bi,
      named_struct('x', id, 'y', array(named_struct('t', timestamp'2026-01-01 00:00:00'))) st,
      if(id % 3 = 0, null, concat('é', id)) s
    from range(100)
"""


@pytest.fixture
def source(spark: Any) -> Any:
    """Return the session with the data source."""
    register_data_source(spark)
    return spark


def save(frame: Any, table: Path, mode: str = "append", **options: Any) -> None:
    """Write with the data source."""
    writer = frame.write.format("asynccommit").mode(mode)
    writer.options(**options).save(str(table))


def ids(spark: Any, table: Path) -> list[int]:
    """Return the column ``id`` as stock Spark reads it."""
    return sorted(row.id for row in spark.read.parquet(str(table)).select("id").collect())


def test_writers_show_no_secrets() -> None:
    """The text of a writer, which logs may have, holds no key of a store."""
    keys = {"account_key": "s3cr3t"}
    job = SourceJob("/t", "job", Options(), keys)
    batch = DataSourceBatchWriter(
        job, SourceOptions("/t", storage=keys), RowSchema(None, "{}", "4.3.0")
    )
    stream = AsyncCommitDataSource({"path": "/t", "storage.account_key": "s3cr3t"})

    assert "s3cr3t" not in repr(batch)
    assert "s3cr3t" not in repr(stream.streamWriter(StructType().add("id", "long"), False))


def test_session_of_an_older_pyspark() -> None:
    """A session without Python data sources is told what to use instead."""
    with pytest.raises(UnsupportedError, match=r"configure\(\)"):
        register_data_source(object())


@LOCAL
def test_same_rows_and_schema_as_sparks_own(source: Any, table: Path) -> None:
    """Every type comes back as from files that Spark writes itself, days of 1400 too."""
    frame = source.sql(EVERY_TYPE).repartition(2)

    save(frame, table)
    frame.write.parquet(f"{table}-stock")

    ours, stock = source.read.parquet(str(table)), source.read.parquet(f"{table}-stock")
    assert ours.schema == stock.schema
    assert sorted(map(str, ours.collect())) == sorted(map(str, stock.collect()))
    names = visible(table)
    assert len(names) == 2
    assert all(name.startswith("part-0000") for name in names)
    assert all(name.endswith("-c000.snappy.parquet") for name in names)
    assert json.loads((table / "_SUCCESS").read_text())["success"]
    assert settles(table)


@pytest.mark.every(3)
@pytest.mark.full
@LOCAL
def test_partitions_have_sparks_names(source: Any, table: Path) -> None:
    """Directories are those that Spark makes of the same values, missing and awkward ones too."""
    frame = source.sql("""
        select id, array(null, '', 'a/b=c%d', 'x y:z', 'é"{}[]^', '..', 'A')[id % 7] s,
          array(null, date'0987-06-05', date'2026-07-31')[id % 3] d,
          timestamp'2026-07-31 01:02:03.450' t, cast(id % 2 as decimal(12,3)) n, id % 2 = 0 bo
        from range(42)
    """)
    columns = ["s", "d", "t", "n", "bo"]

    save(frame, table, partition_by="S,d,t,n,bo", openFiles="3")
    frame.write.partitionBy(*columns).parquet(f"{table}-stock")

    ours = {os.path.dirname(name) for name in visible(table)}
    assert ours == {os.path.dirname(name) for name in visible(Path(f"{table}-stock"))}
    assert sorted(map(str, source.read.parquet(str(table)).collect())) == sorted(
        map(str, source.read.parquet(f"{table}-stock").collect())
    )
    assert all(".c00" in name for name in visible(table))


@LOCAL
def test_overwrite_and_partitions(source: Any, table: Path) -> None:
    """Overwrite replaces the table, or only the partitions that are written to."""
    frame = source.range(30).selectExpr("id", "id % 3 as p")
    save(frame, table, partitionBy="p")

    one = source.range(100, 105).selectExpr("id", "1L as p")
    save(one, table, "overwrite", partitionBy="p", partitionOverwriteMode="dynamic")
    dynamic = ids(source, table)
    save(one, table, "overwrite", partitionBy="p")

    assert dynamic == [*(i for i in range(30) if i % 3 != 1), *range(100, 105)]
    assert ids(source, table) == [*range(100, 105)]
    with pytest.raises(Exception, match="not empty"):
        save(one, table, if_exists="fail")
    assert ids(source, table) == [*range(100, 105)]


@LOCAL
def test_orc(source: Any, table: Path) -> None:
    """ORC files are read by Spark with equal rows."""
    frame = source.sql(EVERY_TYPE).drop("older", "ts", "tn", "st", "old")

    save(frame, table, file_format="orc", compression="zstd")

    read = source.read.orc(str(table))
    assert sorted(map(str, read.select(frame.columns).collect())) == sorted(
        map(str, frame.collect())
    )
    assert all(name.endswith(".zstd.orc") for name in visible(table))


@LOCAL
def test_no_rows(source: Any, table: Path) -> None:
    """A frame without rows leaves a table that has its columns."""
    save(source.sql(EVERY_TYPE).where("id < 0").repartition(3), table)

    read = source.read.parquet(str(table))
    assert read.count() == 0
    wanted = source.sql(EVERY_TYPE).schema
    assert [(f.name, f.dataType.simpleString()) for f in read.schema] == [
        (f.name, f.dataType.simpleString()) for f in wanted
    ]
    assert len(visible(table)) == 1


@LOCAL
def test_what_is_refused_before_any_task(source: Any, table: Path) -> None:
    """Columns and options that cannot be had are refused at once, by name; secrets are not said."""
    variant = source.sql("select 1 id, parse_json('{}') v")
    with pytest.raises(Exception, match="column 'v' of type variant"):
        save(variant, table)
    with pytest.raises(Exception, match="did you mean 'partition_by'") as refused:
        save(source.range(3), table, partitonBy="id", **{"storage.account_key": "s3cr3t"})

    assert "s3cr3t" not in str(refused.value)
    with pytest.raises(Exception, match=r"spark\.read\.parquet"):
        source.read.format("asynccommit").load(str(table)).count()
    with pytest.raises(Exception, match="INSERT INTO"):
        source.range(3).write.format("asynccommit").mode("append").saveAsTable("never")
    assert not table.exists()


@pytest.mark.every(3)
@pytest.mark.full
@LOCAL
def test_messages_are_small(source: Any, table: Path) -> None:
    """What a task tells does not grow with its files, nor depend on the size of Arrow's batches.

    Surprises 14 and 15: rows come in small batches, and messages go through the driver.
    """
    noted = table.parent / "sizes"
    noted.mkdir()

    def commit(self: Any, messages: Any) -> None:
        for number, message in enumerate(messages):
            (noted / str(number)).write_text(str(len(message.text)))
        self.really_commit(messages)

    source.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        faulty(source, commit=commit)
        frame = source.range(600).selectExpr("id", "id % 300 as p").repartition(2)
        frame.write.format("faulty").mode("append").option("partitionBy", "p").save(str(table))
    finally:
        source.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")

    assert ids(source, table) == [*range(600)]
    assert len(visible(table)) > 300
    assert all(int(path.read_text()) < 1000 for path in noted.iterdir())


@LOCAL
def test_task_that_fails_and_runs_again(source: Any, table: Path) -> None:
    """A failed attempt leaves nothing, whether it raised or its process died; the next one counts.

    Surprises 1, 4, 6 and 10: Spark tells nobody of a failed attempt, and a dead one tells nothing.
    """
    began = str(table.parent / "began")

    def write(self: Any, iterator: Any) -> Any:
        import signal

        from pyspark import TaskContext

        context: Any = TaskContext.get()
        attempt = context.attemptNumber()
        with open(f"{began}-{context.partitionId()}-{attempt}", "w"):
            pass

        def broken() -> Iterator[Any]:
            yield from iterator
            if attempt == 0:
                raise ValueError("the first attempt fails")
            if attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        return self.really_write(broken())

    faulty(source, write=write)
    frame = source.range(100).selectExpr("id", "id % 2 as p").repartition(2)
    frame.write.format("faulty").mode("append").options(partitionBy="p", memory="1").save(
        str(table)
    )

    assert ids(source, table) == [*range(100)]
    assert settles(table)
    assert len(list(table.parent.glob("began-*"))) == 6


@LOCAL
def test_abort_while_tasks_run(source: Any, table: Path) -> None:
    """A failed job leaves nothing, though tasks of it go on after its abort.

    Surprises 3 and 5: messages of tasks without one are missing, and others write on.
    """
    slow = str(table.parent / "slow")

    def write(self: Any, iterator: Any) -> Any:
        import time

        from pyspark import TaskContext

        context: Any = TaskContext.get()
        if context.partitionId() == 0:
            while not os.path.exists(slow):
                time.sleep(0.05)
            raise ValueError("this task always fails")

        def lasting() -> Iterator[Any]:
            for number, batch in enumerate(iterator):
                yield batch
                with open(slow, "w"):
                    pass
                if number == 0:
                    time.sleep(1.5)

        return self.really_write(lasting())

    faulty(source, write=write)
    frame = source.range(100).selectExpr("id", "id % 2 as p").repartition(2)
    with pytest.raises(Exception, match="always fails"):
        frame.write.format("faulty").mode("append").options(partitionBy="p", memory="1").save(
            str(table)
        )

    assert settles(table)
    assert not table.exists() or visible(table) == []


@LOCAL
def test_commit_that_dies_half_way(source: Any, table: Path) -> None:
    """Abort after half a commit deletes nothing; another write is refused, and resume finishes it.

    Surprise 9: abort is called in another process when the one that commits has died.
    """

    def commit(self: Any, messages: Any) -> None:
        from tests.support.spark import after_renames

        after_renames(2, lambda: os._exit(1))
        self.really_commit(messages)

    faulty(source, commit=commit)
    frame = source.range(100).selectExpr("id", "id % 5 as p").repartition(2)
    with pytest.raises(Exception, match=r"."):
        frame.write.format("faulty").mode("append").option("partitionBy", "p").save(str(table))
    half = visible(table)

    with pytest.raises(Exception, match="asynccommit resume"):
        save(frame, table, partitionBy="p")
    sync.job(str(table)).resume()

    assert len(half) == 2
    assert ids(source, table) == [*range(100)]
    assert settles(table)


@LOCAL
def test_one_token_in_batch(source: Any, table: Path) -> None:
    """Setup, tasks, commit and abort are of one job, in processes of PYSPARK_PYTHON.

    Surprises 8, 13 and 16: tasks answer with a message, whatever process they are in, and the
    commit takes the time that it needs.
    """
    noted = table.parent / "noted"
    noted.mkdir()

    def write(self: Any, iterator: Any) -> Any:
        import sys

        from pyspark import TaskContext

        context: Any = TaskContext.get()
        place = noted / f"task-{context.partitionId()}"
        place.write_text(f"{self._job.job_id} {sys.executable}")
        return self.really_write(iterator)

    def commit(self: Any, messages: Any) -> None:
        import sys
        import time

        time.sleep(1.5)
        (noted / "commit").write_text(f"{self._job.job_id} {sys.executable}")
        self.really_commit(messages)

    faulty(source, write=write, commit=commit)
    source.range(10).repartition(2).write.format("faulty").mode("append").save(str(table))

    texts = {path.read_text() for path in noted.iterdir()}
    assert len(texts) == 1
    assert texts.pop().split(" ", 1)[1] == os.environ["PYSPARK_PYTHON"]
    assert len(list(noted.iterdir())) == 3


# --- streams ------------------------------------------------------------------------------------


class Stream:
    """A stream of files, a batch each, and where it writes."""

    def __init__(self, spark: Any, table: Path) -> None:
        self.spark, self.table = spark, table
        self.rows, self.checkpoint = table.parent / "rows", table.parent / "checkpoint"
        self.count = 0

    def add(self, batches: int) -> None:
        """Add so many files of ten rows."""
        for _ in range(batches):
            first = self.count * 10
            frame = self.spark.range(first, first + 10).selectExpr("id", "id % 2 as p")
            frame.coalesce(1).write.mode("append").parquet(str(self.rows))
            self.count += 1

    def run(self, source: str = "asynccommit", **options: str) -> None:
        """Write what is there, a file in each batch. Raises what the query raises."""
        reading = self.spark.readStream.schema("id long, p long").option("maxFilesPerTrigger", 1)
        writing = reading.parquet(str(self.rows)).writeStream.format(source)
        chosen = {"path": str(self.table), "checkpointLocation": str(self.checkpoint), **options}
        query = writing.options(**chosen).trigger(availableNow=True).start()
        query.awaitTermination(120)

    def forget_commit(self, batch: int) -> None:
        """Undo Spark's own record of a batch, as a crash right before it would."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink()

    def log(self) -> list[str]:
        """Return the files of the sink log."""
        found = (path.name for path in (self.table / "_spark_metadata").iterdir())
        return sorted(name for name in found if not name.startswith("."))


@LOCAL
def test_stream(source: Any, table: Path) -> None:
    """Each batch is listed in the sink log, stock readers see all of them, replays change nothing.

    Surprises 11 and 12: the writer is made anew for each commit, and a batch may be committed
    again.
    """
    stream = Stream(source, table)
    stream.add(2)
    stream.run(partition_by="p")
    first = visible(table)

    stream.forget_commit(1)
    stream.run(partition_by="p")

    assert ids(source, table) == [*range(20)]
    assert stream.log() == ["0", "1"]
    assert len(first) == 4
    assert visible(table) == first
    assert settles(table)
    assert not (table / "_SUCCESS").exists()


@pytest.mark.every(3)
@pytest.mark.full
@LOCAL
def test_stream_whose_commit_fails(source: Any, table: Path) -> None:
    """A batch whose commit fails is not seen, and the query goes on with it when started again.

    Surprises 9 and 11: abort follows, the query fails, and the same batch comes again.
    """
    stream = Stream(source, table)
    stream.add(2)
    broken = str(table.parent / "mended")

    def commit(self: Any, messages: Any, batch: int) -> None:
        if batch == 1 and not os.path.exists(broken):
            raise ValueError("the commit fails")
        self.really_commit(messages, batch)

    faulty(source, stream=True, commit=commit)
    with pytest.raises(Exception, match="the commit fails"):
        stream.run("faulty")
    between = ids(source, table)
    clean = settles(table)
    Path(broken).touch()
    stream.run("faulty")

    assert between == [*range(10)]
    assert clean
    assert ids(source, table) == [*range(20)]
    assert len(visible(table)) == 2


@pytest.mark.full
@LOCAL
def test_stream_that_dies_before_its_batch_is_listed(source: Any, table: Path) -> None:
    """What a run has published that the log does not list is gone when the log has the batch.

    Surprise 12: Spark has not noted the batch either, so it comes again, in files of its own.
    """
    stream = Stream(source, table)
    stream.add(1)

    def commit(self: Any, messages: Any, batch: int) -> None:
        from asynccommit.streaming.log import SinkLog

        def add(*given: Any, **more: Any) -> None:
            os._exit(1)

        SinkLog.add = add  # type: ignore[assignment]
        self.really_commit(messages, batch)

    faulty(source, stream=True, commit=commit)
    with pytest.raises(Exception, match=r"."):
        stream.run("faulty", partition_by="p")
    published, listed = visible(table), stream.log()
    stream.run(partition_by="p")

    assert len(published) == 2
    assert listed == []
    assert ids(source, table) == [*range(10)]
    assert len(visible(table)) == 2
    assert settles(table)


@LOCAL
def test_stream_leaves_the_end_to_the_next_run(source: Any, table: Path) -> None:
    """What a run that was killed left of its job is removed by the next one of the query."""
    stream = Stream(source, table)
    stream.add(1)

    def write(self: Any, iterator: Any) -> Any:
        return self.really_write(iterator)

    def commit(self: Any, messages: Any, batch: int) -> None:
        os._exit(1)

    def abort(self: Any, messages: Any, batch: int) -> None:
        os._exit(1)

    faulty(source, stream=True, write=write, commit=commit, abort=abort)
    with pytest.raises(Exception, match=r"."):
        stream.run("faulty")
    left = list((table / "_temporary").iterdir())
    stream.run()

    assert len(left) == 1
    assert ids(source, table) == [*range(10)]
    assert settles(table)


@pytest.mark.full
@LOCAL
def test_stream_with_another_checkpoint(source: Any, table: Path) -> None:
    """A query with a new checkpoint is refused, where Spark's sink would lose its rows."""
    stream = Stream(source, table)
    stream.add(1)
    stream.run()
    stream.checkpoint = table.parent / "another"

    with pytest.raises(Exception, match="A query with a new checkpoint"):
        stream.run()

    assert ids(source, table) == [*range(10)]
    assert len(visible(table)) == 1


@LOCAL
def test_stock_sink_goes_on(source: Any, table: Path) -> None:
    """Spark's own file sink continues the table with the same checkpoint, and we continue it."""
    stream = Stream(source, table)
    stream.add(1)
    stream.run()
    stream.add(1)
    stream.run("parquet")
    stream.add(1)
    stream.run()

    assert ids(source, table) == [*range(30)]
    assert stream.log() == ["0", "1", "2"]


@LOCAL
def test_complete_mode_is_refused(source: Any, table: Path) -> None:
    """A stream that would write the whole table each time is refused, with what to do instead."""
    stream = Stream(source, table)
    stream.add(1)
    reading = source.readStream.schema("id long, p long").parquet(str(stream.rows))
    writing = reading.groupBy("p").count().writeStream.format("asynccommit").outputMode("complete")

    query = writing.options(path=str(table), checkpointLocation=str(stream.checkpoint)).start()
    with pytest.raises(Exception, match="foreachBatch"):
        query.processAllAvailable()
    query.stop()

    assert not table.exists()


# --- a cluster ----------------------------------------------------------------------------------


@pytest.mark.full
@CLUSTER
@pytest.mark.timeout(300)
def test_speculation(source: Any, table: Path) -> None:
    """Of two attempts of a task one counts, and the one that comes late leaves nothing.

    Surprises 2 and 7: both write, both think that they are done, and one outlives the commit.
    """
    first = str(table.parent / "first")

    def write(self: Any, iterator: Any) -> Any:
        import time

        from pyspark import TaskContext

        slow = False
        context: Any = TaskContext.get()
        if context.partitionId() == 0:
            try:
                os.close(os.open(first, os.O_CREAT | os.O_EXCL))
                slow = True
            except FileExistsError:
                pass

        def waiting() -> Iterator[Any]:
            yield from iterator
            if slow:
                time.sleep(60)

        return self.really_write(waiting())

    faulty(source, write=write)
    frame = source.range(400).selectExpr("id", "id % 2 as p").repartition(4)
    frame.write.format("faulty").mode("append").options(partitionBy="p", memory="1").save(
        str(table)
    )

    assert os.path.exists(first)
    assert ids(source, table) == [*range(400)]
    assert settles(table)
    assert len({name.split("part-")[1][:5] for name in visible(table)}) == 4
    assert all(pq.read_table(table / name).num_rows for name in visible(table))


@pytest.mark.full
@CLUSTER
@pytest.mark.timeout(300)
def test_stream_on_a_cluster(source: Any, table: Path) -> None:
    """A stream's batches are written by executors, and committed once each."""
    stream = Stream(source, table)
    stream.add(2)

    stream.run(partition_by="p")
    stream.forget_commit(1)
    stream.run(partition_by="p")

    assert ids(source, table) == [*range(20)]
    assert settles(table)


# --- help ---------------------------------------------------------------------------------------


def faulty(spark: Any, *, stream: bool = False, **methods: Any) -> None:
    """Register ``format("faulty")``: the data source, some of its writer's methods replaced.

    What is replaced is there as ``really_write`` and so on. The classes are made here, so that
    executors get them with their code.
    """

    def changed(writer: Any) -> Any:
        kind = type(writer)
        before = {f"really_{name}": getattr(kind, name) for name in methods}
        writer.__class__ = type("Faulty", (kind,), {**before, **methods})
        return writer

    class Faulty(AsyncCommitDataSource):
        @classmethod
        def name(cls) -> str:
            return "faulty"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return changed(super().writer(schema, overwrite))

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            return changed(super().streamWriter(schema, overwrite))

    spark.dataSource.register(Faulty)

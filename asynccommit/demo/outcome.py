"""Findings of the local demo, their display, and code shared by all demos."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.inspect.terminal import show_seconds
from asynccommit.inspect.text import check_list, facts_table, job_report, stage_times
from asynccommit.results import JobReport

_NOTE = "Commit times are Spark's own metrics; that of the tasks is theirs added up."


class WrittenTable(Protocol):
    """One table, as one committer wrote it, with the attributes common to all demos."""

    @property
    def task_commit(self) -> float | None:
        """Total seconds of all task commits, measured by Spark.

        ``None`` if not measured.
        """

    @property
    def job_commit(self) -> float | None:
        """Seconds of the job commit, measured by Spark; ``None`` if not measured."""

    @property
    def write(self) -> float:
        """Wall-clock seconds of the whole write."""

    @property
    def rows(self) -> int:
        """Number of rows read back."""

    @property
    def content(self) -> str:
        """Order-independent sum of the hashes of all rows."""


@dataclass(frozen=True, slots=True)
class Findings(ABC):
    """The findings of a demo, with checks of the expected results."""

    @property
    @abstractmethod
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""

    @property
    def proven(self) -> bool:
        """Return whether all checks passed."""
        return all(self.checks.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "checks": dict(self.checks), "proven": self.proven}


@dataclass(frozen=True, slots=True)
class StoreBehaviour:
    """The behaviour of an emulated store.

    Attributes:
        latency: latency of each response, such as ``20ms``.
        limit: accepted requests per second; on Google Cloud Storage only writes count.
        lost: share of the renames that are done and whose response is lost, such as ``2%``.
    """

    latency: str = "20ms"
    limit: int = 1000
    lost: str = "2%"


@dataclass(frozen=True, slots=True)
class Overwritten:
    """One partition, overwritten dynamically.

    Attributes:
        partition: its path below the table.
        seconds: duration of the whole write.
        replaced: number of files replaced.
        right: whether the table holds the expected rows.
        untouched: whether every object of other partitions is unchanged.
    """

    partition: str
    seconds: float
    replaced: int
    right: bool
    untouched: bool

    @property
    def check(self) -> Mapping[str, bool]:
        """Return each check of the partition and whether it passed."""
        done = self.right and self.untouched
        return {"one partition was overwritten, and no other was touched": done}


@dataclass(frozen=True, slots=True)
class Killed:
    """The job of a driver that was killed during its commit.

    Attributes:
        url: URL of the table.
        visible: number of files at their final paths when the driver died.
        seconds: duration of the commit that finished the job.
        report: report of that commit.
        right: whether the table holds the rows of the source.
    """

    url: str
    visible: int
    seconds: float
    report: JobReport
    right: bool

    @property
    def finished(self) -> bool:
        """Return whether the driver died half-way and the table is now correct."""
        return self.right and self.report.resumed and 0 < self.visible < self.report.files


@dataclass(frozen=True, slots=True)
class Side:
    """One table, as one committer wrote it.

    Attributes:
        path: path of the table.
        files: number of data files found.
        partitions: number of directories that hold them.
        task_commit: total seconds of all task commits, measured by Spark; ``None`` if not measured.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
        write: wall-clock seconds of the whole write.
        left: whether a ``_temporary`` directory is left.
        rows: number of rows read back.
        content: order-independent sum of the hashes of all rows.
    """

    path: str
    files: int
    partitions: int
    task_commit: float | None
    job_commit: float | None
    write: float
    left: bool
    rows: int
    content: str


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


def table(outcome: DemoResult) -> RenderableType:
    """Return the comparison as a table, with the checks and the locations."""
    places = {
        "Spark's table": outcome.spark.path,
        "our table": outcome.ours.path,
        "marker": outcome.success or "missing",
        "report": outcome.report or "missing",
        "Spark's log": outcome.log,
    }
    return Group(
        _comparison(outcome),
        Text(_NOTE, "dim"),
        Text(f"Our job commit: {stage_times(outcome.stages)}.", "dim"),
        Padding(check_list(outcome.checks), (1, 0)),
        facts_table(places),
    )


def _comparison(outcome: DemoResult) -> Table:
    spark, ours = outcome.spark, outcome.ours
    shown = comparison("Spark's committer", "speed-up")
    shown.add_row("files", f"{spark.files:,}", f"{ours.files:,}", "")
    shown.add_row("partitions", f"{spark.partitions:,}", f"{ours.partitions:,}", "")
    add_times(shown, spark, ours)
    return shown


# --- shared by all demos ---------------------------------------------------------------------


def both_hold(rows: int, content: str, *sides: WrittenTable) -> Mapping[str, bool]:
    """Return whether both tables hold the expected rows, as a check."""
    hold = all((side.rows, side.content) == (rows, content) for side in sides)
    return {f"both tables hold the {rows:,} rows of the source": hold}


def comparison(theirs: str, ratio: str) -> Table:
    """Return an empty comparison table of the committer ``theirs`` and ours."""
    shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("", theirs, "asynccommit", ratio):
        shown.add_column(name, justify="right" if name else "left")
    return shown


def add_times(shown: Table, theirs: WrittenTable, ours: WrittenTable) -> None:
    """Add the rows of measured seconds to a comparison."""
    for name, long, short in (
        ("task commit", theirs.task_commit, ours.task_commit),
        ("job commit", theirs.job_commit, ours.job_commit),
        ("whole write", theirs.write, ours.write),
    ):
        shown.add_row(name, show_time(long), show_time(short), show_ratio(long, short))


def compared(
    outcome: Findings, shown: Table, report: JobReport, facts: Mapping[str, str]
) -> RenderableType:
    """Return a comparison with our job's report, further facts and the checks."""
    return Group(
        shown,
        Text(_NOTE, "dim"),
        Padding(job_report(report), (1, 0)),
        facts_table(facts),
        Padding(check_list(outcome.checks), (1, 0, 0, 0)),
    )


def show_time(seconds: float | None) -> str:
    """Return a time for display; an unknown time is shown as such."""
    return "not known" if seconds is None else show_seconds(seconds)


def show_ratio(theirs: float | None, mine: float | None) -> str:
    """Return the ratio of theirs to mine for display; empty if undefined."""
    if not theirs or not mine:
        return ""
    ratio = theirs / mine
    if ratio < 0.01:
        return "< 0.01x"
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"

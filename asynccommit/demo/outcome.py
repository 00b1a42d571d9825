"""What the demo has found, and how it is shown; and what the other demos have alike."""

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
    """One table, as one committer wrote it: what all demos tell of it."""

    @property
    def task_commit(self) -> float | None:
        """Seconds, all tasks added up, as Spark counts them; ``None`` if it did not."""

    @property
    def job_commit(self) -> float | None:
        """Seconds, as Spark counts them; ``None`` if it did not."""

    @property
    def write(self) -> float:
        """Seconds of the whole write, by the clock."""

    @property
    def rows(self) -> int:
        """How many rows are read back."""

    @property
    def content(self) -> str:
        """A sum over the hashes of all rows, whatever their order."""


@dataclass(frozen=True, slots=True)
class Findings(ABC):
    """What a demo has found, and whether that is what it was to show."""

    @property
    @abstractmethod
    def checks(self) -> Mapping[str, bool]:
        """What had to be shown, and whether it was."""

    @property
    def proven(self) -> bool:
        """Whether all of it was shown."""
        return all(self.checks.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "checks": dict(self.checks), "proven": self.proven}


@dataclass(frozen=True, slots=True)
class StoreBehaviour:
    """How the emulated store behaves.

    Attributes:
        latency: of each answer, as ``20ms``.
        limit: requests a second that it takes; on Google Cloud Storage those that write.
        lost: share of the renames that are done and whose answer is lost, as ``2%``.
    """

    latency: str = "20ms"
    limit: int = 1000
    lost: str = "2%"


@dataclass(frozen=True, slots=True)
class Overwritten:
    """One partition, overwritten dynamically.

    Attributes:
        partition: its path below the table.
        seconds: of the whole write.
        replaced: how many files were replaced.
        right: whether the table holds the rows that it should.
        untouched: whether every object of other partitions is the very one it was.
    """

    partition: str
    seconds: float
    replaced: int
    right: bool
    untouched: bool

    @property
    def check(self) -> Mapping[str, bool]:
        """What had to be shown of it, and whether it was."""
        done = self.right and self.untouched
        return {"one partition was overwritten, and no other was touched": done}


@dataclass(frozen=True, slots=True)
class Killed:
    """A driver that was killed while it committed, and what became of its job.

    Attributes:
        url: the table.
        visible: how many files were in their places when it died.
        seconds: of the commit that finished the job.
        report: of that commit.
        right: whether the table holds the rows of the source.
    """

    url: str
    visible: int
    seconds: float
    report: JobReport
    right: bool

    @property
    def finished(self) -> bool:
        """Whether it died half-way, and all is as it should be now."""
        return self.right and self.report.resumed and 0 < self.visible < self.report.files


@dataclass(frozen=True, slots=True)
class Side:
    """One table, as one committer wrote it.

    Attributes:
        path: where it is.
        files: data files that are there.
        partitions: directories that hold them.
        task_commit: seconds, all tasks added up, as Spark counts them; ``None`` if it did not.
        job_commit: seconds, as Spark counts them; ``None`` if it did not.
        write: seconds of the whole write, by the clock.
        left: whether a ``_temporary`` is left.
        rows: how many rows are read back.
        content: a sum over the hashes of all rows, whatever their order.
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
    """What the demo has found.

    Attributes:
        rows: how many there are to be written.
        content: the sum over their hashes.
        spark: the table that Spark committed.
        ours: the table that this package committed.
        success: the ``_SUCCESS`` of our table.
        report: our summary of the job.
        stages: what our job commit spent its seconds on.
        log: what Spark logged.
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
        """What had to be shown, and whether it was."""
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
    """Return the comparison as a table, with the checks and where things lie."""
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


# --- what the demos have alike ---------------------------------------------------------------


def both_hold(rows: int, content: str, *sides: WrittenTable) -> Mapping[str, bool]:
    """Return the check that tables hold what was to be written, and whether they do."""
    hold = all((side.rows, side.content) == (rows, content) for side in sides)
    return {f"both tables hold the {rows:,} rows of the source": hold}


def comparison(theirs: str, ratio: str) -> Table:
    """Return a table without rows for what the committer ``theirs`` and ours took."""
    shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("", theirs, "asynccommit", ratio):
        shown.add_column(name, justify="right" if name else "left")
    return shown


def add_times(shown: Table, theirs: WrittenTable, ours: WrittenTable) -> None:
    """Add what was measured in seconds to a comparison."""
    for name, long, short in (
        ("task commit", theirs.task_commit, ours.task_commit),
        ("job commit", theirs.job_commit, ours.job_commit),
        ("whole write", theirs.write, ours.write),
    ):
        shown.add_row(name, show_time(long), show_time(short), show_ratio(long, short))


def compared(
    outcome: Findings, shown: Table, report: JobReport, facts: Mapping[str, str]
) -> RenderableType:
    """Return a comparison with our job's report, what else is known, and the checks."""
    return Group(
        shown,
        Text(_NOTE, "dim"),
        Padding(job_report(report), (1, 0)),
        facts_table(facts),
        Padding(check_list(outcome.checks), (1, 0, 0, 0)),
    )


def show_time(seconds: float | None) -> str:
    """Return a time for people, or that it is not known."""
    return "not known" if seconds is None else show_seconds(seconds)


def show_ratio(theirs: float | None, mine: float | None) -> str:
    """Return how many times as much theirs is; nothing where that cannot be said."""
    if not theirs or not mine:
        return ""
    ratio = theirs / mine
    if ratio < 0.01:
        return "< 0.01x"
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"

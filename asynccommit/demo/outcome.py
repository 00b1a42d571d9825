"""What the demo has found, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.report.plain import show_seconds
from asynccommit.report.text import check_list, facts_table, stage_times


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
class Outcome:
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
            f"both tables hold the {self.rows:,} rows of the source": all(
                (side.rows, side.content) == (self.rows, self.content) for side in sides
            ),
            "both have the same number of files and partitions": (
                len({(side.files, side.partitions) for side in sides}) == 1
            ),
            "no _temporary is left": not any(side.left for side in sides),
            "_SUCCESS and the report are there": None not in (self.success, self.report),
        }

    @property
    def proven(self) -> bool:
        """Whether all of it was shown."""
        return all(self.checks.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "checks": dict(self.checks), "proven": self.proven}


def table(outcome: Outcome) -> RenderableType:
    """Return the comparison as a table, with the checks and where things lie."""
    places = {
        "Spark's table": outcome.spark.path,
        "our table": outcome.ours.path,
        "marker": outcome.success or "missing",
        "report": outcome.report or "missing",
        "Spark's log": outcome.log,
    }
    notes = "Commit times are Spark's own metrics; that of the tasks is theirs added up."
    return Group(
        _comparison(outcome),
        Text(notes, "dim"),
        Text(f"Our job commit: {stage_times(outcome.stages)}.", "dim"),
        Padding(check_list(outcome.checks), (1, 0)),
        facts_table(places),
    )


def _comparison(outcome: Outcome) -> Table:
    spark, ours = outcome.spark, outcome.ours
    shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("", "Spark's committer", "asynccommit", "speed-up"):
        shown.add_column(name, justify="right" if name else "left")
    shown.add_row("files", f"{spark.files:,}", f"{ours.files:,}", "")
    shown.add_row("partitions", f"{spark.partitions:,}", f"{ours.partitions:,}", "")
    for name, theirs, mine in (
        ("task commit", spark.task_commit, ours.task_commit),
        ("job commit", spark.job_commit, ours.job_commit),
        ("whole write", spark.write, ours.write),
    ):
        shown.add_row(name, show_time(theirs), show_time(mine), show_ratio(theirs, mine))
    return shown


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

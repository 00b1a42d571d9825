"""What the demo on Google Cloud Storage has found, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.demo.adls_outcome import Weather
from asynccommit.demo.outcome import show_ratio, show_time
from asynccommit.report.plain import show_seconds
from asynccommit.report.text import check_list, facts_table, job_report
from asynccommit.results import JobReport


@dataclass(frozen=True, slots=True)
class GcsSide:
    """One table, as one committer wrote it.

    Attributes:
        url: where it is.
        files: data files that are there.
        task_commit: seconds, all tasks added up, as Spark counts them; ``None`` if it did not.
        job_commit: seconds, as Spark counts them; ``None`` if it did not.
        write: seconds of the whole write, by the clock.
        requests: what the emulator was asked for, by operation.
        refused: requests that were too many.
        lost: moves that were done and whose answer was lost.
        left: objects below ``_temporary`` that are left.
        rows: how many rows are read back.
        content: a sum over the hashes of all rows, whatever their order.
    """

    url: str
    files: int
    task_commit: float | None
    job_commit: float | None
    write: float
    requests: Mapping[str, int]
    refused: int
    lost: int
    left: int
    rows: int
    content: str


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


@dataclass(frozen=True, slots=True)
class GcsOutcome:
    """What the demo on Google Cloud Storage has found.

    Attributes:
        rows: how many there are to be written.
        content: the sum over their hashes.
        spark: the table that Spark committed, while no answer was lost.
        ours: the table that this package committed, while answers were lost.
        report: what our job commit says of itself.
        trial: what becomes of a small job of Spark's committer when answers are lost: the error,
            or ``None``.
        overwritten: one partition of our table.
        killed: the job whose driver was killed.
        left: objects below ``_temporary`` of our tables that are left in the end.
        weather: how the store behaved.
        log: what Spark logged.
    """

    rows: int
    content: str
    spark: GcsSide
    ours: GcsSide
    report: JobReport
    trial: str | None
    overwritten: Overwritten
    killed: Killed
    left: int
    weather: Weather
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """What had to be shown, and whether it was."""
        spark, ours, killed = self.spark, self.ours, self.killed
        settled = self.report.recovered.get("rename", 0)
        return {
            f"both tables hold the {self.rows:,} rows of the source": all(
                (side.rows, side.content) == (self.rows, self.content) for side in (spark, ours)
            ),
            f"each of the {ours.files:,} files is there once": (
                spark.files == ours.files == self.report.files
            ),
            # Some of them may have been refused, and were sent again.
            f"the answers to {ours.lost} moves were lost, and each was settled": (
                0 <= ours.lost - settled <= ours.refused
            ),
            "one partition was overwritten, and no other was touched": (
                self.overwritten.right and self.overwritten.untouched
            ),
            f"a driver was killed with {killed.visible:,} files moved, and its job was finished": (
                killed.right and killed.report.resumed and 0 < killed.visible < killed.report.files
            ),
            "no _temporary is left, and _SUCCESS is there": (
                not self.left and None not in (self.report.success, killed.report.success)
            ),
        }

    @property
    def proven(self) -> bool:
        """Whether all of it was shown."""
        return all(self.checks.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "checks": dict(self.checks), "proven": self.proven}


def gcs_table(outcome: GcsOutcome) -> RenderableType:
    """Return the comparison as a table, with the checks and where things lie."""
    day, killed = outcome.overwritten, outcome.killed
    facts = {
        f"overwrite of {day.partition}": f"{show_seconds(day.seconds)}, {day.replaced} files",
        "commit of the job that was killed": show_seconds(killed.seconds),
        "Spark's committer and a lost answer": outcome.trial or "its job was done",
        "Spark's log": outcome.log,
    }
    return Group(
        _comparison(outcome),
        Text("Commit times are Spark's own metrics; that of the tasks is theirs added up.", "dim"),
        Padding(job_report(outcome.report), (1, 0)),
        facts_table(facts),
        Padding(check_list(outcome.checks), (1, 0, 0, 0)),
    )


def _comparison(outcome: GcsOutcome) -> Table:
    spark, ours = outcome.spark, outcome.ours
    shown = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for name in ("", "Spark's committer", "asynccommit", "ratio"):
        shown.add_column(name, justify="right" if name else "left")
    lost = outcome.weather.lost
    shown.add_row("lost answers", "none", f"{ours.lost:,} ({lost} of moves)", "")
    shown.add_row("files", f"{spark.files:,}", f"{ours.files:,}", "")
    counts = {
        "requests": (sum(spark.requests.values()), sum(ours.requests.values())),
        "  moves and copies": (_moves(spark), _moves(ours)),
    }
    for name, (many, few) in counts.items():
        shown.add_row(name, f"{many:,}", f"{few:,}", show_ratio(many, few))
    shown.add_row("  too many (429)", f"{spark.refused:,}", f"{ours.refused:,}", "")
    for name, theirs, mine in (
        ("task commit", spark.task_commit, ours.task_commit),
        ("job commit", spark.job_commit, ours.job_commit),
        ("whole write", spark.write, ours.write),
    ):
        shown.add_row(name, show_time(theirs), show_time(mine), show_ratio(theirs, mine))
    return shown


def _moves(side: GcsSide) -> int:
    return sum(side.requests.get(op, 0) for op in ("move", "rewrite"))

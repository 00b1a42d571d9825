"""What the demo on Google Cloud Storage has found, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table

from asynccommit.demo.outcome import (
    Findings,
    Killed,
    Overwritten,
    StoreBehaviour,
    add_times,
    both_hold,
    compared,
    comparison,
    show_ratio,
)
from asynccommit.inspect.terminal import show_seconds
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
class GcsOutcome(Findings):
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
    weather: StoreBehaviour
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """What had to be shown, and whether it was."""
        spark, ours, killed = self.spark, self.ours, self.killed
        settled = self.report.recovered.get("rename", 0)
        return {
            **both_hold(self.rows, self.content, spark, ours),
            f"each of the {ours.files:,} files is there once": (
                spark.files == ours.files == self.report.files
            ),
            # Some of them may have been refused, and were sent again.
            f"the answers to {ours.lost} moves were lost, and each was settled": (
                0 <= ours.lost - settled <= ours.refused
            ),
            **self.overwritten.check,
            f"a driver was killed with {killed.visible:,} files moved, and its job was finished": (
                killed.finished
            ),
            "no _temporary is left, and _SUCCESS is there": (
                not self.left and None not in (self.report.success, killed.report.success)
            ),
        }


def gcs_table(outcome: GcsOutcome) -> RenderableType:
    """Return the comparison as a table, with the checks and where things lie."""
    day, killed = outcome.overwritten, outcome.killed
    facts = {
        f"overwrite of {day.partition}": f"{show_seconds(day.seconds)}, {day.replaced} files",
        "commit of the job that was killed": show_seconds(killed.seconds),
        "Spark's committer and a lost answer": outcome.trial or "its job was done",
        "Spark's log": outcome.log,
    }
    return compared(outcome, _comparison(outcome), outcome.report, facts)


def _comparison(outcome: GcsOutcome) -> Table:
    spark, ours = outcome.spark, outcome.ours
    shown = comparison("Spark's committer", "ratio")
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
    add_times(shown, spark, ours)
    return shown


def _moves(side: GcsSide) -> int:
    return sum(side.requests.get(op, 0) for op in ("move", "rewrite"))

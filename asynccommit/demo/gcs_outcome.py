"""Findings of the Google Cloud Storage demo and their display."""

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
        url: URL of the table.
        files: number of data files found.
        task_commit: total seconds of all task commits, measured by Spark; ``None`` if not measured.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
        write: wall-clock seconds of the whole write.
        requests: number of requests to the emulator, by operation.
        refused: number of requests rejected by the rate limit.
        lost: number of moves that were done and whose response was lost.
        left: objects left below ``_temporary``.
        rows: number of rows read back.
        content: order-independent sum of the hashes of all rows.
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
    """The findings of the Google Cloud Storage demo.

    Attributes:
        rows: number of rows to write.
        content: sum of the hashes of these rows.
        spark: the table that Spark committed, while no response was lost.
        ours: the table that this package committed, while responses were lost.
        report: report of this package's job commit.
        trial: result of a small job with Spark's committer while responses are lost: the error, or
            ``None``.
        overwritten: one partition of our table.
        killed: the job whose driver was killed.
        left: objects left below ``_temporary`` of our tables at the end.
        weather: behaviour of the store.
        log: log file of Spark.
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
        """Return each check and whether it passed."""
        spark, ours, killed = self.spark, self.ours, self.killed
        settled = self.report.recovered.get("rename", 0)
        return {
            **both_hold(self.rows, self.content, spark, ours),
            f"each of the {ours.files:,} files is there once": (
                spark.files == ours.files == self.report.files
            ),
            # Some of them may have been rejected, and were sent again.
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
    """Return the comparison as a table, with the checks and the locations."""
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

"""Findings of the S3 demo and their display."""

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
    show_time,
)
from asynccommit.inspect.terminal import count_of, show_seconds
from asynccommit.results import JobReport


@dataclass(frozen=True, slots=True)
class S3Side:
    """One table, as one committer wrote it.

    Attributes:
        url: URL of the table.
        files: number of data files found.
        task_commit: total seconds of all task commits, measured by Spark; ``None`` if not measured.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
        write: wall-clock seconds of the whole write.
        requests: number of requests to the proxy, by operation.
        refused: number of requests rejected by the rate limit.
        lost: number of completions that were done and whose response was lost.
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
    rows: int
    content: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A few flights, as PySpark writes them without classes for S3A's committers.

    Attributes:
        files: number of data files found.
        copies: number of objects copied to make them.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
    """

    files: int
    copies: int
    job_commit: float | None


@dataclass(frozen=True, slots=True)
class S3Outcome(Findings):
    """The findings of the S3 demo.

    Attributes:
        rows: number of rows to write.
        content: sum of the hashes of these rows.
        hadoop: the table that Hadoop committed, while no response was lost.
        ours: the table that this package committed, while responses were lost.
        copied: result of Spark's write where it cannot commit uploads.
        report: report of this package's job commit.
        trial: result of a small job with Hadoop's committer while responses are lost: the error, or
            ``None``.
        overwritten: one partition of our table.
        killed: the job whose driver was killed.
        left: objects of jobs left below our tables at the end.
        uploads: open uploads left below our tables.
        weather: behaviour of the store.
        log: log file of Spark.
    """

    rows: int
    content: str
    hadoop: S3Side
    ours: S3Side
    copied: Copied
    report: JobReport
    trial: str | None
    overwritten: Overwritten
    killed: Killed
    left: int
    uploads: int
    weather: StoreBehaviour
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        hadoop, ours, killed = self.hadoop, self.ours, self.killed
        return {
            **both_hold(self.rows, self.content, hadoop, ours),
            f"each of the {ours.files:,} files is there once": (
                hadoop.files == ours.files == self.report.files
            ),
            f"the answers to {ours.lost} completions were lost, and each was settled": (
                ours.lost == self.report.recovered.get("complete_upload", 0)
            ),
            **self.overwritten.check,
            f"a driver was killed with {killed.visible:,} uploads completed, and its job was "
            "finished": killed.finished,
            "no upload is pending": not self.uploads,
            "nothing of a job is left, and _SUCCESS is there": (
                not self.left and None not in (self.report.success, killed.report.success)
            ),
        }


def s3_table(outcome: S3Outcome) -> RenderableType:
    """Return the comparison as a table, with the checks and the locations."""
    day, killed, copied = outcome.overwritten, outcome.killed, outcome.copied
    facts = {
        "as PySpark comes": f"{count_of(copied.files, 'file')} by {copied.copies} copies, "
        f"job commit {show_time(copied.job_commit)}",
        f"overwrite of {day.partition}": f"{show_seconds(day.seconds)}, {day.replaced} files",
        "commit of the job that was killed": show_seconds(killed.seconds),
        "Hadoop's committer and lost answers": outcome.trial or "its job was done",
        "Spark's log": outcome.log,
    }
    return compared(outcome, _comparison(outcome), outcome.report, facts)


def _comparison(outcome: S3Outcome) -> Table:
    hadoop, ours = outcome.hadoop, outcome.ours
    shown = comparison("Hadoop's committer", "ratio")
    shown.add_row("lost answers", "none", f"{ours.lost:,} ({outcome.weather.lost})", "")
    shown.add_row("files", f"{hadoop.files:,}", f"{ours.files:,}", "")
    theirs, mine = sum(hadoop.requests.values()), sum(ours.requests.values())
    shown.add_row("requests", f"{theirs:,}", f"{mine:,}", show_ratio(theirs, mine))
    for op in sorted({*hadoop.requests, *ours.requests}):
        many, few = hadoop.requests.get(op, 0), ours.requests.get(op, 0)
        shown.add_row(f"  {op}", f"{many:,}", f"{few:,}", "")
    shown.add_row("  too many (503)", f"{hadoop.refused:,}", f"{ours.refused:,}", "")
    add_times(shown, hadoop, ours)
    return shown

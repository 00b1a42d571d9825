"""Findings that all demos share, and their display."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asynccommit.inspect.text import check_list, job_report
from asynccommit.results import JobReport
from asynccommit.runtime.cells import facts_table
from asynccommit.runtime.terminal import show_seconds

NOTE = "Commit times are Spark's own metrics; that of the tasks is theirs added up."


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

    @abstractmethod
    def table(self) -> RenderableType:
        """Return the findings as a table, with the checks and the locations."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "checks": dict(self.checks), "proven": self.proven}


class Timing(NamedTuple):
    """Measurements of one write.

    Attributes:
        write: wall-clock seconds of the whole write.
        task_commit: total seconds of all task commits, measured by Spark; ``None`` if not measured.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
    """

    write: float
    task_commit: float | None
    job_commit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTable:
    """One table, as one committer wrote it.

    Attributes:
        files: number of data files found.
        write: wall-clock seconds of the whole write.
        task_commit: total seconds of all task commits, measured by Spark; ``None`` if not measured.
        job_commit: seconds of the job commit, measured by Spark; ``None`` if not measured.
        rows: number of rows read back.
        content: order-independent sum of the hashes of all rows.
    """

    files: int
    write: float
    task_commit: float | None
    job_commit: float | None
    rows: int
    content: str


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
        Text(NOTE, "dim"),
        Padding(job_report(report), (1, 0)),
        facts_table(facts),
        Padding(check_list(outcome.checks), (1, 0, 0, 0)),
    )


def short_path(path: str) -> str:
    """Return a path as it is typed in the current directory."""
    here = os.path.relpath(path)
    return path if here.startswith(os.pardir) else here


def show_time(seconds: float | None) -> str:
    """Return a time for display; an unknown time is shown as such."""
    return "not known" if seconds is None else show_seconds(seconds)


def show_ratio(theirs: float | None, mine: float | None) -> str:
    """Return the ratio of theirs to mine for display; empty if undefined."""
    if not theirs or not mine:
        return ""
    ratio = theirs / mine
    if 0.95 <= ratio < 1.05:
        return "the same"
    return f"{ratio:,.1f}x less" if ratio > 1 else f"{1 / ratio:,.1f}x more"


def in_words(what: str, theirs: float | None, mine: float | None) -> str:
    """Return one sentence that compares two times; empty if one is unknown."""
    if not theirs or not mine:
        return ""
    ours = (show_seconds(mine), "asynccommit", mine)
    others = (show_seconds(theirs), "Spark's committer", theirs)
    short, long = sorted((ours, others), key=lambda side: side[2])
    ratio = long[2] / short[2]
    much = "about the same" if ratio < 1.1 else f"{ratio:,.1f} times as long"
    return f"{what} took {short[0]} with {short[1]}, and {long[0]}, {much}, with {long[1]}."

"""Findings of the ADLS demo and their display."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding

from asynccommit.demo.outcome import Findings, StoreBehaviour
from asynccommit.inspect.terminal import show_seconds
from asynccommit.inspect.text import check_list, facts_table, job_report
from asynccommit.results import JobReport

_OTHERS = 10
"""Number of renames not of data files: of manifests, by Spark, and of files that stores write."""


@dataclass(frozen=True, slots=True)
class AdlsOutcome(Findings):
    """The findings of the ADLS demo.

    Attributes:
        url: URL of the table.
        rows: number of rows to write.
        read: number of rows read back.
        same: whether the rows read back equal the rows written.
        files: number of data files found.
        left: paths left below ``_temporary``.
        write: duration of the whole write in seconds.
        report: report of this package's job commit.
        requests: number of requests to the emulator, by operation.
        struck: number of injected faults, by kind.
        weather: configured behaviour of the emulator.
        log: log file of Spark.
    """

    url: str
    rows: int
    read: int
    same: bool
    files: int
    left: int
    write: float
    report: JobReport
    requests: Mapping[str, int]
    struck: Mapping[str, int]
    weather: StoreBehaviour
    log: str

    @property
    def checks(self) -> Mapping[str, bool]:
        """Return each check and whether it passed."""
        lost = self.struck.get("cut rename", 0)
        return {
            f"the table holds the {self.rows:,} rows of the source": self.same,
            f"each of the {self.files:,} files is there once": self.files == self.report.files,
            f"the answers to {lost} renames were lost, and each of ours was settled": (
                0 <= lost - self.report.recovered.get("rename", 0) <= _OTHERS
            ),
            "no _temporary is left, and _SUCCESS is there": (
                not self.left and self.report.success is not None
            ),
        }


def adls_table(outcome: AdlsOutcome) -> RenderableType:
    """Return the run as a table, with the checks and the locations."""
    asked = ", ".join(f"{name} {n:,}" for name, n in sorted(outcome.requests.items()))
    struck = ", ".join(f"{name} {n:,}" for name, n in sorted(outcome.struck.items()))
    facts = {
        "whole write": show_seconds(outcome.write),
        "requests": f"{sum(outcome.requests.values()):,} ({asked})",
        "weather": struck or "calm",
        "Spark's log": outcome.log,
    }
    return Group(
        job_report(outcome.report),
        Padding(facts_table(facts), (1, 0)),
        check_list(outcome.checks),
    )

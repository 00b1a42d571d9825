"""What the demo on ADLS has found, and how it is shown."""

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
"""Renames that are not of data files: of manifests, by Spark's side, and of what stores write."""


@dataclass(frozen=True, slots=True)
class AdlsOutcome(Findings):
    """What the demo on ADLS has found.

    Attributes:
        url: the table.
        rows: how many there are to be written.
        read: how many are read back.
        same: whether they are the same rows.
        files: data files that are there.
        left: paths below ``_temporary`` that are left.
        write: seconds of the whole write.
        report: what our job commit says of itself.
        requests: what the emulator was asked for, by operation.
        struck: how often its weather struck, by kind.
        weather: how it was set.
        log: what Spark logged.
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
        """What had to be shown, and whether it was."""
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
    """Return the run as a table, with the checks and where things lie."""
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

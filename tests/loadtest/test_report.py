"""The report as text says what was found, and what is missing."""

from __future__ import annotations

from dataclasses import replace

from asynccommit.loadtest import (
    LoadReport,
    MillionForecast,
    RateFound,
    RequestTimes,
    StepTimes,
    load_report,
)
from asynccommit.runtime.cells import printed, to_text

REPORT = LoadReport(
    "file:/t",
    "a store",
    100,
    120,
    64,
    steps={"commit": StepTimes(100, 1.5, 123, 4)},
    methods={"rename": RequestTimes(120, 4, 0, 0.01, 0.02, 0.03, 0.5), "list": RequestTimes(1)},
    rates={
        "reads": RateFound(1234.0, True, 6_000, 5.0, "head"),
        "writes": RateFound(99.0, False, 500, 5.0, "rename"),
    },
    requests=5_000,
    refused=4,
    seconds=12.0,
    stopped="max_seconds",
    forecast=MillionForecast(1_000_000, 900.0, "scaled"),
    removed=("file:/t/dead",),
    kept={"file:/t/alive": "it has just begun"},
    left="it was denied",
)


def test_all_of_a_report_is_shown() -> None:
    """Rates with their limit, percentiles, directories of others, and what went wrong."""
    text = to_text(load_report(REPORT), 200)
    assert str(REPORT) == printed(load_report(REPORT))

    for part in (
        "a store: 5,000 requests in 12.0 s, 4 refused for the rate",
        "ended early by --max-seconds",
        "1,234 head/s during 5.00 s, the account refused more",
        "99 rename/s during 5.00 s, or more: nothing was refused",
        "a commit of 1,000,000 files takes 15 min 00 s: scaled",
        "file:/t/dead, of a run that had died",
        "file:/t/alive: it has just begun",
        "its own directory: it was denied",
    ):
        assert part in text
    rename = next(line.split() for line in text.splitlines() if line.split()[:1] == ["rename"])
    assert rename == ["rename", "120", "10", "ms", "20", "ms", "30", "ms", "500", "ms", "4"]


def test_json_is_plain() -> None:
    """Every figure of the report is in it."""
    value = REPORT.to_json()

    assert value["rates"]["reads"]["per_second"] == 1234.0
    assert value["methods"]["rename"]["p99"] == 0.03
    assert value["forecast"] == {"files": 1_000_000, "seconds": 900.0, "how": "scaled"}


def test_fewer_files_than_asked_for_are_named() -> None:
    """A run that had to write fewer files says so, and why."""
    text = to_text(load_report(replace(REPORT, stopped="")), 200)

    assert "measured with 100 of 120 files" in text
    assert "ended early" not in text

"""Results have a short text."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from asynccommit import AbortReport, JobReport, JobState, JobStatus

REPORT = JobReport("j", "file:/t", files=2, bytes=10, filenames=[f"/t/{n}" for n in range(100)])


def test_text_of_a_report_is_one_short_line() -> None:
    """A report names the job, its place and its counts, and neither files nor what is zero."""
    assert repr(REPORT) == "JobReport(job_id='j', dest='file:/t', files=2, bytes=10)"
    told = repr(replace(REPORT, warnings=["one", "two"], resumed=True, seconds=1.23456))
    assert told.endswith("bytes=10, seconds=1.235, warnings=2, resumed=True)")


def test_text_of_a_status_has_dates() -> None:
    """A status has the time of its commit as a date, and why it stopped."""
    status = JobStatus("j", 0, JobState.STOPPED, 1_795_000_000_000, 10, done=3, error="no space")
    assert repr(status) == (
        "JobStatus(job_id='j', state='stopped', done=3, files=10, "
        "started='2026-11-18 11:06:40+00:00', error='no space')"
    )


def test_text_of_an_abort_counts() -> None:
    """An abort counts the paths that it could not restore."""
    told = repr(AbortReport("j", "deleted", not_restored=["/t/a"]))
    assert told == "AbortReport(job_id='j', outcome='deleted', not_restored=1)"


def test_print_shows_a_report_with_its_warnings() -> None:
    """``str`` is the table of the command followed by the warnings."""
    told = str(replace(REPORT, seconds=1.0, warnings=["late"])).splitlines()

    assert told[0] == "job j committed 2 files, 10 B, of 0 tasks in 1.00 s (2 files/s)"
    assert told[1].split() == ["destination", "file:/t"]
    assert told[-1] == "warning: late"


def test_rich_prints_reports_with_their_warnings() -> None:
    """``print`` of rich shows the table that the command shows, and the warnings."""
    status = JobStatus("j", 0, JobState.STOPPED, epoch=1, files=10, done=3, owner="alice@host")
    abort = AbortReport("j", "deleted", warnings=["slow"])
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as captured:
        console.print(replace(REPORT, seconds=1.0, warnings=["late"]), status, abort, sep="\n")
    lines = [line.rstrip() for line in captured.get().splitlines()]

    assert lines[0] == "job j committed 2 files, 10 B, of 0 tasks in 1.00 s (2 files/s)"
    assert "warning: late" in lines
    assert "job j: stopped" in lines
    assert "  done   3 of 10 files" in lines
    assert "  owner  alice@host" in lines
    assert lines[-2:] == ["job j: deleted", "warning: slow"]

"""Reports as text."""

from __future__ import annotations

from dataclasses import replace

from asynccommit import AbortReport, JobReport
from asynccommit.inspect.files import Inspection, Rename
from asynccommit.inspect.text import abort_report, inspection, job_report
from asynccommit.runtime.cells import ROWS, to_text

REPORT = JobReport(
    job_id="j[red]",
    dest="file:/t\x1b[1m",
    files=1460,
    bytes=8_300_000,
    tasks={"task_0": "attempt_0"},
    directories=377,
    seconds=0.5,
    stages={"job_stage_rename_files": 0.25, "committer_commit_job": 0.5},
    success="file:/t/_SUCCESS",
)


def test_job_report_is_compact() -> None:
    """A commit is told in a few lines: what, how much, how fast, where."""
    assert to_text(job_report(REPORT)).splitlines() == [
        "job j[red] committed 1,460 files, 8.3 MB, of 1 task in 500 ms (2,920 files/s)",
        "  destination       file:/t\\x1b[1m",
        "  directories made  377",
        "  stages            rename files 250 ms",
        "  marker            file:/t/_SUCCESS",
    ]


def test_job_report_tells_what_the_store_did() -> None:
    """Lost responses, refusals and long waiting get a line; a store that just answers gets none."""
    trouble = replace(REPORT, recovered={"rename": 2}, refused=3, waited={"rate": 4.0})
    text = to_text(job_report(trouble))

    assert "2 lost responses settled; 3 rejected by the rate limit; total wait: rate 4.00 s" in text
    assert "settled" not in to_text(job_report(REPORT))


def test_job_report_tells_what_each_worker_did() -> None:
    """Other processes that renamed files have a line, with what they were refused."""
    one = {"slices": 2, "files": 1000, "seconds": 4.0, "refused": 3}
    other = {"slices": 1, "files": 460, "seconds": 2.0, "refused": 0}
    text = to_text(job_report(replace(REPORT, workers={"7@a": one, "8@b": other})))

    told = "7@a 1,000 files in 4.00 s, 3 requests refused; 8@b 460 files in 2.00 s"
    assert told in " ".join(text.split())


def test_job_report_of_a_dry_run_names_files() -> None:
    """A dry run is told in the conditional, with the first files and how many more there are."""
    names = [f"/t/{n}" for n in range(100)]
    report = JobReport("j", "file:/t", files=1000, filenames=names, dry_run=True)

    lines = to_text(job_report(report)).splitlines()

    assert lines[0].startswith("job j would commit 1,000 files")
    assert lines[2].split() == ["files", "/t/0"]
    assert lines[-1].strip() == f"and {1000 - ROWS} more"


def test_job_report_of_a_repeated_commit_says_so() -> None:
    """A job that had been committed before is not told as if it were committed now."""
    report = JobReport("j", "file:/t", already_committed=True)

    assert to_text(job_report(report)) == "job j was committed before: nothing was done"


def test_abort_report_says_why_a_job_is_kept() -> None:
    """An abort that did nothing gives the reason."""
    kept = AbortReport("j", "kept", "a commit has begun")

    assert to_text(abort_report(kept)) == "job j: a commit has begun"
    assert to_text(abort_report(AbortReport("j", "deleted"))) == "job j: deleted"
    swept = AbortReport("j", "deleted", uploads=2)
    assert to_text(abort_report(swept)) == "job j: deleted, 2 uploads aborted"


def test_inspection_is_cut_where_it_is_long() -> None:
    """Of thousands of tasks, files and problems the first are shown, and how many there are."""
    many = 1000
    row = {"task_attempt_id": "a", "files": 1, "bytes": 1}
    found = Inspection(
        "job",
        "file:/t",
        {"files": many, "diagnostics": {"stacktrace": "first\nsecond"}},
        tasks=[row] * many,
        renames=[Rename("s", "d", 1)] * 100,
        problems=["p"] * many,
    )

    text = to_text(inspection(found))

    assert text.count(f"and {many - ROWS} more") == 3
    assert text.endswith(f"and {many - ROWS} more problems")
    assert "stacktrace: first ..." in text
    assert len(text.splitlines()) < 4 * ROWS

"""Results as HTML for notebooks: well formed, short, and free of foreign markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asynccommit import AbortReport, JobReport, JobState, JobStatus, open_job
from asynccommit.inspect.html import as_html

REPORT = JobReport(
    job_id="nightly",
    dest="abfs://data@account/t",
    files=1460,
    bytes=8_300_000,
    tasks={"task_0": "attempt_0"},
    seconds=2.0,
    stages={
        "job_stage_load_manifests": 0.5,
        "job_stage_rename_files": 1.0,
        "job_stage_cleanup": 0.001,
        "committer_commit_job": 2.0,
    },
    filenames=[f"/t/part-{n}" for n in range(100)],
    warnings=["the clean-up failed"],
)


def _tree(result: JobReport | JobStatus | AbortReport) -> ElementTree.Element:
    """Return the elements of the HTML that a notebook gets; it is well formed XML, too."""
    text = result._repr_html_()
    assert text == as_html(result)
    return ElementTree.fromstring(text)


def _text(element: ElementTree.Element) -> str:
    return " ".join(text.strip() for text in element.itertext() if text.strip())


def test_stage_bar_has_a_segment_for_each_share() -> None:
    """Segments are as wide as their stages took; very short stages have none, the rest has one."""
    bar = _tree(REPORT).find(".//*[@role='img']")

    assert bar is not None
    styles = [segment.get("style", "") for segment in bar]
    assert [style.split(";")[0] for style in styles] == [
        "width:25.00%",
        "width:50.00%",
        "width:25.00%",
    ]
    told = bar.get("aria-label")
    assert told == "load manifests 500 ms, rename files 1.00 s, other 500 ms"


def test_report_has_counts_and_warnings_and_folds_names() -> None:
    """Counts and warnings are in sight; names are in a closed list that says how many more."""
    tree = _tree(REPORT)
    details = tree.find("details")

    assert "job nightly committed 1,460 files, 8.3 MB, of 1 task in 2.00 s" in _text(tree)
    assert "the clean-up failed" in _text(tree)
    assert details is not None
    assert details.get("open") is None
    assert _text(details).startswith("1,460 files /t/part-0 ")
    assert _text(details).endswith("and 1,360 more")


def test_foreign_text_is_neither_markup_nor_secret() -> None:
    """Names and warnings are shown as they are, without elements, controls and signatures."""
    foreign = "<script>alert(1)</script>\x1b[1m?sig=c2VjcmV0"
    results: list[JobReport | JobStatus | AbortReport] = [
        replace(REPORT, job_id=foreign, dest=foreign, filenames=[foreign], warnings=[foreign]),
        JobStatus(foreign, 0, JobState.STOPPED, error=foreign, owner=foreign, why=foreign),
        AbortReport(foreign, "deleted", kept=foreign, warnings=[foreign], not_restored=[foreign]),
    ]
    for result in results:
        tree = _tree(result)
        assert tree.find(".//script") is None
        assert "<script>alert(1)</script>\\x1b[1m?sig=***" in _text(tree)


@pytest.mark.parametrize(
    "report, head",
    [
        (replace(REPORT, dry_run=True), "job nightly would commit 1,460 files"),
        (
            replace(REPORT, already_committed=True),
            "job nightly was committed before: nothing was done",
        ),
        (replace(REPORT, resumed=True), "1 task, resumed, in 2.00 s"),
        (
            replace(REPORT, rolled_back=True, not_restored=["/t/x"]),
            "finished; 1 place NOT as before",
        ),
    ],
)
def test_head_says_what_was_done(report: JobReport, head: str) -> None:
    """A dry run, a repetition, a resume and a rollback are not told as an ordinary commit."""
    assert head in _text(_tree(report))


def test_status_has_a_bar_of_its_files() -> None:
    """A stopped commit shows how many of its files are at their destinations, owner and reason."""
    tree = _tree(
        JobStatus(
            "nightly",
            1,
            JobState.STOPPED,
            started_ms=1_795_000_000_000,
            files=1000,
            done=250,
            epoch=1,
            owner="alice@driver-0",
            error="connection reset",
        )
    )
    text = _text(tree)
    bar = tree.find(".//*[@role='img']")

    assert text.startswith("job nightly, attempt 1: stopped 250 of 1,000 files at their")
    assert "commit began 2026-11-18 11:06:40 UTC" in text
    assert "owner alice@driver-0 connection reset" in text
    assert bar is not None
    assert bar[0].get("style", "").startswith("width:25.00%")


def test_abort_tells_what_is_left() -> None:
    """A rollback says how many files it undid, and folds the paths that it could not restore."""
    tree = _tree(
        AbortReport("j", "deleted", rolled_back=True, files=3, not_restored=["/t/a", "/t/b"])
    )

    assert "job j: rolled back, 3 files undone" in _text(tree)
    assert "2 paths not restored /t/a /t/b" in _text(tree)


async def test_report_of_a_real_job_is_shown(tmp_path: Path) -> None:
    """The report of a job that ran has a bar and a destination."""
    async with open_job(tmp_path / "out") as job, job.task(0) as task:
        await task.put("part-0", b"12345")

    assert job.report is not None
    tree = _tree(job.report)
    assert "committed 1 file, 5 B, of 1 task" in _text(tree)
    assert tree.find(".//*[@role='img']") is not None
    assert f"file:{tmp_path}/out/_SUCCESS" in _text(tree)

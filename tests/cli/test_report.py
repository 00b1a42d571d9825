"""``asynccommit report``: from ``_SUCCESS``, from saved reports, as text, JSON and page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit import CommitError, sync
from asynccommit.cli.output import Exit
from tests.cli.support import Command, cut_short
from tests.support.jobs import JOB

REPORTS = "mapreduce.manifest.committer.summary.report.directory"


def write(table: Path, **options: str) -> str:
    """Commit a job of three files; return its id."""
    with sync.open_job(table, options=options) as job, job.task(0) as task:
        for number in range(3):
            task.put(f"day={number}/part-{number}", b"x" * 100)
    return job.job_id


def test_report_is_read_from_the_marker(command: Command, tmp_path: Path) -> None:
    """Without a report directory the marker tells files, directories, requests and stages."""
    job_id = write(tmp_path / "t")

    assert command("report", tmp_path / "t") == 0

    assert f"job {job_id}: committed" in command.out
    assert "3 files, 300 B" in command.out
    assert "rename files" in command.out
    assert "nothing is left to do" in command.out


def test_json_has_the_course_over_time(command: Command, tmp_path: Path) -> None:
    """The JSON has counts, stages with their begin, requests by bucket and directories."""
    write(tmp_path / "t")

    found = command.json("report", tmp_path / "t")

    course = found["report"]["course"]
    assert (course["files"], course["bytes"]) == (3, 300)
    assert sum(course["timeline"]["sent"]) == course["sent"] > 0
    assert {one["path"] for one in course["timeline"]["partitions"]} == {"day=0", "day=1", "day=2"}
    assert "job_stage_rename_files" in {one["name"] for one in course["timeline"]["stages"]}


def test_saved_report_is_preferred_to_the_marker(command: Command, tmp_path: Path) -> None:
    """A report directory has the whole commit, its clean-up included."""
    reports = tmp_path / "reports"
    job_id = write(tmp_path / "t", **{REPORTS: str(reports)})
    write(tmp_path / "other", **{REPORTS: str(reports)})

    found = command.json("report", tmp_path / "t", "-o", f"{REPORTS}={reports}")

    assert found["report"]["source"].endswith(f"reports/summary-{job_id}.json")
    assert found["report"]["course"]["tasks"] == 1
    stages = {one["name"] for one in found["report"]["course"]["timeline"]["stages"]}
    assert "job_stage_cleanup" in stages


def test_failed_job_is_found_by_its_id(command: Command, tmp_path: Path) -> None:
    """The report of a failed commit names its error."""
    reports = tmp_path / "reports"
    job = sync.open_job(tmp_path / "t", options={REPORTS: str(reports)}, job_id="twice")
    with pytest.raises(CommitError), job as running:
        for number in range(2):
            with running.task(number) as task:
                task.put("part-0", b"twice")

    code = command("report", tmp_path / "t", "-o", f"{REPORTS}={reports}", "--job-id", "twice")

    assert code == 0
    assert "job twice: failed" in command.out
    assert "PreflightError" in command.out


def test_nothing_there_is_told_with_the_option(command: Command, tmp_path: Path) -> None:
    """A destination without any report is an error that names the option."""
    assert command("report", tmp_path) == Exit.NOT_FOUND
    assert REPORTS in command.err


def test_interrupted_commit_has_its_commands(command: Command, tmp_path: Path) -> None:
    """What is left to do is told with the command that does it."""
    cut_short(tmp_path / "t")

    assert command("report", tmp_path / "t") == 0

    assert "a commit has begun and has not ended" in command.out
    assert f"asynccommit resume file:{tmp_path}/t --job-id {JOB}" in command.out


def test_page_is_written(command: Command, tmp_path: Path) -> None:
    """``--html`` writes one page; a file that cannot be written is a usage error."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    write(tmp_path / "t")

    assert command("report", tmp_path / "t", "--html", tmp_path / "page.html") == 0
    assert command("report", tmp_path / "t", "--html", tmp_path / "no/page.html") == Exit.USAGE

    assert "<!doctype html>" in (tmp_path / "page.html").read_text("utf-8")
    assert "--html" in command.err


@pytest.mark.parametrize("course", ["{}", "[", '{"version": 1, "dest": 7}', "\ud800"])
def test_broken_course_is_passed_over(course: str, command: Command, tmp_path: Path) -> None:
    """A marker whose course cannot be read still tells the rest."""
    job_id = write(tmp_path / "t")
    marker = tmp_path / "t/_SUCCESS"
    value = json.loads(marker.read_text("utf-8"))
    value["diagnostics"]["asynccommit.course"] = course
    marker.write_text(json.dumps(value), "utf-8")

    code = command("report", tmp_path / "t")

    assert (code, job_id in command.out) in ((0, True), (Exit.REFUSED, False))


def test_classic_marker_has_no_details(command: Command, tmp_path: Path) -> None:
    """An empty ``_SUCCESS``, as classic committers write it, is no report."""
    (tmp_path / "_SUCCESS").touch()

    assert command("report", tmp_path) == Exit.NOT_FOUND

"""Progress and reports in a notebook, run by a kernel of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asynccommit.commit.meter import OUTERMOST, Progress
from asynccommit.progress.bars import JobBars
from asynccommit.progress.notebook import in_kernel
from asynccommit.runtime.cells import to_text
from tests.support.notebook import run_notebook, text_of

WRITE = """
from pathlib import Path
from asynccommit import sync

with sync.open_job(Path("t").absolute(), job_id="j") as job, job.task(0) as task:
    for number in range(100):
        task.put(f"day={number % 3}/part-{number}", b"x")
"""
SHOW = "job.report"
AWAIT = """
import asyncio
from asynccommit import job, open_job

async def write(number, **options):
    async with open_job(Path("a").absolute(), job_id=f"a{number}", **options) as job:
        async with job.task(0) as task:
            await task.put(f"part-{number}", b"x")

await asyncio.gather(*(write(number) for number in range(3)))
await write(3)
"""
OWN = """
heard = []
await write(4, on_progress=heard.append)
len(heard) > 0
"""
OFF = """
import os

os.environ["ASYNCCOMMIT_PROGRESS"] = "off"
await write(5)
with sync.open_job(Path("t").absolute(), job_id="quiet") as job, job.task(0) as task:
    task.put("part-quiet", b"x")
"""
FAIL = """
try:
    sync.job(Path("t").absolute(), "nothing").resume()
except Exception as error:
    print(type(error).__name__)
"""


def test_this_is_no_kernel() -> None:
    """A test runs in no kernel: progress is shown elsewhere."""
    assert not in_kernel()


def test_finished_job_leaves_a_line() -> None:
    """A bar is replaced by one line when its commit is over; others keep their bar."""
    bars = JobBars()
    for job in ("a", "b"):
        bars(Progress(job, OUTERMOST, 0, None, 0.0))
        bars(Progress(job, "job_stage_rename_files", 5, 10, 1.0))
    bars(Progress("a", OUTERMOST, 0, None, 2.0))

    shown = to_text(bars.table())

    assert "job a: finished in 2.00 s" in shown
    assert "rename files" in shown
    assert "5/10" in shown


@pytest.mark.full
def test_notebook_shows_progress_and_the_report(tmp_path: Path) -> None:
    """The output of the cell is the progress, by default, and the report as HTML."""
    pytest.importorskip("IPython", reason="IPython is not installed")
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}

    written, shown, failed = run_notebook([WRITE, SHOW, FAIL], tmp_path, environment)

    assert "job j: finished in" in text_of(written)
    assert "job j: finished in" in text_of(written, "text/html")
    assert 'class="asynccommit"' in text_of(shown, "text/html")
    assert "100 files" in text_of(shown, "text/html")
    assert "PreflightError" in "".join(output.get("text", "") for output in failed)


@pytest.mark.full
def test_notebook_shows_the_progress_of_awaited_commits(tmp_path: Path) -> None:
    """Commits of a cell, at once and in turn, share an output; it may be turned off."""
    pytest.importorskip("IPython", reason="IPython is not installed")
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}

    _, awaited, own, off = run_notebook([WRITE, AWAIT, OWN, OFF], tmp_path, environment)

    assert len(awaited) == 1
    for kind in ("text/plain", "text/html"):
        lines = text_of(awaited, kind)
        assert all(f"job a{number}: finished in" in lines for number in range(4))
    assert text_of(own) == "True"
    assert off == []

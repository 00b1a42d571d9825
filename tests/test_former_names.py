"""Former names work for one version, with a warning that names the present one."""

from __future__ import annotations

import asyncio
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import asynccommit
from asynccommit import JobReport, sync
from tests.cli.support import TASKS, cut_short, prepare
from tests.support.jobs import JOB, visible

ROOT = Path(__file__).parents[1]


def former(module: Any, name: str) -> Any:
    """Return the value of a former name; it must warn at the line that uses it."""
    with pytest.warns(DeprecationWarning, match=rf"{module.__name__}\.{name} is dep") as found:
        value = getattr(module, name)
    assert [Path(each.filename) for each in found] == [Path(__file__)]
    return value


def test_functions_of_a_job_do_what_they_did(tmp_path: Path) -> None:
    """Each takes the arguments that it took; those of asyncio return what is awaited."""
    cut_short(tmp_path)
    assert former(sync, "resume_job")(tmp_path).resumed
    assert visible(tmp_path) == {**TASKS[0], **TASKS[1]}

    other = tmp_path / "other"
    prepare(other, ({"part": "x"},))
    options = {"asynccommit.job.key": "k"}
    assert former(sync, "plan_job")(other, JOB, options=options).dry_run
    assert former(sync, "commit_job")(other, JOB, None, attempt=0, options=options).files == 1
    assert former(sync, "abort_job")(other, "nothing", reason="r", force=True).job_id == "nothing"


def test_functions_on_asyncio_do_what_they_did(tmp_path: Path) -> None:
    """So do a task of another process, and the rollback of an interrupted commit."""
    cut_short(tmp_path / "u")

    async def run() -> None:
        async with asynccommit.open_job(tmp_path / "t", job_id="j") as job:
            open_task = former(asynccommit, "open_task")
            async with open_task(tmp_path / "t", "j", 3, job_attempt=0) as task:
                await task.put("part", b"x")
            job.accept(task.commit)
        undone = await former(asynccommit, "rollback_job")(tmp_path / "u", force=True)
        assert undone.rolled_back
        async with former(asynccommit, "open_committer")(tmp_path / "t", "j") as committer:
            assert await committer.job_status() is None

    asyncio.run(run())

    assert visible(tmp_path / "t") == {"part": "x"}


@pytest.mark.parametrize("given", [{}, {"mode": "append"}], ids=["plain", "with a mode"])
def test_a_blocking_job_was_opened_by_job(tmp_path: Path, given: dict[str, Any]) -> None:
    """``sync.job`` is still a block, and ``sync.task`` one of its tasks elsewhere."""
    run_task = former(sync, "task")

    def write() -> JobReport:
        with sync.job(tmp_path, job_id="j", **given) as job:
            with run_task(tmp_path, job.job_id, 0) as task:
                task.put("part", b"x")
            job.accept(task.commit)
        return job.report

    with pytest.warns(DeprecationWarning, match="job as a block is .*sync.open_job") as found:
        report = write()

    assert [Path(each.filename) for each in found] == [Path(__file__)]
    assert report.files == 1


def test_the_page_names_each_former_name() -> None:
    """Its table has every former name, and what a warning says to use is a name that there is."""
    text = (ROOT / "docs/migrating.md").read_text("utf-8")
    table = text.partition("## Former names of this package\n")[2].partition("\n## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"[a-z_]\w+", row.split(" | ")[0], re.I)}

    for module in (asynccommit, sync):
        for name in FORMER[module]:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                getattr(module, name)
            (remedy,) = re.findall(r"use ([\w.]+)", str(found[0].message))
            assert name in named
            assert _value(remedy) is not None


FORMER = {
    asynccommit: (
        *("abort_job", "commit_job", "open_committer", "open_task", "plan_job", "resume_job"),
        "rollback_job",
    ),
    sync: ("abort_job", "commit_job", "plan_job", "resume_job", "rollback_job", "task"),
}


def _value(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)

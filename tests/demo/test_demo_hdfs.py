"""The demo on HDFS: how it counts, and all of it on one month."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.demo import HdfsOutcome, Killed
from asynccommit.demo.mini_hdfs import serving_hdfs
from asynccommit.demo.outcome import WrittenTable
from asynccommit.errors import AsyncCommitError
from asynccommit.results import JobReport
from asynccommit.runtime.cells import to_text
from tests.support import mini_hdfs
from tests.support.schemas import check

TABLE = WrittenTable(files=4, write=20.0, task_commit=1.0, job_commit=8.0, rows=10, content="-17")
DONE = JobReport("job", "hdfs://h/x", files=4, success="hdfs://h/x/_SUCCESS")
OUTCOME = HdfsOutcome(
    rows=10,
    content="-17",
    theirs=TABLE,
    ours=replace(TABLE, job_commit=0.5),
    report=DONE,
    killed=Killed("hdfs://h/killed", 2, 2.0, replace(DONE, resumed=True), True),
    left=0,
    log="/log",
    servers="/servers",
)


@pytest.mark.parametrize(
    "changes",
    [
        {"ours": replace(OUTCOME.ours, content="-18")},
        {"theirs": replace(OUTCOME.theirs, rows=11)},
        {"ours": replace(OUTCOME.ours, files=5)},
        {"theirs": replace(OUTCOME.theirs, files=5)},
        {"killed": replace(OUTCOME.killed, right=False)},
        {"killed": replace(OUTCOME.killed, visible=0)},
        {"killed": replace(OUTCOME.killed, visible=4)},
        {"killed": replace(OUTCOME.killed, report=DONE)},
        {"left": 1},
        {"report": replace(OUTCOME.report, success=None)},
    ],
    ids=str,
)
def test_nothing_is_proven_by_halves(changes: dict[str, Any]) -> None:
    """Each check can fail alone, and then the whole does."""
    assert OUTCOME.proven
    outcome = replace(OUTCOME, **changes)

    assert not outcome.proven
    assert to_text(outcome.table()).count("\nNO ") == 1
    assert outcome.to_json()["proven"] is False


def test_table_compares() -> None:
    """The table has the times of both sides, the checks and the logs."""
    text = to_text(OUTCOME.table())

    words = [line.split() for line in text.splitlines()]
    assert ["job", "commit", "8.00", "s", "500", "ms", "16.0x", "less"] in words
    assert "/servers" in text
    assert text.count("\nyes  ") == len(OUTCOME.checks) == 4


@pytest.mark.jvm
@pytest.mark.full
def test_servers_that_do_not_start_say_where_their_log_is(tmp_path: Path) -> None:
    """Without the jar of the servers the JVM ends, and the error names the log."""
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    log = tmp_path / "hdfs.log"
    with (
        pytest.raises(AsyncCommitError, match="its log is") as caught,
        serving_hdfs(tmp_path / "none.jar", tmp_path / "hdfs", log),
    ):
        pass
    assert str(log) in str(caught.value)
    assert log.stat().st_size > 0


@pytest.mark.every(2, 0)
@pytest.mark.jvm
@pytest.mark.spark
@pytest.mark.full
@pytest.mark.timeout(600)
def test_one_month(tmp_path: Path) -> None:
    """Both tables are right, and the job of the killed driver is finished."""
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    keep = tmp_path / "demo"
    line = [sys.executable, "-m", "asynccommit", "demo", "hdfs", "--month", "1"]
    line += ["--keep", str(keep), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=540)

    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    check("demo", found)
    assert found["proven"]
    assert all(found["checks"].values())
    assert 0 < found["killed"]["visible"] < found["ours"]["files"]

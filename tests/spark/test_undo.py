"""The process that the JVM starts when Python is gone: without a JVM, and killed itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.permissions import GIVES_AWAY, give_away
from tests.support.spark import leftovers, run_python

KILLED = """
import os, signal, sys
from pathlib import Path
from asynccommit import sync
from asynccommit.spark import undo
from tests.support.spark import after_renames

what, table, like, count = sys.argv[1:]
after_renames(int(count), lambda: os.kill(os.getpid(), signal.SIGKILL), like)
if what == "undo":
    sys.exit(undo.main())
with sync.open_job(table, job_id="job-1") as job, job.task(0) as task:
    for number in range(5):
        Path(task.path(f"p={number}/new.txt")).write_text("new")
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with one file."""
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    (tmp_path / "t" / "p=1" / "old.txt").write_text("old")
    return tmp_path / "t"


def killed(what: str, table: Path, like: str, count: int) -> None:
    """Run a commit, or an undo, that is killed after some renames."""
    arguments = ["-c", KILLED, what, str(table), like, str(count)]
    assert run_python(*arguments, given=request(table)).returncode == -9


def request(table: Path, **more: Any) -> str:
    """Return what the JVM writes to the process."""
    base = {"version": 1, "what": "rollback", "dest": f"file:{table}", "jobId": "job-1"}
    return json.dumps({**base, "attempt": 0, "conf": {}, "storage": {}, **more})


def undo(given: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the process; return how it ended, and what it answered."""
    done = run_python("-P", "-m", "asynccommit.spark.undo", given=given)
    return done, json.loads(done.stdout)["outcome"]


def files(table: Path) -> list[str]:
    """Return every file there."""
    return sorted(str(path.relative_to(table)) for path in table.rglob("*") if path.is_file())


def test_takes_back(table: Path) -> None:
    """What a killed commit has moved is taken back, and the answer counts it."""
    killed("commit", table, "/tasks/", 2)
    assert len(files(table)) > 3
    done, outcome = undo(request(table))

    assert done.returncode == 0, done.stderr
    assert outcome.startswith("it was rolled back, ")
    assert files(table) == ["p=1/old.txt"]
    assert leftovers(table) == []


def test_goes_on_where_another_was_killed(table: Path) -> None:
    """It may be killed at any time: the next one ends what it has begun."""
    killed("commit", table, "/tasks/", 3)
    killed("undo", table, "/p=", 1)
    done, _ = undo(request(table))

    assert done.returncode == 0, done.stderr
    assert files(table) == ["p=1/old.txt"]
    assert leftovers(table) == []


def test_finishes_what_was_decided(table: Path) -> None:
    """A job that was decided to be committed is not taken back: its marker is written."""
    killed("commit", table, "_SUCCESS.tmp", 0)
    done, outcome = undo(request(table))

    assert done.returncode == 0, done.stderr
    assert outcome == "it was committed, and its clean-up is finished"
    assert json.loads((table / "_SUCCESS").read_text())["jobId"] == "job-1"
    assert len(files(table)) == 7
    assert leftovers(table) == []


def test_aborts_what_had_not_begun(table: Path) -> None:
    """A job without a commit is not there to be rolled back."""
    done, outcome = undo(request(table, jobId="job-2"))

    assert done.returncode == 0
    assert outcome == "its commit had not begun: it was aborted"
    assert files(table) == ["p=1/old.txt"]


@pytest.mark.parametrize("made", [True, False])
def test_removes_a_destination_that_the_job_has_made(tmp_path: Path, made: bool) -> None:
    """An empty table that the job's setup has made goes with it; a user's own directory stays."""
    job = tmp_path / "new" / "_temporary" / "job-1" / "00"
    (job / "alive" / "made-destination" if made else job / "alive").mkdir(parents=True)
    done, outcome = undo(request(tmp_path / "new", what="abort"))

    assert done.returncode == 0, done.stderr
    assert outcome == "its commit had not begun: it was aborted"
    assert (tmp_path / "new").exists() is not made
    assert not (tmp_path / "new" / "_temporary").exists()


def test_says_why_it_did_nothing(table: Path) -> None:
    """A failure is one line and an exit code, and no credential is repeated."""
    storage = {"account_key": "c2VjcmV0"}
    done, outcome = undo(request(table, conf={"asynccommit.lease": "0"}, storage=storage))

    assert done.returncode == 1
    assert outcome.startswith("it was not undone: asynccommit.lease is '0'")
    assert "c2VjcmV0" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "more",
    [
        {"dest": "hdfs://127.0.0.1:1/t", "hadoopUser": ""},
        {"dest": "hdfs://127.0.0.1:1/t", "hadoopUser": "nobody-here"},
        {"dest": "file:/t", "conf": {"spark.asynccommit.store": "jvm"}},
    ],
)
def test_does_nothing_as_another_user(more: dict[str, Any]) -> None:
    """A job that only a JVM may open as its user is left to that user, with the command to say."""
    done, outcome = undo(request(Path("/t"), **more))

    assert done.returncode == 1
    assert outcome.startswith("it was not undone: this process has no JVM")
    assert f"asynccommit status '{more['dest']}' -s asynccommit.store=jvm" in outcome


def test_answers_though_nobody_listens(table: Path) -> None:
    """The JVM may end before it has the answer; the job is rolled back all the same."""
    killed("commit", table, "/tasks/", 2)
    deaf = "import os; reading, writing = os.pipe(); os.close(reading); os.dup2(writing, 1); "
    told = deaf + "import sys; from asynccommit.spark import undo; sys.exit(undo.main())"
    done = run_python("-c", told, given=request(table))

    assert done.returncode == 0, done.stderr
    assert files(table) == ["p=1/old.txt"]


@GIVES_AWAY
def test_leaves_the_commit_of_another_user_alone(table: Path) -> None:
    """Nobody has asked for it by name, and this user has not begun it."""
    killed("commit", table, "/p=", 3)
    give_away(table / "_temporary" / "job-1")
    before = files(table)
    done, outcome = undo(request(table))

    assert done.returncode == 1
    assert "belongs to uid 1234" in outcome
    assert files(table) == before

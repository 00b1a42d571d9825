"""``mapreduce status``: the staging directories of jobs are shown, and left as they are."""

from __future__ import annotations

from pathlib import Path

from asynccommit.mapreduce.job_files import ALGORITHM, NAME, OUTPUT
from tests.cli.support import Command
from tests.mapreduce.test_job_files import job_xml

JOB = "job_1700000000000_0007"


def leave(root: Path) -> None:
    """Leave a job whose commit nobody ended."""
    place = root / "alice/.staging" / JOB
    place.mkdir(parents=True)
    (place / "COMMIT_STARTED").touch()
    conf = {NAME: "load", OUTPUT: "abfs://c@a.dfs.core.windows.net/t", ALGORITHM: "1"}
    (place / "job.xml").write_bytes(job_xml(conf))


def test_jobs_are_shown(tmp_path: Path, command: Command) -> None:
    """Each job has a line, what an application master would do, and what a person can."""
    leave(tmp_path)

    assert command("mapreduce", "status", tmp_path) == 0
    assert f"  {JOB}  alice  open" in command.out
    assert "FileOutputCommitter v1  STARTED" in command.out
    assert "next    runs nothing, and reports ERROR\n" in command.out
    assert "asynccommit status abfs://c@a.dfs.core.windows.net/t\n" in command.out
    assert sorted(path.name for path in tmp_path.rglob("*_*")) == ["COMMIT_STARTED", JOB]


def test_jobs_as_json(tmp_path: Path, command: Command) -> None:
    """A program is told the same."""
    leave(tmp_path)
    said = command.json("mapreduce", "status", tmp_path / "alice")
    [job] = said["jobs"]

    assert (said["code"], said["warnings"]) == (0, [])
    assert (job["job_id"], job["user"], job["state"]) == (JOB, "alice", "open")
    assert (job["markers"], job["would"], job["owner"]) == (["COMMIT_STARTED"], ["error"], None)
    assert (job["name"], job["committer"], job["repeatable"]) == (
        "load",
        "FileOutputCommitter v1",
        False,
    )
    assert job["advice"][-1] == {
        "says": "if it is no longer running, delete its staging directory",
        "command": "yarn application -status application_1700000000000_0007",
    }


def test_nothing_is_there(tmp_path: Path, command: Command) -> None:
    """No such place ends with 5; a place without jobs is no error."""
    assert command.json("mapreduce", "status", tmp_path / "none")["code"] == 5
    assert command("mapreduce", "status", tmp_path) == 0
    assert "no job" in command.out
    assert "holds no directory of a user" in command.err


def test_a_place_that_no_store_knows(command: Command) -> None:
    """A scheme without a store is a usage error that names it."""
    assert command("mapreduce", "status", "wasb://namenode/tmp/hadoop-yarn/staging") == 2
    assert "wasb" in command.err

"""The command on jobs of FileOutputCommitter, whose tasks ran elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asynccommit.cli.output import Exit
from asynccommit.errors import CommitError, UnavailableError
from tests.cli.support import Command
from tests.commit.by_rename.test_file_output_v1 import job_at
from tests.support.faults import Fault, Faults
from tests.support.jobs import JOB, ids, left, visible, write

TASKS = ({"day=1/part-0": "one"}, {"day=1/part-1": "two", "part-1": "three"})
DONE = {name: text for task in TASKS for name, text in task.items()}
V1 = ("--committer", "file_v1")
OTHER = "202601010000_0002"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command."""
    return Command(capsys)


def prepare(dest: Path) -> None:
    """Leave what Hadoop's tasks leave: two that have committed, and one that has not."""
    for number, files in enumerate(TASKS):
        write(dest / "_temporary/0" / ids(number)[0], files)
    write(dest / "_temporary/0/_temporary" / ids(2)[1], {"day=1/part-2": "never"})


def test_commit_finds_the_job(command: Command, tmp_path: Path) -> None:
    """The one job there is found by the names of its tasks, committed and cleaned up."""
    prepare(tmp_path)

    assert command("commit", tmp_path, *V1, "--tasks", "2") == 0
    assert f"found job {JOB}: 2 tasks committed" in command.err
    assert "committed 3 files, 11 B, of 2 tasks" in command.out
    assert visible(tmp_path) == DONE
    assert left(tmp_path) == []


def test_status_and_inspect_name_the_job(command: Command, tmp_path: Path) -> None:
    """They say whose job it is, and what to type."""
    prepare(tmp_path)

    assert command("status", tmp_path) == 0
    assert f"job {JOB} of FileOutputCommitter" in command.out
    (job,) = command.json("inspect", tmp_path)["parts"]
    assert (job["facts"]["job"], job["facts"]["tasks committed"]) == (JOB, 2)


def test_what_an_error_says_to_type_does_it(command: Command, tmp_path: Path) -> None:
    """Of several jobs, or without the committer, the way on is named, and it works."""
    prepare(tmp_path)
    write(tmp_path / f"_temporary/0/task_{OTHER}_m_000000", {"part-9": "x"})

    assert command("commit", tmp_path, *V1, "--trust-manifests") != 0
    typed = command.err.rpartition("Give --job-id: asynccommit ")[2].split()
    assert command("commit", tmp_path, "--job-id", JOB, "--tasks", "2") == Exit.NOT_FOUND
    assert "commit or abort it with --committer file_v1" in command.err
    assert command(*typed, "--trust-manifests") == 0


def test_dry_run_changes_nothing(command: Command, tmp_path: Path) -> None:
    """It says what would be committed."""
    prepare(tmp_path)

    assert command.json("commit", tmp_path, *V1, "--dry-run")["files"] == 3
    assert visible(tmp_path) == {}


def test_commit_without_the_name(command: Command, tmp_path: Path) -> None:
    """A job of FileOutputCommitter is not taken for one with manifests: it says what to say."""
    prepare(tmp_path)

    assert command("commit", tmp_path, "--trust-manifests") == Exit.NOT_FOUND
    assert "--committer file_v1" in command.err
    assert command("commit", tmp_path, *V1, "--tasks", "3") == Exit.REFUSED
    assert "2 tasks committed, but --tasks is 3" in command.err


def test_one_of_two_jobs(command: Command, tmp_path: Path) -> None:
    """Of several jobs in the one directory one has to be named; the other stays."""
    prepare(tmp_path)
    write(tmp_path / f"_temporary/0/task_{OTHER}_m_000000", {"theirs": "x"})

    assert command("commit", tmp_path, *V1, "--trust-manifests") != 0
    assert "2 jobs are under" in command.err
    name = ("--job-id", JOB)
    assert command("commit", tmp_path, *V1, "--trust-manifests", *name) == 0
    assert visible(tmp_path) == DONE
    assert command("abort", tmp_path, *V1, "--force") == 0
    assert visible(tmp_path) == DONE
    assert left(tmp_path) == []


def test_resume_needs_no_name(command: Command, tmp_path: Path) -> None:
    """A commit that was cut short is shown and finished like any other."""
    prepare(tmp_path)
    broken = job_at(tmp_path, Faults(Fault("rename", UnavailableError, match="/part-1", times=9)))

    async def die() -> None:
        with pytest.raises(CommitError):
            await broken.commit_job()

    asyncio.run(die())
    assert command("commit", tmp_path, *V1, "--tasks", "2") == Exit.REFUSED
    assert "asynccommit resume" in command.err
    assert command("status", tmp_path) == 0
    assert command.out.count(f"job {JOB}") >= 1
    assert "found job" not in command.out
    assert command("resume", tmp_path) == 0
    assert visible(tmp_path) == DONE
    assert left(tmp_path) == []


def test_version_2_says_what_is_unsafe(command: Command, tmp_path: Path) -> None:
    """Its job commit has nothing left to move; the warning is in the output, once."""
    write(tmp_path, {"part-0": "published", f"_temporary/0/_temporary/{ids(0)[1]}/": ""})

    assert command("commit", tmp_path, "--committer", "file_v2", "--trust-manifests") == 0
    assert command.err.count("readers see them before the job is committed") == 1
    assert visible(tmp_path) == {"part-0": "published"}
    assert left(tmp_path) == []

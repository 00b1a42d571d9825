"""A job whose program runs is not aborted by somebody else, unless by force."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from asynccommit.cli.output import Exit
from tests.crash_real.processes import environment
from tests.support.jobs import left, visible

pytestmark = pytest.mark.timeout(120)

PROGRAM = """
import sys
from asynccommit import sync
from asynccommit.errors import CommitError

try:
    with sync.open_job(sys.argv[1], job_id="nightly", committer=sys.argv[2]) as job:
        with job.task(0) as task:
            task.put("part-0", b"rows")
        print("running", flush=True)
        sys.stdin.readline()
        if sys.argv[3] == "fails":
            raise SystemExit("given up")
    print("committed", flush=True)
except CommitError as error:
    print("failed:", error, flush=True)
sys.stdin.readline()
"""


@contextmanager
def program(dest: Path, committer: str, ends: str = "") -> Iterator[subprocess.Popen[str]]:
    """Start a program that has a job open, with one task committed, and waits for a line."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(dest), committer, ends],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    ) as child:
        try:
            assert said(child) == "running"
            yield child
        finally:
            child.kill()


def said(child: subprocess.Popen[str]) -> str:
    """Return the next line that a program says."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str]) -> None:
    """Let a program go on."""
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def command(verb: str, dest: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit code, and what its JSON says."""
    line = [sys.executable, "-m", "asynccommit", verb, str(dest), "--json", *words]
    done = subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=60)
    return done.returncode, json.loads(done.stdout)


NAMED = {"manifest": (), "file_v1": ("--committer", "file_v1")}


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", NAMED)
@pytest.mark.parametrize("flags", [(), ("--rollback",)])
def test_a_running_job_is_not_aborted(
    tmp_path: Path, committer: str, flags: tuple[str, ...]
) -> None:
    """The refusal names its driver and the command; the job goes on and commits."""
    with program(tmp_path, committer) as child:
        code, refusal = command("abort", tmp_path, *flags, *NAMED[committer])
        assert code == Exit.REFUSED
        assert f"process {child.pid} " in refusal["message"]
        assert "last heartbeat" in refusal["message"]
        assert refusal["message"].endswith("--force")
        tell(child)
        assert said(child) == "committed"

    assert visible(tmp_path) == {"part-0": "rows"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", NAMED)
def test_a_running_job_is_aborted_by_force(tmp_path: Path, committer: str) -> None:
    """It is deleted then, and its program fails when it commits."""
    with program(tmp_path, committer) as child:
        assert command("abort", tmp_path, "--force", *NAMED[committer])[0] == 0
        assert left(tmp_path) == []
        tell(child)
        assert said(child).startswith("failed: ")

    assert visible(tmp_path) == {}


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", NAMED)
def test_a_dead_job_is_aborted(tmp_path: Path, committer: str) -> None:
    """A program that was killed is known to be dead at once on its own machine."""
    with program(tmp_path, committer) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert command("abort", tmp_path, *NAMED[committer])[0] == 0

    assert left(tmp_path) == []


def test_the_states(tmp_path: Path) -> None:
    """Running while its program has it open, dead when that is killed."""
    with program(tmp_path, "manifest") as child:
        (job,) = command("status", tmp_path)[1]["jobs"]
        assert (job["state"], job["alive"]) == ("running", True)
        assert job["owner"].endswith(f", process {child.pid}")
        child.send_signal(signal.SIGKILL)
        child.wait()
        (job,) = command("status", tmp_path)[1]["jobs"]
        assert (job["state"], job["alive"]) == ("dead", False)
        assert "has ended" in job["why"]


def test_a_stopped_program_is_not_taken_for_a_dead_one(tmp_path: Path) -> None:
    """It may go on at any moment."""
    with program(tmp_path, "manifest") as child:
        child.send_signal(signal.SIGSTOP)
        assert command("abort", tmp_path)[0] == Exit.REFUSED
        child.send_signal(signal.SIGCONT)
        tell(child)
        assert said(child) == "committed"

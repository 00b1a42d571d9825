"""Ctrl-C and SIGTERM in mid-commit: a clean message, the command that goes on, and nothing lost."""

from __future__ import annotations

import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.options.job import Mode
from tests.crash_real.places import JOB, LocalPlace, prepare, table_after, table_before, visible
from tests.crash_real.processes import paused

pytestmark = pytest.mark.timeout(120)

SIGNALS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]


@pytest.fixture
def place(tmp_path: Path) -> LocalPlace:
    """Where a table is."""
    return LocalPlace(tmp_path)


def words(place: LocalPlace, *verb: str) -> list[str]:
    """Return the words of a verb on the place's job."""
    trust = ("--trust-manifests",) * (verb == ("commit",))
    return [verb[0], place.url, "--job-id", JOB, *verb[1:], *trust]


def end(child: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    """Send a signal; return exit code, output and errors."""
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def kill_half_way(place: LocalPlace, tmp_path: Path) -> None:
    """Leave a commit of which some files have been moved."""
    with paused(tmp_path / "first", 9, words(place, "commit")) as child:
        child.kill()


def go_on(err: str) -> int:
    """Run the command that a message ends with; return its exit code."""
    return main(shlex.split(err[err.rindex("asynccommit ") :])[1:])


@pytest.mark.rotate("number", "code", "said")
@pytest.mark.parametrize("number, code, said", SIGNALS)
@pytest.mark.parametrize("verb", ["commit", "resume"])
def test_a_signal_in_mid_commit(
    place: LocalPlace, tmp_path: Path, verb: str, number: int, code: int, said: str
) -> None:
    """The commit stops, says so and how it is resumed; what it names finishes it."""
    written = prepare(place, tasks=3, files=5)
    if verb == "resume":
        kill_half_way(place, tmp_path)
    with paused(tmp_path / "signs", 5, words(place, verb)) as child:
        ended, out, err = end(child, number)

    assert (ended, out) == (code, "")
    assert "Traceback" not in err
    assert f"error: {said}; the commit can be resumed: asynccommit resume " in err
    (stopped,) = tmp_path.glob("table/_temporary/*/00/commit-stopped-*.json")
    assert '"it was interrupted at job_stage_' in stopped.read_text("utf-8")
    assert go_on(err) == 0
    tree = place.tree()
    tree.pop("_SUCCESS")
    assert tree == table_after(Mode.APPEND, written)


@pytest.mark.sample(1)
@pytest.mark.parametrize("number, code, said", SIGNALS)
def test_a_signal_in_mid_rollback(
    place: LocalPlace, tmp_path: Path, number: int, code: int, said: str
) -> None:
    """The same of a rollback, which is finished as one."""
    prepare(place, tasks=3, files=5)
    kill_half_way(place, tmp_path)
    with paused(tmp_path / "signs", 4, words(place, "abort", "--rollback")) as child:
        ended, out, err = end(child, number)

    assert (ended, out) == (code, "")
    assert "Traceback" not in err
    assert f"error: {said}; the rollback can be finished: asynccommit abort " in err
    assert go_on(err) == 0
    assert place.tree() == table_before()


def test_a_signal_is_told_as_json(place: LocalPlace, tmp_path: Path) -> None:
    """With --json the one value says which signal it was."""
    prepare(place, tasks=3, files=5)
    with paused(tmp_path / "signs", 5, [*words(place, "commit"), "--json"]) as child:
        code, out, _ = end(child, signal.SIGTERM)

    assert code == 143
    assert '"error": "terminated"' in out
    assert '"exit_code": 143' in out


def test_a_signal_before_the_record(place: LocalPlace, tmp_path: Path) -> None:
    """Nothing was changed: that is said, and the commit is what to type."""
    prepare(place, tasks=3, files=5)
    before = visible(place.tree())
    with paused(tmp_path / "signs", 0, words(place, "commit")) as child:
        code, _, err = end(child, signal.SIGINT)

    assert code == 130
    assert "nothing was changed. To continue: asynccommit commit " in err
    assert visible(place.tree()) == before
    assert go_on(err) == 0


def test_a_signal_after_the_decision(place: LocalPlace, tmp_path: Path) -> None:
    """The job is committed: that is said, and what is left to do is named."""
    written = prepare(place, tasks=3, files=5)
    moves = 1 + 15 + 1  # the old marker aside, the files, the new marker
    with paused(tmp_path / "signs", moves, words(place, "commit")) as child:
        code, _, err = end(child, signal.SIGTERM)

    assert code == 143
    assert "the job is committed; finish its clean-up with: asynccommit resume " in err
    assert go_on(err) == 0
    tree = place.tree()
    tree.pop("_SUCCESS")
    assert tree == table_after(Mode.APPEND, written)


def test_a_signal_when_a_failed_commit_is_undone(place: LocalPlace, tmp_path: Path) -> None:
    """With the option that undoes a commit at once, nothing is left to be resumed."""
    prepare(place, tasks=3, files=5)
    undo = ("-o", "asynccommit.on.failure=rollback")
    with paused(tmp_path / "signs", 9, [*words(place, "commit"), *undo]) as child:
        code, _, err = end(child, signal.SIGINT)

    assert code == 130
    assert "nothing is left of it" in err
    assert place.tree() == table_before()

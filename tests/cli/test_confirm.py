"""Questions before something is deleted: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from asynccommit.cli.output import Exit
from tests.cli.support import Command, cut_short, prepare
from tests.support.jobs import JOB, visible


def on_terminal(words: Sequence[str | Path], answer: str) -> tuple[int, str]:
    """Run the command on a terminal and type an answer; return its exit code and what it showed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "asynccommit", *map(str, words)]
    with subprocess.Popen(
        command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True
    ) as running:
        os.close(theirs)
        os.write(ours, answer.encode())
        shown = ""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # nobody has the other end any more
                break
            if not data:
                break
            shown += data.decode(errors="replace")
        assert running.stdout is not None
        shown += running.stdout.read()
    os.close(ours)
    return running.returncode, shown


def test_abort_asks_and_no_keeps_everything(tmp_path: Path) -> None:
    """The question shows what would go; no ends with 3, and the job is as it was."""
    attempt = prepare(tmp_path)
    before = sorted(attempt.rglob("*"))

    code, shown = on_terminal(["abort", tmp_path, "--force"], "n\n")

    assert code == Exit.REFUSED
    assert f"job {JOB}" in shown
    assert "Delete it" in shown
    assert sorted(attempt.rglob("*")) == before


def test_abort_asks_and_yes_deletes(tmp_path: Path) -> None:
    """Yes does what was shown."""
    attempt = prepare(tmp_path)

    code, shown = on_terminal(["abort", tmp_path, "--force"], "y\n")

    assert (code, attempt.exists()) == (0, False), shown


@pytest.mark.parametrize("verb", [("abort", "--rollback"), ("takeover", "--rollback")])
def test_rollback_asks(verb: tuple[str, str], tmp_path: Path) -> None:
    """A rollback is asked for as well, and no changes nothing."""
    cut_short(tmp_path)
    before = visible(tmp_path)

    code, shown = on_terminal([verb[0], tmp_path, verb[1]], "n\n")

    assert code == Exit.REFUSED
    assert "Roll it back" in shown
    assert visible(tmp_path) == before


def test_takeover_asks(tmp_path: Path) -> None:
    """So is the takeover of a commit."""
    cut_short(tmp_path)

    code, shown = on_terminal(["takeover", tmp_path], "n\n")

    assert code == Exit.REFUSED
    assert "Take it over" in shown


def test_nothing_is_not_asked_about(tmp_path: Path) -> None:
    """There is no question if the job does not exist, and a question without an answer says so."""
    attempt = prepare(tmp_path)

    code, shown = on_terminal(["abort", tmp_path, "--job-id", "none"], "")
    assert (code, "[y/N]" in shown) == (0, False), shown
    code, shown = on_terminal(["abort", tmp_path, "--force"], "\x04")
    assert code == Exit.INTERRUPTED
    assert "nothing was changed" in shown
    assert attempt.exists()


def test_yes_is_not_asked(tmp_path: Path) -> None:
    """With ``--yes`` there is no question, on a terminal either."""
    attempt = prepare(tmp_path)

    code, shown = on_terminal(["abort", tmp_path, "--force", "--yes"], "")

    assert (code, attempt.exists()) == (0, False), shown
    assert "[y/N]" not in shown


def test_script_is_not_asked(command: Command, tmp_path: Path) -> None:
    """Without a terminal the command does what it was told, as before."""
    attempt = prepare(tmp_path)

    assert command("abort", tmp_path, "--force") == 0
    assert not attempt.exists()

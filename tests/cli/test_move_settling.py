"""``mv`` with a journal: a killed move is finished or undone by a command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.cli.output import Exit

FILES = 60


def _said(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str]:
    code = main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return code, out + err


def _stopped(root: Path, how: signal.Signals) -> str:
    """Begin a move of ``root/in`` and stop it in the middle; return what it said."""
    (root / "in").mkdir()
    for number in range(FILES):
        (root / f"in/f{number}").write_text("x")
    words = ["mv", "in", "out", "--journal", "j.json", "--rate", "60", "--max-concurrency", "1"]
    command = [sys.executable, "-m", "asynccommit", *words]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) as moving:
        while not list((root / "out").glob("f*")):
            assert moving.poll() is None
            time.sleep(0.01)
        moving.send_signal(how)
        said = moving.communicate()[1]
    assert 0 < len(list((root / "out").glob("f*"))) < FILES
    return said


@pytest.mark.parametrize("way", ["--resume", "--rollback"])
def test_a_killed_move_is_settled(
    way: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A signal that can be handled says how; the other command then says that all is done."""
    how = signal.SIGTERM if way == "--resume" else signal.SIGKILL
    said = _stopped(tmp_path, how)
    journal = tmp_path / "j.json"
    if how is signal.SIGTERM:
        assert f"asynccommit mv --resume {journal}" in said

    code, text = _said(capsys, "mv", way, journal)
    assert code == 0
    assert ("moved back" in text) == (way == "--rollback")
    end = "out" if way == "--resume" else "in"
    assert len(list((tmp_path / end).glob("f*"))) == FILES
    assert not (tmp_path / "out/_temporary").exists()
    assert json.loads(journal.read_text())["state"] == (
        "finished" if way == "--resume" else "undone"
    )

    code, text = _said(capsys, "mv", way, journal)
    assert (code, f"{FILES} files had been moved" in text or way == "--rollback") == (0, True)
    other = "--rollback" if way == "--resume" else "--resume"
    assert _said(capsys, "mv", other, journal)[0] == Exit.REFUSED


def test_the_commands_of_jobs_name_those_of_moves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``status``, ``resume`` and ``abort`` change nothing, and name the commands of ``mv``."""
    _stopped(tmp_path, signal.SIGKILL)
    shown = _said(capsys, "status", tmp_path / "out")[1]
    for way in ("--resume", "--rollback"):
        assert f"asynccommit mv {way} {tmp_path / 'j.json'}" in shown
    before = sorted(path.name for path in tmp_path.rglob("f*"))
    for words in (["resume"], ["abort", "--rollback"]):
        code, text = _said(capsys, *words, tmp_path / "out")
        assert code != 0
        assert f"asynccommit mv --resume {tmp_path / 'j.json'}" in text
    assert sorted(path.name for path in tmp_path.rglob("f*")) == before


@pytest.mark.parametrize(
    "words",
    [
        ["mv"],
        ["mv", "a"],
        ["mv", "a", "b", "--resume", "j"],
        ["mv", "--resume", "j", "--rollback", "j"],
        ["mv", "--rollback", "j", "--replace"],
    ],
)
def test_words_that_do_not_go_together(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line is refused before anything is opened."""
    assert _said(capsys, *words)[0] == Exit.USAGE

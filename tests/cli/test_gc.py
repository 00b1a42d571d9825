"""``gc``: what dead jobs left is shown, and deleted with ``--yes``."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.cli.output import Exit
from tests.cli.support import Command, cut_short, prepare
from tests.support.jobs import left, visible, write

OLD = "gone"


def leave(dest: Path) -> Path:
    """Leave a dead job, and a staging directory of Spark that is old."""
    attempt = prepare(dest, job_id=OLD)
    os.utime(attempt / "job-owner.json", (0, 0))
    write(dest, {".spark-staging-1/day=1/x": "123", "day=9/part-0": "kept"})
    for path in (dest / ".spark-staging-1").rglob("*"):
        os.utime(path, (1, 1))
    os.utime(dest / ".spark-staging-1", (1, 1))
    return attempt


def test_nothing_is_deleted_without_yes(command: Command, tmp_path: Path) -> None:
    """What would go is shown with its size; a young job is kept, and the reason is shown."""
    attempt = leave(tmp_path)
    before = left(tmp_path)

    assert command("gc", tmp_path) == 0
    assert "would delete 1 item, 1 file, 3 B" in command.out
    assert f"kept {attempt}: dead job, younger than --older-than" in command.out
    assert "pass --yes" in command.out
    found = command.json("gc", tmp_path, "--older-than", "0")
    assert {one["kind"] for one in found["garbage"]} == {
        "dead job",
        "staging directory of Spark",
    }
    assert (found["dry_run"], found["blocked"]) == (True, False)
    assert left(tmp_path) == before


def test_yes_deletes(command: Command, tmp_path: Path) -> None:
    """The table stays, and a second run finds nothing."""
    leave(tmp_path)

    done = command.json("gc", tmp_path, "--older-than", "0", "--yes")

    assert (done["code"], len(done["deleted"]), done["failures"]) == (0, 2, [])
    assert [path.name for path in tmp_path.iterdir()] == ["day=9"]
    assert command("gc", tmp_path, "--older-than", "0", "--yes") == 0
    assert "deleted 0 items" in command.out


@pytest.mark.parametrize("days", [-5, 5])
def test_a_wrong_clock_deletes_nothing_young(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """The one that dates the files counts: a staging directory of a minute ago stays."""
    write(tmp_path, {".spark-staging-1/day=1/x": "123", "_temporary/0/_temporary/a/x": "4"})
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + days * 86_400)

    shown = command.json("gc", tmp_path, "--older-than", "0")
    done = command.json("gc", tmp_path, "--older-than", "0", "--yes")

    assert len(shown["garbage"]) == (2 if days > 0 else 0)
    assert (done["code"], done["deleted"], len(done["kept"])) == (0, [], 2)
    assert (tmp_path / ".spark-staging-1/day=1/x").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".spark-staging-1", "_temporary"]


def test_a_job_that_may_be_alive_is_kept(command: Command, tmp_path: Path) -> None:
    """At any age, with the command that ends it all the same."""
    prepare(tmp_path)
    before = left(tmp_path)

    assert command("gc", tmp_path, "--older-than", "0", "--yes") == 0
    assert "the job is" in command.out
    assert left(tmp_path) == before


def test_an_unfinished_commit_comes_first(command: Command, tmp_path: Path) -> None:
    """Nothing is deleted, the exit code is 3, and the command that is named finishes it."""
    leave(tmp_path)
    cut_short(tmp_path)
    before = left(tmp_path), visible(tmp_path)

    assert command("gc", tmp_path, "--older-than", "0", "--yes") == Exit.REFUSED
    assert "nothing can be deleted" in command.out
    assert (left(tmp_path), visible(tmp_path)) == before
    kept = command.json("gc", tmp_path, "--older-than", "0")["kept"]
    (typed,) = [one["command"] for one in kept if one["blocks"]]
    assert main(shlex.split(typed)[1:]) == 0
    assert command("gc", tmp_path, "--older-than", "0", "--yes") == 0


def test_wrong_words(command: Command, tmp_path: Path) -> None:
    """An age that is none is a usage error; a destination that does not exist has its code."""
    assert command("gc", tmp_path, "--older-than", "soon") == Exit.USAGE
    assert "expected 90m, 12h or 7d" in command.err
    assert command("gc", tmp_path / "no") == Exit.NOT_FOUND

"""What an abort, a rollback or a takeover would do is said, and nothing is done."""

from __future__ import annotations

import os
from pathlib import Path

from asynccommit.cli.output import Exit
from tests.cli.support import Command, cut_short, let_live, prepare
from tests.support.jobs import left, visible


def test_abort_of_a_dead_job(command: Command, tmp_path: Path) -> None:
    """Each directory of the job is named, with its files; the abort itself deletes them."""
    attempt = prepare(tmp_path)
    os.utime(attempt / "job-owner.json", (0, 0))
    before = left(tmp_path)

    said = command.json("abort", tmp_path, "--dry-run")

    assert (said["code"], said["refused"], said["job"]["state"]) == (0, False, "dead")
    places = {place["path"]: place["files"] for place in said["places"]}
    assert places[f"{attempt}/tasks"] == 3
    assert places[f"{attempt}/manifests"] == 2
    assert command("abort", tmp_path, "--dry-run") == 0
    assert "nothing was changed" in command.out
    assert left(tmp_path) == before


def test_abort_of_a_running_job(command: Command, tmp_path: Path) -> None:
    """It is said that it would be refused, and what --force would do."""
    prepare(tmp_path)
    before = left(tmp_path)

    assert command("abort", tmp_path, "--dry-run") == Exit.REFUSED
    assert "would be refused" in command.out
    assert command("abort", tmp_path, "--dry-run", "--force") == 0
    assert "effect: deletes what 2 committed tasks and others wrote" in command.out
    assert left(tmp_path) == before


def test_rollback_of_a_commit(command: Command, tmp_path: Path) -> None:
    """What would be taken back is counted; without --rollback all is kept."""
    cut_short(tmp_path)
    before = left(tmp_path), visible(tmp_path)

    said = command.json("abort", tmp_path, "--rollback", "--dry-run")

    assert (said["code"], said["refused"]) == (0, False)
    assert said["does"].startswith("undoes 1 file")
    assert command("abort", tmp_path, "--dry-run") == Exit.REFUSED
    assert (left(tmp_path), visible(tmp_path)) == before


def test_takeover(command: Command, tmp_path: Path) -> None:
    """Both ways are told, though the owner may live."""
    let_live(cut_short(tmp_path))
    before = left(tmp_path), visible(tmp_path)

    assert command.json("abort", tmp_path, "--rollback", "--dry-run")["refused"] is True
    assert command("takeover", tmp_path, "--rollback", "--dry-run") == 0
    assert "effect: takes the commit from its owner and rolls it back" in command.out
    said = command.json("takeover", tmp_path, "--dry-run")
    assert "finishes the commit of 3 files; already in place: 1" in said["does"]
    assert (left(tmp_path), visible(tmp_path)) == before


def test_a_takeover_that_cannot_be_told(command: Command, tmp_path: Path) -> None:
    """A dry run ends with 3 where the record cannot be read: the takeover would be refused."""
    (cut_short(tmp_path) / "commit-record.json").write_text("{")

    assert command("takeover", tmp_path, "--dry-run") == Exit.REFUSED
    assert command("takeover", tmp_path, "--rollback", "--dry-run") == Exit.REFUSED

"""``commit --mode``, and what a dry run says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.cli.output import Exit
from tests.cli.support import TASKS, Command, cut_short, prepare
from tests.support.jobs import left, visible, write

OLD = {"day=1/old-0": "a", "day=1/deep/old-1": "b", "day=9/old-2": "c", "_SUCCESS": "old"}
NEW = {**TASKS[0], **TASKS[1]}


@pytest.mark.parametrize(
    "mode, kept",
    [
        ("append", ["day=1/old-0", "day=1/deep/old-1", "day=9/old-2"]),
        ("replace_table", []),
        ("overwrite", []),
        ("replace_partitions", ["day=9/old-2"]),
    ],
)
def test_what_a_mode_keeps(command: Command, tmp_path: Path, mode: str, kept: list[str]) -> None:
    """Each mode replaces what its name says, and nothing else."""
    write(tmp_path, OLD)
    prepare(tmp_path)

    assert command("commit", tmp_path, "--tasks", "2", "--mode", mode) == 0
    assert visible(tmp_path) == {**NEW, **{name: OLD[name] for name in kept}}
    assert left(tmp_path) == []


def test_mode_fail_refuses(command: Command, tmp_path: Path) -> None:
    """With ``fail`` a destination that holds something is refused."""
    write(tmp_path, OLD)
    prepare(tmp_path)

    error = command.json("commit", tmp_path, "--tasks", "2", "--mode", "fail")

    assert (error["code"], error["error"]) == (Exit.REFUSED, "refused")
    assert "not empty" in error["message"]
    assert command("commit", tmp_path, "--dry-run", "--mode", "fail") == Exit.REFUSED


def test_unknown_mode_is_usage(command: Command, tmp_path: Path) -> None:
    """A mode that does not exist is a usage error that names those that do."""
    prepare(tmp_path)

    error = command.json("commit", tmp_path, "--tasks", "2", "--mode", "overwrit")

    assert (error["code"], error["error"]) == (Exit.USAGE, "usage")
    assert "replace_partitions" in error["message"]


@pytest.mark.parametrize(
    "mode, replaced, files",
    [
        ("append", [], 0),
        ("replace_partitions", ["day=1"], 2),
        ("replace_table", ["day=1", "day=9"], 3),
    ],
)
def test_dry_run_lists_what_would_be_replaced(
    command: Command, tmp_path: Path, mode: str, replaced: list[str], files: int
) -> None:
    """The directories are named and their files counted; nothing is changed."""
    old = {name: text for name, text in OLD.items() if name != "_SUCCESS"}
    write(tmp_path, old)
    prepare(tmp_path)
    before = left(tmp_path), visible(tmp_path)

    report = command.json("commit", tmp_path, "--dry-run", "--mode", mode)

    assert report["code"] == 0
    assert sorted(report["replacing"]) == [f"{tmp_path}/{name}" for name in replaced]
    assert (report["replaced"], report["replaced_files"]) == (len(replaced), files)
    assert (left(tmp_path), visible(tmp_path)) == before
    assert command("commit", tmp_path, "--dry-run", "--mode", mode) == 0
    assert ("would be replaced" in command.out) is bool(replaced)


def test_commit_beside_a_commit_that_was_cut_short(command: Command, tmp_path: Path) -> None:
    """A job is not committed while another's commit waits to be finished, unless an option does."""
    prepare(tmp_path, ({"day=7/part": "x"},), job_id="rerun")
    cut_short(tmp_path)

    words = ("commit", tmp_path, "--job-id", "rerun", "--tasks", "1")
    error = command.json(*words)
    assert (error["code"], error["error"]) == (Exit.REFUSED, "refused")
    assert command(*words) == Exit.REFUSED
    assert f"asynccommit resume file:{tmp_path} --job-id " in command.err
    assert "\\n" not in command.err
    assert command(*words, "-o", "asynccommit.on.unfinished=rollback") == 0
    assert visible(tmp_path) == {"day=7/part": "x"}

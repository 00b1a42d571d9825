"""``print`` of a report shows what the command prints for it."""

from __future__ import annotations

import re
from pathlib import Path

from asynccommit import sync
from tests.cli.support import Command, cut_short, prepare
from tests.support.jobs import JOB


def _timeless(text: str) -> str:
    """Return a text without its durations and rates."""
    return re.sub(r"[\d.,]+ (ms|us|s\b|files/s|min \d+ s)", "T", text).rstrip("\n")


def _is_repr(report: object) -> bool:
    return repr(report).startswith(f"{type(report).__name__}(") and "\n" not in repr(report)


def test_commits_and_aborts(command: Command, tmp_path: Path) -> None:
    """A dry run, a resumed commit, one that was done before and an abort."""
    for name in ("command", "python"):
        prepare(tmp_path / name / "dry")
        cut_short(tmp_path / name / "cut")
        prepare(tmp_path / name / "gone")
    here, there = tmp_path / "command", tmp_path / "python"

    for words, report in (
        (("commit", here / "dry", "--dry-run"), sync.job(there / "dry", JOB).plan()),
        (("resume", here / "cut"), sync.job(there / "cut", JOB).resume()),
        (("resume", here / "cut", "--job-id", JOB), sync.job(there / "cut", JOB).resume()),
        (("abort", here / "gone", "--force"), sync.job(there / "gone", JOB).abort(force=True)),
    ):
        assert command(*words) == 0, command.err
        assert _timeless(command.out) == _timeless(str(report)).replace("python", "command")
        assert _is_repr(report)


def test_moves_and_comparisons(command: Command, tmp_path: Path) -> None:
    """A move of a tree, and a comparison that finds a difference."""
    for name in ("command", "python"):
        (tmp_path / name / "tree").mkdir(parents=True)
        (tmp_path / name / "tree/file").write_text("x")
    here, there = tmp_path / "command", tmp_path / "python"
    (tmp_path / "list").write_text("absent\n")

    with sync.open_store(there) as store:
        moved = store.move_tree(there / "tree", there / "new")
        compared = store.verify([(f"{there}/absent", None, None)])

    assert command("mv", here / "tree", here / "new") == 0
    assert _timeless(command.out) == _timeless(str(moved))
    assert command("verify", here, "--from-file", tmp_path / "list") == 3
    assert _timeless(command.out) == _timeless(str(compared)).replace("python", "command")
    assert _is_repr(moved)
    assert _is_repr(compared)

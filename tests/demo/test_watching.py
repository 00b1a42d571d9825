"""The counts of a table while a driver writes it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from asynccommit.demo.watching import Counts, watched


def touch(table: Path, *names: str) -> None:
    """Make empty files in a table."""
    for name in names:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).touch()


TASK = "_temporary/0/_temporary/attempt_0/month=1"


def test_table_that_is_not_there_yet(tmp_path: Path) -> None:
    """Before the job is set up nothing is written."""
    counts = Counts(tmp_path / "table")

    assert not counts.half_way()
    assert str(counts) == "starting Spark"


def test_half_way(tmp_path: Path) -> None:
    """Half of the files that the tasks wrote are visible; checksums and markers do not count."""
    counts = Counts(tmp_path)
    touch(tmp_path, *(f"{TASK}/part-{number}.parquet" for number in range(4)))
    touch(tmp_path, f"{TASK}/.part-0.parquet.crc")
    assert not counts.half_way()
    assert str(counts) == "4 files written, none visible"

    touch(tmp_path, "month=1/part-0.parquet", "_SUCCESS", "month=1/.part-0.parquet.crc")
    (tmp_path / TASK / "part-0.parquet").unlink()
    assert not counts.half_way()
    touch(tmp_path, "month=1/part-1.parquet")
    (tmp_path / TASK / "part-1.parquet").unlink()
    assert counts.half_way()

    counts.killed = True
    assert str(counts) == "2 of 4 files visible, killed"
    assert counts.hidden() == 2


def test_counts_before_another_try(tmp_path: Path) -> None:
    """The table of a driver that was killed too late is deleted."""
    counts = Counts(tmp_path / "table")
    touch(counts.table, "month=1/part-0.parquet")
    counts.count_all()
    assert (counts.visible, counts.written) == (1, 1)

    counts.clear()
    assert not counts.table.exists()
    assert (counts.visible, counts.written) == (0, 0)


def test_bars_show_each_table(tmp_path: Path) -> None:
    """On a terminal there is a bar for each table, with its counts."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            """Take bars."""
            return True

    terminal, lines = Terminal(), list[str]()
    touch(tmp_path / "a", "month=1/part-0.parquet", f"{TASK}/part-1.parquet")
    counts = {"one": Counts(tmp_path / "a"), "two": Counts(tmp_path / "b")}
    with watched(terminal, lines.append, counts):
        counts["one"].count_all()
        counts["one"].killed = True

    assert "1 of 2 files visible, killed" in terminal.getvalue()
    assert "starting Spark" in terminal.getvalue()
    assert lines == []


def test_lines_without_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal the counts are said again and again."""
    monkeypatch.setattr("asynccommit.demo.watching._EVERY", 0.001)
    lines: list[str] = []
    with watched(None, lines.append, {"one": Counts(tmp_path)}):
        while not lines:
            pass

    assert lines[0] == "one: starting Spark"

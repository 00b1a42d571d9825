"""``hive dedup``: what is superfluous in a table of Hive is shown, and deleted when it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Command
from tests.support.jobs import write

FILES = {
    "ds=1/000000_0": "one\n",
    "ds=1/000000_1": "one\ntwo\n",
    "ds=1/_tmp.000003_0": "three",
    "ds=2/": "",
}
SPARK = "part-00000-7b0c4a1e-1111-4000-8000-000000000000-c000.csv"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a task that ran twice."""
    write(tmp_path / "t", FILES)
    return tmp_path / "t"


def names(folder: Path) -> list[str]:
    """Return what is below a directory."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_is_shown_before_it_is_done(command: Command, table: Path) -> None:
    """Without --yes nothing is changed."""
    before = names(table)

    assert command("hive", "dedup", table, "--partitions", "1", "--buckets", "2") == 0
    assert command.out.splitlines() == [
        f"file:{table}: 2 files in 2 directories",
        "  would delete 1 superfluous file, 4 B",
        f"    {table}/ds=1/000000_0 (4 B), for {table}/ds=1/000000_1 (8 B)",
        "  would delete 1 unfinished file, 5 B",
        f"    {table}/ds=1/_tmp.000003_0",
        "  would make empty buckets: 1",
        f"    {table}/ds=1/000001_1",
        "  would remove empty partitions: 1",
        f"    {table}/ds=2",
        "  nothing was changed: pass --yes to make the changes",
    ]
    assert names(table) == before


def test_is_done(command: Command, table: Path) -> None:
    """With --yes it is done, and a second time there is nothing to do."""
    words = ("hive", "dedup", table, "--partitions", "1", "--buckets", "2", "--yes")

    assert command(*words) == 0
    assert "  deleted: 2" in command.out.splitlines()
    assert names(table) == ["ds=1", "ds=1/000000_1", "ds=1/000001_1"]
    assert command(*words) == 0
    assert command.out.splitlines()[1:] == ["  nothing to do"]


def test_json(command: Command, table: Path) -> None:
    """Everything is in the value, before and after."""
    words = ("hive", "dedup", table, "--partitions", "1")
    said = command.json(*words)

    assert (said["code"], said["dry_run"], said["deleted"]) == (0, True, [])
    assert said["duplicates"] == [
        {"stays": f"{table}/ds=1/000000_1", "superfluous": [f"{table}/ds=1/000000_0"]}
    ]

    done = command.json(*words, "--yes")

    assert done["deleted"] == [f"{table}/ds=1/000000_0", f"{table}/ds=1/_tmp.000003_0"]
    assert (done["removed"], done["kept"], done["conflicts"]) == ([f"{table}/ds=2"], {}, {})


def test_conflicts(command: Command, table: Path) -> None:
    """What the rules cannot decide is shown, and ends with 3; nothing is changed."""
    write(table, {"ds=1/000000_1": "1"})
    before = names(table)
    words = ("hive", "dedup", table, "--partitions", "1", "--rules", "3")

    assert command(*words) == 3
    assert f"  conflict: {table}/ds=1/000000_1 is the newer attempt and smaller" in command.out
    assert command.out.splitlines()[-1] == "  resolve the conflicts first"
    assert command(*words, "--yes") == 3
    assert "is the newer attempt and smaller" in command.err
    assert names(table) == before
    assert command(*words[:-1], "4", "--yes") == 0


def test_spark_names(command: Command, tmp_path: Path) -> None:
    """A table that looks like Spark's is refused, unless it is forced."""
    write(tmp_path, {SPARK: "one", SPARK.replace("00000", "00001", 1): "other"})

    assert command("hive", "dedup", tmp_path, "--yes") == 3
    assert "has a name in Spark's format" in command.err
    assert len(names(tmp_path)) == 2
    assert command("hive", "dedup", tmp_path, "--yes", "--force") == 0
    assert len(names(tmp_path)) == 1


def test_what_is_passed_over(command: Command, table: Path) -> None:
    """A wrong number of partitions is seen."""
    assert command("hive", "dedup", table) == 0
    assert "  skipped, not at the depth given by --partitions: 2" in command.out


def test_hostile_names(command: Command, tmp_path: Path) -> None:
    """No name does anything to a terminal."""
    write(tmp_path, {"d=\x1b[31m/000000_0": "1", "d=\x1b[31m/000000_1": "22", "d=\n/000000_0": ""})

    assert command("hive", "dedup", tmp_path, "--partitions", "1") == 0
    assert "\x1b" not in command.out
    assert "d=\\x1b[31m/000000_0" in command.out


def test_a_missing_table(command: Command, tmp_path: Path) -> None:
    """A place that is not there ends with 5."""
    assert command("hive", "dedup", tmp_path / "none") == 5


@pytest.mark.parametrize(
    "words", [("--rules", "5"), ("--partitions", "-1"), ("--format", "rcfile")]
)
def test_usage(command: Command, table: Path, words: tuple[str, str]) -> None:
    """Words that mean nothing end with 2."""
    assert command("hive", "dedup", table, *words) == 2
    assert command("hive", "dedup", table, "--buckets", "10000000") == 2


def test_long_lists_are_cut(command: Command, tmp_path: Path) -> None:
    """Of very many the first are shown, and how many more there are."""
    write(tmp_path, {f"{task:06}_{attempt}": "x" for task in range(50) for attempt in range(2)})

    assert command("hive", "dedup", tmp_path) == 0
    assert "    and 30 more; --json has all" in command.out.splitlines()
    assert len(command.out.splitlines()) == 24

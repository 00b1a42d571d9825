"""``mv``, ``rm`` and ``ls`` leave the files of jobs that have not ended to them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from asynccommit import sync
from asynccommit.options.job import Mode
from tests.cli.support import Command, cut, prepare
from tests.support.jobs import JOB


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose files an unfinished commit has moved aside, and a file beside them."""
    table = tmp_path / "lake/t"
    table.mkdir(parents=True)
    (table / "old.csv").write_text("old")
    prepare(table, [{"a.csv": "a"}, {"b.csv": "b"}])
    cut(table, "/b.csv", mode=Mode.REPLACE_TABLE)
    return table


def _files(table: Path) -> dict[str, str]:
    return {str(it.relative_to(table)): it.read_text() for it in table.rglob("*.csv")}


def _hint(command: Command) -> list[str]:
    """Return the arguments of the command that the error names."""
    said = command.err.partition("Settle it first: ")[2].partition(" - or")[0]
    return shlex.split(said)[1:]


@pytest.mark.parametrize(
    "args",
    [
        ("rm", "{t}/*.csv"),
        ("rm", "{t}/*.csv", "--dry-run"),
        ("rm", "-r", "{t}"),
        ("rm", "-r", "{lake}"),
        ("rm", "-r", "{t}/_temporary"),
        ("rm", "{t}/_temporary/*.csv"),
        ("rm", "{lake}", "--from-file", "{list}"),
        ("mv", "{t}/*.csv", "{lake}/new/"),
        ("mv", "{t}", "{lake}/new"),
        ("mv", "{lake}", "{lake}-2"),
        ("mv", "{lake}", "{lake}-2", "--from-file", "{list}"),
        ("mv", "{lake}/x.csv", "{job}/tasks/"),
    ],
    ids=lambda args: " ".join(args),
)
def test_an_unfinished_commit_is_settled_first(
    command: Command, table: Path, args: tuple[str, ...]
) -> None:
    """Refused with the command that settles it, nothing changed; a rollback restores the table."""
    lake, listing = table.parent, table.parent.parent / "list"
    (lake / "x.csv").write_text("x")
    listing.write_text(
        "x.csv\n" + "\n".join(str(it.relative_to(lake)) for it in table.rglob("old.csv"))
    )
    job = table / f"_temporary/{JOB}/00"
    names = {"t": table, "lake": lake, "list": listing, "job": job}
    before = _files(lake)

    assert command(*[arg.format(**names) for arg in args]) == 3

    assert "--force" in command.err
    assert _files(lake) == before
    assert command(*_hint(command)) == 0
    assert {"a.csv", "b.csv"} == _files(table).keys()


def test_force_goes_on(command: Command, table: Path) -> None:
    """Whoever insists deletes and moves them, directories of jobs named or not."""
    assert command("mv", f"{table}/_temporary/*/old.csv", table.parent / "found", "--force") == 0
    assert [text for name, text in _files(table.parent / "found").items()] == ["old"]
    assert command("rm", "-r", table, "--force") == 0
    assert not table.exists()


def test_patterns_leave_directories_of_jobs_alone(command: Command, tmp_path: Path) -> None:
    """Files of jobs that have ended are no matches unless the pattern names such a directory."""
    for name in ("a.csv", "_temporary/b.csv", "d/__magic_x/c.csv", "d/_temporary/0/d.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)

    told = command.json("ls", f"{tmp_path}/*.csv")
    assert [entry["name"] for entry in told["entries"]] == ["a.csv"]
    told = command.json("ls", f"{tmp_path}/d/_temporary/*")
    assert [entry["name"] for entry in told["entries"]] == ["0/d.csv"]
    assert command("rm", f"{tmp_path}/*.csv") == 0
    assert len(_files(tmp_path)) == 3
    assert command("rm", f"{tmp_path}/*/__magic*/*.csv") == 0
    assert len(_files(tmp_path)) == 2


def test_a_running_job_is_left_alone(command: Command, tmp_path: Path) -> None:
    """Nothing of its table is deleted; what lies elsewhere and what it has ended with may be."""
    table = tmp_path / "t"
    with sync.open_job(table, job_id="nightly") as job, job.task(0) as task:
        Path(task.path("part-0.csv")).write_text("1")
        (tmp_path / "other.csv").write_text("2")
        for path in (table, table / "_temporary", f"{table}/_temporary/*"):
            assert command("rm", "-r", path) == 3
            assert "nightly" in command.err
            assert command(*_hint(command)) == 0
        assert command("rm", tmp_path / "other.csv") == 0

    assert command("rm", f"{table}/*.csv") == 0
    assert command("rm", "-r", table) == 0


def test_jobs_of_spark_are_left_alone(command: Command, tmp_path: Path) -> None:
    """So are its staging directories, and what FileOutputCommitter's tasks have written."""
    staged = tmp_path / "t/.spark-staging-1/day=1/a.csv"
    task = tmp_path / "u/_temporary/0/_temporary/attempt_202601010000_0001_m_000000_0/b.csv"
    for path in (staged, task):
        path.parent.mkdir(parents=True)
        path.write_text("1")

    for name in ("t", "u", "t/*.csv", "u/_temporary/0"):
        assert command("rm", "-r", tmp_path / name) in (3, 5)
        assert command("mv", tmp_path / name, f"{tmp_path}/v") in (3, 5)
    assert command("rm", "-r", tmp_path / "t", "--json") == 3
    assert json.loads(command.out)["error"] == "refused"
    assert staged.exists()
    assert task.exists()

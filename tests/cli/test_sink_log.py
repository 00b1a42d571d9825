"""``sink-log``: a log is shown, verified, and repaired when it is said so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit.streaming.entries import FOLDER
from asynccommit.streaming.log import SinkLogSettings
from tests.cli.support import Command
from tests.support.sink import BlockingLog, log_files, of_disk


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of 12 batches, and a file that no batch lists."""
    place = tmp_path / "ta ble"
    place.mkdir()
    log = BlockingLog(place)
    for batch in range(12):
        file = place / f"part-{batch}.parquet"
        file.write_bytes(bytes(10))
        log.add(batch, [of_disk(file, place)], "query-1")
    (place / "stray.parquet").write_bytes(bytes(10))
    return place


def test_show(command: Command, table: Path) -> None:
    """It says what readers see, batch by batch, and who wrote them."""
    assert command("sink-log", "show", str(table)) == 0

    assert "batches to 11, a compact file every 10; readers see 12 files, 120 B" in command.out
    assert "1 file of the table in no batch: readers do not see them" in command.out
    assert [line.split()[0] for line in command.out.splitlines() if "query-1" in line] == [
        "9.compact",
        "10",
        "11",
    ]


def test_show_as_json(command: Command, table: Path) -> None:
    """A program gets the same, with every file."""
    assert command("sink-log", "show", str(table), "--json") == 0

    value = json.loads(command.out)
    assert (value["newest"], value["interval"], value["unlisted"]) == (11, 10, 1)
    assert [one["file"] for one in value["batches"]] == ["9.compact", "10", "11"]
    assert [one["entries"] for one in value["batches"]] == [10, 1, 1]
    assert len(value["files"]) == 12


def test_verify(command: Command, table: Path) -> None:
    """A sound log is fine; one that is not ends with 3, each problem with its remedy."""
    assert command("sink-log", "verify", str(table)) == 0
    assert "no problems" in command.out

    (table / "part-3.parquet").unlink()
    (table / FOLDER / "10").unlink()
    assert command("sink-log", "verify", str(table)) == 3
    assert "2 problems" in command.out
    assert "10: is missing, but readers need it" in command.out
    assert "part-3.parquet' is listed but does not exist" in command.out

    assert command("sink-log", "verify", str(table), "--json") == 3
    found = json.loads(command.out)["findings"]
    assert [one["wrong"] for one in found] == ["batch", "gone"]
    assert all(one["remedy"] for one in found)


def test_repair(command: Command, table: Path) -> None:
    """It says what it would do; with --yes it does it, and keeps what was there."""
    place = table / FOLDER / "11"
    broken = place.read_text() + "\n\n" + place.read_text().split("\n")[1]
    place.write_text(broken)

    assert command("sink-log", "repair", str(table)) == 0
    said = "11: blank lines removed, duplicate entries removed"
    assert "would repair 1 file" in command.out
    assert said in command.out
    assert "nothing was changed: pass --yes" in command.out
    assert place.read_text() == broken

    assert command("sink-log", "repair", str(table), "--yes") == 0
    assert "repaired 1 file" in command.out
    assert said in command.out
    assert len(BlockingLog(table).files()) == 12
    (kept,) = (table / FOLDER).glob(".11.*.old")
    assert kept.read_text() == broken


def test_repair_leaves_what_it_cannot(command: Command, table: Path) -> None:
    """What cannot be made of what is there is named, and the command ends with 3."""
    (table / FOLDER / "10").unlink()
    before = log_files(table)

    assert command("sink-log", "repair", str(table), "--yes", "--json") == 3

    value = json.loads(command.out)
    assert value["repaired"] == []
    assert [one["file"] for one in value["left"]] == ["10"]
    assert log_files(table) == before


def test_repair_after_a_move(command: Command, table: Path) -> None:
    """A table that was moved is seen again."""
    moved = table.rename(table.with_name("moved"))

    assert command("sink-log", "verify", str(moved)) == 3
    assert "repair with --moved-from" in command.out
    assert command("sink-log", "repair", str(moved), "--moved-from", str(table), "--yes") == 0
    assert command("sink-log", "verify", str(moved)) == 0


def test_readers_with_another_interval(command: Command, tmp_path: Path) -> None:
    """What readers with the default cannot read is fine for those with the writer's interval."""
    log = BlockingLog(tmp_path, SinkLogSettings(interval=100))
    for batch in range(12):
        log.add(batch, [])

    assert command("sink-log", "verify", str(tmp_path)) == 3
    assert "9.compact: is missing" in command.out
    assert command("sink-log", "verify", str(tmp_path), "--interval", "100") == 0
    assert command("sink-log", "repair", str(tmp_path), "--yes") == 0
    assert command("sink-log", "verify", str(tmp_path)) == 0


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_table_without_a_log(command: Command, tmp_path: Path, verb: str) -> None:
    """Where there is no log the command says so, and ends with 5."""
    assert command("sink-log", verb, str(tmp_path)) == 5

    assert "readers see all of its files" in command.err


def test_adopt(command: Command, table: Path, tmp_path: Path) -> None:
    """The log is given to a query with --yes alone, and one of two ways must be named."""
    assert command("sink-log", "adopt", str(table)) == 2
    words = ("sink-log", "adopt", str(table), "--checkpoint", str(tmp_path / "new"))
    assert command(*words) == 0
    assert "would belong to query" in command.out
    assert "nothing was changed" in command.out
    assert not (tmp_path / "new").exists()

    assert command(*words, "--yes") == 0
    assert "its first batch is 12" in command.out.replace("\n", " ")
    assert command("sink-log", "adopt", str(table), "--query", "q", "--yes", "--json") == 0
    value = json.loads(command.out)
    assert (value["newest"], value["query"], value["checkpoint"]) == (11, "q", None)


def test_runs_that_are_over(command: Command, table: Path) -> None:
    """Verify names announced runs; repair deletes what those of batches in the log have left."""
    token = "0f3e8a21-9c4d-4b1e"
    for batch in (11, 12):
        (table / FOLDER / f".{batch}.{token}.q.batch").touch()
    left = table / f"part-00000-{token}-8000-0123456789ab-c000.parquet"
    left.touch()

    assert command("sink-log", "verify", str(table)) == 0
    assert "batch 12 of query q runs, or its driver has died" in command.out
    assert "1 run of batches that the log has may have left files" in command.out
    assert command("sink-log", "repair", str(table)) == 0
    assert "would delete what 1 run" in command.out
    assert left.exists()

    assert command("sink-log", "repair", str(table), "--yes") == 0
    assert "deleted 1 file of 1 run" in command.out
    assert not left.exists()
    assert [path.name for path in (table / FOLDER).glob(".*.batch")] == [f".12.{token}.q.batch"]

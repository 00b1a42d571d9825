"""What runs of a batch said they would publish, and what becomes of it once one of them counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.urls import parse_url
from asynccommit.streaming.entries import FOLDER
from asynccommit.streaming.log import Added, SinkFile, SinkLog
from asynccommit.streaming.publish_intents import Announced
from tests.support.sink import entry, log_files


class Table:
    """A table on the local disk, with a log.

    Args:
        path: its directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store, self.dest = LocalStore(), parse_url(str(path))
        self.log = SinkLog(self.store, self.dest)
        self.announced = Announced(self.store, self.dest, self.log)

    def publish(self, *names: str) -> list[SinkFile]:
        """Have files in the table, and return what a batch says of them."""
        for name in names:
            (self.path / name).write_text("AA,JFK\n")
        return [entry(self.dest, name) for name in names]

    def say(self, batch: int, run: str, *names: str) -> list[SinkFile]:
        """Announce files and publish them, as a program of its own."""
        files = self.publish(*names)
        submit(Announced(self.store, self.dest, self.log).say(batch, run, files))
        return files

    def files(self) -> list[str]:
        """Return the files of the table."""
        return sorted(path.name for path in self.path.iterdir() if path.is_file())

    def hidden(self) -> list[str]:
        """Return what lies beside the log."""
        return sorted(p.name for p in (self.path / FOLDER).iterdir() if p.name.startswith("."))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table without files."""
    return Table(tmp_path)


def test_run_that_died(table: Table) -> None:
    """What a run published and the log does not list is deleted, and nothing besides."""
    table.say(0, "dead", "a", "b")
    table.publish("foreign")
    files = table.publish("c")
    submit(table.announced.say(0, "this", files))
    assert submit(table.log.add(0, files)) is Added.NEW

    submit(table.announced.settle(0))

    assert table.files() == ["c", "foreign"]
    assert table.hidden() == []
    assert list(log_files(table.path)) == ["0"]


def test_what_is_listed_stays(table: Table) -> None:
    """A run that died right after its batch was listed has nothing to delete."""
    files = table.say(0, "dead", "a", "b")
    submit(table.log.add(0, files))

    submit(table.announced.settle(0))

    assert table.files() == ["a", "b"]
    assert table.hidden() == []


def test_batches_to_come(table: Table) -> None:
    """What is announced for a batch that the log does not have yet is left alone."""
    submit(table.log.add(0, table.publish("a")))
    table.say(1, "other", "b")

    submit(table.announced.settle(0))

    assert table.files() == ["a", "b"]
    assert table.hidden() == [".1.other.files"]


def test_lost_race(table: Table) -> None:
    """A run whose batch another one has listed deletes what it published itself."""
    submit(table.log.add(0, table.say(0, "quick", "a"), query="q"))
    mine = table.publish("b")
    assert submit(table.log.add(0, mine, query="q")) is Added.ALREADY

    submit(table.announced.settle(0, mine))

    assert table.files() == ["a"]
    assert table.hidden() == []


@pytest.mark.parametrize("text", ["", "v1\n{", "v2\n", "v1\n[]"])
def test_announcement_that_was_cut_short(table: Table, text: str) -> None:
    """One that cannot be read is removed: nothing is published before it is written."""
    submit(table.log.add(0, table.publish("a")))
    (table.path / FOLDER / ".0.torn.files").write_text(text)

    submit(table.announced.settle(0))

    assert table.files() == ["a"]
    assert table.hidden() == []


def test_hostile_announcement(table: Table, tmp_path: Path) -> None:
    """Nothing outside of the table is deleted, nor its log, nor a directory."""
    inner = Table(tmp_path / "inner")
    inner.path.mkdir()
    outside = table.publish("victim")
    (inner.path / "folder").mkdir()
    submit(inner.log.add(0, inner.publish("a")))
    log = entry(inner.dest, f"{FOLDER}/0")
    submit(inner.announced.say(0, "x", [*outside, log, entry(inner.dest, "folder")]))

    submit(Announced(inner.store, inner.dest, inner.log).settle(0))

    assert table.files() == ["victim"]
    assert list(log_files(inner.path)) == ["0"]
    assert (inner.path / "folder").is_dir()


def test_settling_that_fails(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """The batch is committed whatever becomes of the rest: that is a warning, and comes again."""
    submit(table.log.add(0, table.publish("a")))
    table.say(0, "dead", "b")
    (table.path / FOLDER / "0").write_text("v2\n")

    submit(table.announced.settle(0))

    assert table.files() == ["a", "b"]
    assert table.hidden() == [".0.dead.files"]
    assert "could not be deleted" in caplog.text

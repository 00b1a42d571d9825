"""Runs of a batch whose files carry a token, and what becomes of those that died."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.errors import SinkLogCorruptError
from asynccommit.runtime.loop_thread import submit
from asynccommit.streaming.batch_names import BatchNames, NamedRun, named_run, token_of
from asynccommit.streaming.entries import FOLDER
from tests.streaming.test_publish_intents import Table
from tests.support.sink import announce

DEAD = NamedRun(1, "0f3e8a21-9c4d-4b1e", "q")
OTHER = NamedRun(1, "aaaaaaaa-aaaa-4aaa", "q")


def names_of(table: Table) -> BatchNames:
    """Return the announcements of a table, as a program of its own."""
    return BatchNames(table.store, table.dest, 1 << 20)


def part(run: NamedRun, number: int) -> str:
    """Return the name of a file of a run."""
    return f"part-{number:05d}-{run.token}-8{number:03d}-0123456789ab-c000.parquet"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table with batch 0, and a file that is nobody's."""
    table = Table(tmp_path)
    submit(table.log.add(0, table.publish("first")))
    table.publish("foreign")
    return table


def test_names_say_everything() -> None:
    """An announcement is read from its name, and no other name is one."""
    for run in (DEAD, NamedRun(7, DEAD.token, "q-1", ended=True)):
        assert named_run(run.name) == run
    for name in ("1", ".1.tmp", f".01.{DEAD.token}.q.batch", f".1.{DEAD.token[:-1]}.q.batch"):
        assert named_run(name) is None
    assert token_of(part(DEAD, 3)) == DEAD.token
    assert token_of(f"part-3-{DEAD.token}-x") is None


def test_run_that_died(table: Table) -> None:
    """What a dead run left is deleted once the log has its batch, in partitions too."""
    submit(announce(table.store, table.dest, DEAD))
    (table.path / "p=1").mkdir()
    table.publish(part(DEAD, 0), f"p=1/{part(DEAD, 1)}")
    names = names_of(table)
    left = submit(names.announced())
    assert left == [DEAD]

    assert submit(names.settle(left)).deleted == []
    assert part(DEAD, 0) in table.files()

    submit(table.log.add(1, table.publish(part(OTHER, 0))))
    done = submit(names.settle(left))

    assert len(done.deleted) == 2
    assert done.kept == {}
    assert table.files() == ["first", "foreign", part(OTHER, 0)]
    assert table.hidden() == []


def test_what_is_listed_stays(table: Table) -> None:
    """Of a run that died after its batch was listed only what a failed task left is deleted."""
    submit(announce(table.store, table.dest, DEAD))
    files = table.publish(part(DEAD, 0), part(DEAD, 1))
    submit(table.log.add(1, files[:1]))

    submit(names_of(table).settle([DEAD]))

    assert table.files() == ["first", "foreign", part(DEAD, 0)]
    assert table.hidden() == []


@pytest.mark.parametrize("more", [3, 12])
def test_what_is_listed_stays_after_compaction(table: Table, more: int) -> None:
    """The log still tells what a batch listed when only a compact file has it."""
    submit(announce(table.store, table.dest, DEAD))
    submit(table.log.add(1, table.publish(part(DEAD, 0))))
    for batch in range(2, 2 + more):
        submit(table.log.add(batch, []))
    table.publish(part(DEAD, 1))
    if more > 8:
        (table.path / FOLDER / "1").unlink()

    submit(names_of(table).settle([DEAD]))

    assert table.files() == ["first", "foreign", part(DEAD, 0)]


def test_settling_that_was_cut_short(table: Table) -> None:
    """From the moment of looking on tasks are refused; the next run finishes what was begun."""
    submit(announce(table.store, table.dest, DEAD))
    submit(table.log.add(1, table.publish(part(OTHER, 0))))
    table.publish(part(DEAD, 0))
    log = table.path / FOLDER / "1"
    text = log.read_text()
    log.write_text("v2\n")

    with pytest.raises(SinkLogCorruptError):
        submit(names_of(table).settle([DEAD]))

    assert [named_run(name) for name in table.hidden() if named_run(name)] == [
        NamedRun(1, DEAD.token, "q", ended=True)
    ]
    log.write_text(text)
    names = names_of(table)
    submit(names.settle(submit(names.announced())))
    assert table.files() == ["first", "foreign", part(OTHER, 0)]
    assert table.hidden() == []

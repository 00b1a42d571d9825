"""A log is given to another query, with a checkpoint that goes on after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit.errors import OptionError, SinkLogForeignError
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import parse_url
from asynccommit.streaming.adopt import Adopting
from asynccommit.streaming.log_owner import LogOwner, read_owner
from tests.streaming.test_log_owner import MINE, THEIRS, claim
from tests.streaming.test_publish_intents import Table


def adopting(table: Table, *, dry_run: bool = False) -> Adopting:
    """Return what gives the log of a table away."""
    return Adopting(table.store, table.dest, this_host(), dry_run=dry_run)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table with three batches of a query."""
    table = Table(tmp_path / "table")
    table.path.mkdir()
    claim(table, MINE, 0)
    for batch in range(3):
        submit(table.log.add(batch, table.publish(f"{batch}")))
    return table


def test_new_checkpoint(table: Table, tmp_path: Path) -> None:
    """It says that all batches of the log are done and that nothing was read, and its query has the
    log."""
    place = tmp_path / "new"
    told = adopting(table, dry_run=True)
    submit(told.with_checkpoint(table.store, parse_url(str(place)), 2))
    assert not place.exists()

    done = submit(adopting(table).with_checkpoint(table.store, parse_url(str(place)), 2))

    assert (done.newest, done.before) == (2, "'flights' (5f0c)")
    names = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
    assert names == ["commits/2", "metadata", "offsets/1", "offsets/2"]
    assert (place / "offsets" / "2").read_text().split("\n")[2:] == ["-", "-"]
    assert json.loads((place / "metadata").read_text()) == {"id": done.query}
    claim(table, LogOwner(done.query), 3)
    with pytest.raises(SinkLogForeignError, match="belongs to"):
        claim(table, MINE, 3)


def test_checkpoint_that_is_there(table: Table, tmp_path: Path) -> None:
    """The checkpoint of a query is not written to."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "metadata").touch()

    with pytest.raises(OptionError, match="is not empty"):
        submit(adopting(table).with_checkpoint(table.store, parse_url(f"{tmp_path}/old"), 1))
    assert submit(read_owner(table.store, table.dest)) == MINE


def test_query_with_its_checkpoint(table: Table, tmp_path: Path) -> None:
    """It has the log from then on, but still none of its batches may be dropped."""
    submit(adopting(table).to_query(THEIRS.query))

    claim(table, THEIRS, 2)
    with pytest.raises(SinkLogForeignError, match="begins with batch 0"):
        claim(table, THEIRS, 0)
    with pytest.raises(SinkLogForeignError, match="any query may begin"):
        submit(adopting(Table(tmp_path)).to_query("x"))

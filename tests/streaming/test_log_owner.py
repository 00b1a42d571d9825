"""The query that a log belongs to: claimed by the first, and refused to all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.errors import SinkLogForeignError
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.streaming.entries import FOLDER
from asynccommit.streaming.log_owner import NAME, LogOwner, claim_log, read_owner
from tests.streaming.test_publish_intents import Table

MINE = LogOwner("5f0c", "flights")
THEIRS = LogOwner("77aa")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table without files."""
    return Table(tmp_path)


def claim(table: Table, owner: LogOwner, batch: int) -> None:
    """Claim the log of a table for a query that begins with a batch."""
    submit(claim_log(table.store, table.dest, owner, batch, this_host()))


def test_first_query_has_the_log(table: Table) -> None:
    """It keeps it through restarts; a second one is refused with the first one's name."""
    claim(table, MINE, 0)
    claim(table, LogOwner(MINE.query, "renamed"), 4)
    assert submit(read_owner(table.store, table.dest)) == MINE

    with pytest.raises(SinkLogForeignError, match=r"belongs to query 'flights' .5f0c.") as refused:
        claim(table, THEIRS, 0)

    assert "query 77aa is another one" in str(refused.value)
    assert submit(read_owner(table.store, table.dest)) == MINE


@pytest.mark.parametrize("batch", [0, 2])
def test_log_of_stock_spark(table: Table, batch: int) -> None:
    """It names no query: one that goes on with it has it, and one that Spark would skip is
    refused."""
    for number in range(3):
        submit(table.log.add(number, table.publish(f"{number}")))

    with pytest.raises(
        SinkLogForeignError, match=f"to 2, and query 77aa begins with batch {batch}"
    ):
        claim(table, THEIRS, batch)
    assert submit(read_owner(table.store, table.dest)) is None

    claim(table, MINE, 3)
    assert submit(read_owner(table.store, table.dest)) == MINE


def test_restart_of_the_owner(table: Table) -> None:
    """It may run the newest batch again, and no earlier one, as from a checkpoint of yesterday."""
    claim(table, MINE, 0)
    for number in range(3):
        submit(table.log.add(number, table.publish(f"{number}")))
    claim(table, MINE, 2)

    with pytest.raises(SinkLogForeignError, match="begins with batch 1"):
        claim(table, MINE, 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '"x"'])
def test_file_that_cannot_be_read(table: Table, text: str) -> None:
    """Nobody has a log whose owner cannot be read: the message names the file."""
    (table.path / FOLDER).mkdir()
    (table.path / FOLDER / NAME).write_text(text)

    with pytest.raises(SinkLogForeignError, match=rf"see .*{NAME}"):
        claim(table, MINE, 0)

"""The requests of the JVM to Python before and after batches of Spark's file sink."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import SinkLogForeignError
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.stream_batches import StreamBatches
from asynccommit.streaming.batch_names import NamedRun, named_run
from tests.streaming.test_publish_intents import Table
from tests.support.sink import announce

TOKEN = "0f3e8a21-9c4d-4b1e"
OTHER = "aaaaaaaa-aaaa-4aaa"


class Query:
    """One start of a query, as its driver's Python sees it.

    Args:
        table: what it writes.
        query: its id.
    """

    def __init__(self, table: Table, query: str = "q1") -> None:
        self._table, self._query, self._batches = table, query, StreamBatches()

    def __call__(self, step: str, batch: int, token: str = TOKEN, **more: Any) -> dict[str, Any]:
        """Send a request; return the reply."""
        said = {"query": self._query, "run": "r", "description": f"name<br/>id = {self._query}"}
        request = {"step": step, "batch": batch, "token": token, **said, **more}
        return self._batches.answer({**request, "dest": f"file:{self._table.path}"}, {})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table without files."""
    return Table(tmp_path)


def runs(table: Table) -> list[NamedRun]:
    """Return what is announced."""
    return [run for name in table.hidden() if (run := named_run(name))]


def name(token: str, number: int = 0) -> str:
    """Return the name of a file of a run."""
    return f"part-{number:05d}-{token}-8000-0123456789ab-c000.orc"


def test_end(table: Table) -> None:
    """The first batch of a start deletes what dead runs of it left, and no file that the log has
    listed once; a run whose batch the log lacks waits for a later one."""
    files = table.publish(name(TOKEN), name(TOKEN, 2))
    submit(table.log.add(0, files[:1]))  # the other one is out of the log by its age
    table.publish(name(TOKEN, 1), name(OTHER))
    listed = "\n".join(file.path for file in files)
    submit(announce(table.store, table.dest, NamedRun(0, TOKEN, "q1"), listed))
    submit(announce(table.store, table.dest, NamedRun(2, OTHER, "q1")))

    query = Query(table)
    query("check", 1)
    submit(table.log.add(1, []))
    assert query("end", 1) == {"settled": False}
    assert table.files() == [name(TOKEN), name(OTHER), name(TOKEN, 2)]
    assert runs(table) == [NamedRun(2, OTHER, "q1")]

    submit(table.log.add(2, []))
    assert query("end", 2) == {"settled": True}
    assert table.files() == [name(TOKEN), name(TOKEN, 2)]
    assert runs(table) == []


def test_abort(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """Files of a batch that failed are deleted, unless it may be in the log all the same."""
    caplog.set_level(logging.INFO)
    files = [file.path for file in table.publish(name(TOKEN), name(TOKEN, 1))]
    submit(announce(table.store, table.dest, NamedRun(0, TOKEN, "q1")))
    query = Query(table)

    query("abort", 0, files=files, sent=True)
    assert table.files() == [name(TOKEN), name(TOKEN, 1)]
    assert "may still reach the log" in caplog.text
    query("abort", 0, files=files, sent=False)
    assert table.files() == []
    assert runs(table) == [NamedRun(0, TOKEN, "q1")]


def test_second_query(table: Table) -> None:
    """A second query is refused, however often it asks."""
    Query(table)("check", 0)
    second = Query(table, "q2")

    for _ in range(2):
        with pytest.raises(SinkLogForeignError, match=r"belongs to query 'name' .q1."):
            second("check", 0)

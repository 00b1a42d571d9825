"""The announcements of a batch of Spark's file sink, made and removed at the JVM's request."""

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

    def __call__(self, step: str, batch: int, token: str = TOKEN, **more: Any) -> None:
        """Send a request."""
        said = {"query": self._query, "run": "r", "description": f"name<br/>id = {self._query}"}
        request = {"step": step, "batch": batch, "token": token, **said, **more}
        self._batches.answer({**request, "dest": f"file:{self._table.path}"}, {})


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


def test_batch(table: Table) -> None:
    """A batch is announced while it runs, and leaves nothing; one whose tasks failed leaves its
    announcement to the next start."""
    query = Query(table)
    query("check", 0)
    query("begin", 0)
    assert runs(table) == [NamedRun(0, TOKEN, "q1")]
    submit(table.log.add(0, table.publish(name(TOKEN))))
    query("end", 0, again=False)
    assert runs(table) == []

    query("begin", 1, OTHER)
    files = table.publish(name(OTHER), name(OTHER, 2))
    submit(table.log.add(1, files[:1]))  # the other one is out of the log by its age
    table.publish(name(OTHER, 1))
    query("end", 1, OTHER, again=True, files=[file.path for file in files])
    assert runs(table) == [NamedRun(1, OTHER, "q1")]

    restarted = Query(table)
    restarted("begin", 2)
    submit(table.log.add(2, []))
    restarted("end", 2, again=False)
    assert table.files() == [name(TOKEN), name(OTHER), name(OTHER, 2)]
    assert runs(table) == []


def test_abort(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """Files of a batch that failed are deleted, unless it may be in the log all the same."""
    caplog.set_level(logging.INFO)
    files = [file.path for file in table.publish(name(TOKEN), name(TOKEN, 1))]
    query = Query(table)
    query("begin", 0)

    query("abort", 0, files=files, sent=True)
    assert table.files() == [name(TOKEN), name(TOKEN, 1)]
    assert "may still reach the log" in caplog.text
    query("abort", 0, files=files, sent=False)
    assert table.files() == []
    assert runs(table) == [NamedRun(0, TOKEN, "q1")]


@pytest.mark.parametrize("step", ["check", "begin"])
def test_second_query(table: Table, step: str) -> None:
    """A second query is refused, however often it asks, and announces nothing."""
    Query(table)("check", 0)
    second = Query(table, "q2")

    for _ in range(2):
        with pytest.raises(SinkLogForeignError, match=r"belongs to query 'name' .q1."):
            second(step, 0)
    assert runs(table) == []

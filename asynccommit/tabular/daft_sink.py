"""A sink of Daft whose writes are the tasks of a job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import daft
import pyarrow as pa
from daft.io.sink import DataSink, WriteResult
from daft.recordbatch import MicroPartition

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import OptionError
from asynccommit.parallel import TaskPlace
from asynccommit.runtime.host import this_host
from asynccommit.sync import BlockingTask
from asynccommit.tabular.arrow_files import ArrowFiles

_COLUMN = "commit"
_BITS = 48  # of the numbers that tasks draw


class TaskSink(DataSink[str]):
    """A sink that returns the commit messages of its tasks; can be pickled.

    Daft gives a write no number, so each draws one. A write that Daft repeats is another task, and
    only those are committed whose messages are returned.
    """

    def __init__(self, place: TaskPlace, files: ArrowFiles) -> None:
        self._place = place
        self._files = files

    def name(self) -> str:
        """Return the name that Daft shows."""
        return "asynccommit"

    def schema(self) -> Any:
        """Return the schema of the messages."""
        return daft.Schema.from_pyarrow_schema(pa.schema([(_COLUMN, pa.large_string())]))

    def write(self, micropartitions: Iterator[Any]) -> Iterator[WriteResult[str]]:
        """Write rows as one task. Raises ``CommitError`` and errors of pyarrow."""
        tables = (part.to_arrow() for part in micropartitions)
        first = next((table for table in tables if table.num_rows), None)
        if first is None:
            return
        counted = [0, 0]

        def batches() -> Iterator[Any]:
            for table in (first, *tables):
                counted[0] += table.num_rows
                counted[1] += table.nbytes
                yield from table.cast(first.schema).to_batches()

        reader = pa.RecordBatchReader.from_batches(first.schema, batches())
        number = this_host().rng.getrandbits(_BITS)

        def write(task: BlockingTask) -> None:
            self._files.write(task, number, self._place.job_id, reader)

        commit = self._place.run(number, write)
        yield WriteResult(json.dumps(commit.to_json()), counted[1], counted[0])

    def finalize(self, write_results: list[WriteResult[str]]) -> Any:
        """Return the messages."""
        found = pa.array([each.result for each in write_results], pa.large_string())
        return MicroPartition.from_arrow(pa.table({_COLUMN: found}))

    @staticmethod
    def commits(written: Mapping[str, list[str]]) -> list[TaskCommit]:
        """Return the messages of a write that has ended.

        Raises ``ManifestError``, and ``OptionError`` if two tasks drew the same number.
        """
        commits = [TaskCommit.from_json(json.loads(text)) for text in written[_COLUMN]]
        if len({commit.task_id for commit in commits}) < len(commits):
            raise OptionError("two tasks drew the same number, so nothing was written: run again")
        return commits

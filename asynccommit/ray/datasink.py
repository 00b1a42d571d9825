"""A sink of Ray Data whose output becomes visible as a whole.

    dataset.write_datasink(Sink("abfss://data@lake/flights", partition_cols=["day"]))

The driver sets the job up and commits it. Each write task of Ray is a task, whose commit message is
what Ray calls its write result. A write that Ray repeats, because a worker, an actor or a node
died, is another attempt, and only the attempt whose result Ray hands to the driver is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from ray.data import DataContext
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink, WriteResult

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.commit.layout import TaskCommit
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options.checked import Url
from asynccommit.options.job import Mode
from asynccommit.parallel import EngineMode, JobArguments
from asynccommit.results import JobReport
from asynccommit.runtime.host import this_host
from asynccommit.sync import BlockingJob
from asynccommit.tabular.arrow_files import ArrowFiles
from asynccommit.tabular.names import columns_of

_DRIVERS = ("_url", "_arguments", "_running", "_job", "_report")
"""Attributes that stay in the driver."""


class Sink(Datasink[TaskCommit | None]):
    """A sink for one write of a dataset of Ray.

    Args:
        url: the destination.
        partition_cols: the columns that are directories, named as Spark names them.
        mode: ``append``, ``fail`` or ``error``, ``overwrite`` or ``replace_table``, or
            ``replace_partitions``.
        form: ``parquet``, ``csv`` or ``ipc``.
        compression: of the files, as pyarrow takes it; ``snappy`` by default for Parquet.
        min_rows_per_file: rows that Ray collects for a write task.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.
        file_options: further options of files, as ``make_write_options`` of pyarrow takes them.

    Raises ``OptionError``.
    """

    def __init__(
        self,
        url: Url,
        *,
        partition_cols: str | Sequence[str] | None = None,
        mode: EngineMode = Mode.APPEND,
        form: str = "parquet",
        compression: Any = None,
        min_rows_per_file: int | None = None,
        job_id: str | None = None,
        options: OptionsLike = None,
        storage_options: StorageOptions = None,
        committer: str | None = None,
        **file_options: Any,
    ) -> None:
        if compression is None and form == "parquet":
            compression = "snappy"
        self._files = ArrowFiles.of(columns_of(partition_cols), form, compression, file_options)
        # Ray pickles the sink before it calls on_write_start, so the id is known from the start.
        name = this_host().new_id() if job_id is None else job_id
        self._url = url
        self._arguments = JobArguments(mode, name, options, storage_options, committer)
        self._place = self._arguments.place(url, name)
        self._least = min_rows_per_file
        self._running = ExitStack()
        self._job: BlockingJob | None = None
        self._report: JobReport | None = None

    def __repr__(self) -> str:
        return f"Sink({self._place.url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _DRIVERS}

    @property
    def job_id(self) -> str:
        """The id of the job, part of the name of each file."""
        return self._place.job_id

    @property
    def report(self) -> JobReport:
        """The report of the commit. Raises ``OptionError`` before Ray has written."""
        if self._report is None:
            raise OptionError(f"{self!r} has not written: call dataset.write_datasink(sink) first")
        return self._report

    def on_write_start(self, schema: Any = None) -> None:
        """Set the job up.

        Raises ``CommitError``, ``OptionError`` and ``UnsupportedError``.
        """
        if self._job is not None:
            raise OptionError(f"{self!r} has been used: make a new Sink for each write")
        if DataContext.get_current().checkpoint_config is not None:
            raise UnsupportedError(
                "a checkpoint of Ray Data skips rows whose write task has ended, also if their job "
                "was never committed: set DataContext.checkpoint_config to None, and the option "
                "asynccommit.job.key to skip a write that is done"
            )
        self._job = self._running.enter_context(self._arguments.open(self._url))

    def write(self, blocks: Iterable[Any], ctx: Any) -> TaskCommit | None:
        """Write the blocks of a task in a worker; return the commit message.

        Raises ``CommitError`` and errors of pyarrow.
        """
        tables = [BlockAccessor.for_block(block).to_arrow() for block in blocks]
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return None
        number: int = ctx.task_idx
        rows = pa.concat_tables(tables, promote_options="default")
        return self._place.run(
            number, lambda task: self._files.write(task, number, self.job_id, rows)
        )

    def on_write_complete(self, write_result: WriteResult[TaskCommit | None]) -> None:
        """Commit the job. Raises ``CommitError``."""
        if self._job is None:  # there were no blocks
            self.on_write_start()
        job = self._job
        assert job is not None
        for commit in write_result.write_returns:
            if commit is not None:
                job.accept(commit)
        self._running.close()
        self._report = job.report

    def on_write_failed(self, error: Exception) -> None:
        """Abort the job, unless its own commit failed. Raises nothing."""
        running = self._running.pop_all()
        running.__exit__(type(error), error, error.__traceback__)

    def get_name(self) -> str:
        """Return the name that Ray shows for the write tasks."""
        return "asynccommit"

    @property
    def min_rows_per_write(self) -> int | None:
        """The number of rows that Ray collects for a write task."""
        return self._least

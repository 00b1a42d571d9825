"""A sink of Ray Data whose output becomes visible as a whole.

    dataset.write_datasink(Sink("abfss://data@lake/flights", partition_cols=["day"]))

The driver sets the job up and commits it. Each write task of Ray is a task, whose commit message is
what Ray calls its write result. A write that Ray repeats, because a worker, an actor or a node
died, is another attempt, and only the attempt whose result Ray hands to the driver is committed.
With ``Sink.checkpoint`` a rerun keeps what the write tasks of earlier runs have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
from ray.data import DataContext
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink, WriteResult

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommittedError, OptionError, UnsupportedError
from asynccommit.options.checked import Url
from asynccommit.options.job import AnyMode, Mode
from asynccommit.parallel import JobArguments
from asynccommit.results import JobReport
from asynccommit.runtime.host import this_host
from asynccommit.sync import BlockingJob
from asynccommit.tabular.arrow_files import ArrowFiles
from asynccommit.tabular.names import columns_of

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from asynccommit.ray.checkpoints import SinkCheckpoints

_DRIVERS = ("_url", "_arguments", "_running", "_job", "_report")
"""Attributes that stay in the driver."""
_BITS = 48  # of the numbers that tasks draw where runs share a job


class Sink(Datasink[TaskCommit | None]):
    """A sink for one write of a dataset of Ray.

    Args:
        url: the destination.
        partition_cols: the columns that are directories, named as Spark names them.
        mode: ``append``, ``error``, ``overwrite`` or ``replace_partitions``, see
            ``Mode``.
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
        mode: AnyMode = Mode.APPEND,
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
        self._arguments = JobArguments(Mode.of(mode), name, options, storage_options, committer)
        self._place = self._arguments.place(url, name)
        self._given_id = job_id
        self._least = min_rows_per_file
        self._running = ExitStack()
        self._checkpoint: SinkCheckpoints | None = None
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

    def checkpoint(
        self, id_column: str, path: str, *, filesystem: FileSystem | None = None
    ) -> SinkCheckpoints:
        """Return a ``checkpoint_config`` of Ray with which a rerun goes on.

        Set it in the ``DataContext`` before the dataset is read. A write that fails, or whose
        driver dies, then keeps what its write tasks have written. The next run with the same job
        key skips their rows, and commits all. The checkpoint is deleted once the job is committed.

        Args:
            id_column: the column whose values identify the rows, from the source to the sink.
            path: a directory for checkpoints, or its URL, which all workers reach.
            filesystem: that it is on; by default the one that ``path`` names.

        Raises ``OptionError`` without a job key, and ``UnsupportedError`` if Ray is too old, or
        the committer does not keep the tasks of a driver that died.
        """
        job_id = self._arguments.kept_id(self._given_id)
        try:
            from asynccommit.ray.checkpoints import SinkCheckpoints
        except ImportError as error:
            text = f"Ray {ray.__version__} has no checkpoints that a sink can check: upgrade it"
            raise UnsupportedError(text) from error
        self._arguments = replace(self._arguments, job_id=job_id)
        self._place = self._arguments.place(self._url, job_id)
        self._checkpoint = SinkCheckpoints(
            this_host().new_id(), self._place, id_column, path, filesystem
        )
        return self._checkpoint

    def on_write_start(self, schema: Any = None) -> None:
        """Set the job up; with a checkpoint, take over the job of an earlier run.

        Raises ``CommitError``, ``OptionError`` and ``UnsupportedError``.
        """
        if self._job is not None:
            raise OptionError(f"{self!r} has been used: make a new Sink for each write")
        self._check_config(DataContext.get_current().checkpoint_config)
        if self._checkpoint is None:
            self._job = self._running.enter_context(self._arguments.open(self._url))
            return
        earlier = self._checkpoint.take()
        try:
            self._job = self._running.enter_context(self._arguments.open_kept(self._url))
        except CommittedError:
            self._checkpoint.end()
            raise
        for commit in earlier:
            self._job.accept(commit)

    def _check_config(self, config: Any) -> None:
        """Raise an error unless Ray's checkpoints are those of this sink, or none."""
        own = self._checkpoint
        if own is None and config is not None:
            raise UnsupportedError(
                "a checkpoint of Ray Data skips rows whose write task has ended, also if their job "
                "was never committed: set DataContext.checkpoint_config to "
                "sink.checkpoint(id_column, path), or to None"
            )
        if own is not None and getattr(config, "sink", None) != own.sink:
            raise OptionError(
                "the dataset does not have the checkpoint of this sink: set "
                "DataContext.checkpoint_config to sink.checkpoint(...) before the dataset is read"
            )

    def write(self, blocks: Iterable[Any], ctx: Any) -> TaskCommit | None:
        """Write the blocks of a task in a worker; return the commit message.

        Raises ``CommitError`` and errors of pyarrow.
        """
        tables = [BlockAccessor.for_block(block).to_arrow() for block in blocks]
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return None
        rows = pa.concat_tables(tables, promote_options="default")
        if self._checkpoint is None:
            return self._write(ctx.task_idx, rows)
        self._checkpoint.check(rows)
        # Ray numbers the write tasks of each run from zero, and all runs have one job.
        commit = self._write(this_host().rng.getrandbits(_BITS), rows)
        self._checkpoint.save(commit, rows)
        return commit

    def _write(self, number: int, rows: Any) -> TaskCommit:
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
        if self._checkpoint is not None:
            self._checkpoint.end()

    def on_write_failed(self, error: Exception) -> None:
        """Abort the job, or keep it for its checkpoint.

        Raises nothing.
        """
        running = self._running.pop_all()
        running.__exit__(type(error), error, error.__traceback__)

    def get_name(self) -> str:
        """Return the name that Ray shows for the write tasks."""
        return "asynccommit"

    @property
    def min_rows_per_write(self) -> int | None:
        """The number of rows that Ray collects for a write task."""
        return self._least

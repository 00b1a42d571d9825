"""The Python Data Source ``asynccommit``, also for Spark Connect.

spark.dataSource.register(AsyncCommitDataSource)
df.write.format("asynccommit").mode("append").save("gs://bucket/flights")

No class is added to the JVM: tasks write with pyarrow, through the stores of this package, and a
Python process of Spark's commits them. Written for PySpark 4.0 to 4.3; see
docs/guide-datasource.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import orjson
import pyspark
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options.job import Mode, Options
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.datasource import jobs, streams
from asynccommit.spark.datasource.jobs import SourceJob
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.schema import check_schema, partition_columns
from asynccommit.spark.datasource.streams import BatchPart, batch_tag, stream_job
from asynccommit.spark.datasource.tasks import RowSchema, SparkAttempt, run_task

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "asynccommit"
_AT_ONCE = 10_000
"""Number of single rows that become an Arrow batch, where PySpark gives single rows."""
_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"


class AsyncCommitDataSource(DataSource):
    """The format ``asynccommit``, which writes batches and streams only.

    Use Spark's own readers to read the table.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> NoReturn:
        """Refuse to read a table. Raises ``UnsupportedError``."""
        raise UnsupportedError(
            "format('asynccommit') only writes; read the table as usual: spark.read.parquet(path)"
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceBatchWriter:
        """Set up a job. Raises an error if the job cannot be written or committed."""
        options = _options(self.options, schema)
        mode = _mode(options, overwrite=overwrite)
        commit = Options.from_conf(options.conf)
        made = SourceJob(options.path, this_host().new_id(), commit, options.storage, mode)
        return DataSourceBatchWriter(submit(jobs.set_up(made)), options, _rows(schema, options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer or committer of one micro-batch."""
        if overwrite:
            raise UnsupportedError(
                "outputMode 'complete' rewrites the whole table in each batch, which a table of "
                "files does not support: use 'append', or foreachBatch with "
                "df.write.mode('overwrite')"
            )
        options = _options(self.options, schema)
        if options.fail_if_exists or options.replace_partitions:
            raise OptionError(
                "a stream adds to its table: leave if_exists and partitionOverwriteMode out"
            )
        writer: DataSourceStreamWriter = _stream_writer()(options, schema)
        return writer


class SourceMessage(WriterCommitMessage):
    """A task's message to the commit: a JSON text of a few hundred bytes.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"SourceMessage({self.text!r})"


class DataSourceBatchWriter(DataSourceArrowWriter):
    """One batch job.

    It is made and set up once, then sent to the tasks and to the commit.

    Args:
        job: the job, set up.
        options: options of the write.
        rows: the known facts about the rows.
    """

    def __init__(self, job: SourceJob, options: SourceOptions, rows: RowSchema) -> None:
        self._job, self._options, self._rows = job, options, rows

    def __repr__(self) -> str:
        return f"BatchWriter({self._job!r})"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SourceMessage:
        """Write the rows of one task attempt. Called in the task."""
        attempt, _ = _here()
        job = self._job
        written = run_task(job, self._options, self._rows, attempt, job.job_id, iterator)
        return SourceMessage(orjson.dumps(written.commit.to_json()).decode())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the tasks that the messages name. Raises ``CommitError``."""
        tasks = [TaskCommit.from_json(orjson.loads(text)) for text in _texts(messages)]
        if len(tasks) < len(messages):
            raise OptionError("a task sent no message: its rows would be missing")
        submit(jobs.commit(self._job, tasks))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of the job, unless its commit has begun.

        Tasks may still be running.
        """
        running = None in messages or not messages
        submit(jobs.abort(self._job, running=running))


class _StreamWriter:
    """One micro-batch.

    Spark makes one writer for its tasks, and another for its commit.

    Args:
        options: options of the stream.
        schema: the schema of the rows.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._job = stream_job(options.path, options, this_host().new_id())
        self._set_up = False
        self._rows: RowSchema | None = None

    def __repr__(self) -> str:
        return f"StreamWriter({self._options!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Set the job up, because only the writer for tasks is ever pickled."""
        if not self._set_up:
            self._rows = _rows(self._schema, self._options)
            self._job = submit(streams.set_up(self._job, self._options))
            self._set_up = True
        return self.__dict__

    def write(self, iterator: Iterator[Any]) -> SourceMessage:
        """Write the rows of one task attempt. Called in the task."""
        attempt, context = _here()
        assert self._rows is not None
        query = context.getLocalProperty(_QUERY_ID) or ""
        batch = int(context.getLocalProperty(_BATCH_ID) or 0)
        tag = batch_tag(query, batch, self._job.job_id)
        batches = self._batches(iterator)
        written = run_task(self._job, self._options, self._rows, attempt, tag, batches)
        return SourceMessage(BatchPart(self._job.job_id, query, batch, written).to_json())

    def _batches(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        return iterator

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish the batch, unless it is published already."""
        parts = [BatchPart.from_json(text) for text in _texts(messages)]
        if len(parts) < len(messages):
            raise OptionError("a task sent no message: its rows would be missing")
        submit(streams.commit(self._job, self._options, batchId, parts))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Delete the files of the batch that are not published."""
        parts = [BatchPart.from_json(text) for text in _texts(messages)]
        running = None in messages or not messages
        submit(streams.abort(self._job, self._options, parts, running=running))


class RowStreamWriter(_StreamWriter, DataSourceStreamWriter):
    """A stream writer for PySpark 4.0, which gives streams single rows."""

    def _batches(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.conversion import LocalDataToArrowConversion

        convert: Any = LocalDataToArrowConversion.convert
        while rows := list(islice(iterator, _AT_ONCE)):
            yield from convert(rows, self._schema, False).to_batches()


if hasattr(datasource, "DataSourceStreamArrowWriter"):

    class ArrowStreamWriter(_StreamWriter, datasource.DataSourceStreamArrowWriter):
        """A stream writer for PySpark 4.1 and later."""


def _stream_writer() -> Any:
    return globals().get("ArrowStreamWriter", RowStreamWriter)


# --- what Spark gives -------------------------------------------------------------------------


def _here() -> tuple[SparkAttempt, TaskContext]:
    context = TaskContext.get()
    if context is None:
        raise UnsupportedError("the rows of a data source are written only in Spark's tasks")
    # Unlike the attempt's number in its stage, this number is not reused when the stage is retried.
    return SparkAttempt(context.partitionId(), context.taskAttemptId()), context


def _texts(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [message.text for message in messages if isinstance(message, SourceMessage)]


def _options(given: Mapping[str, str], schema: StructType) -> SourceOptions:
    options = SourceOptions.of(given)
    check_schema(schema, options.partition_by, options.file_format)
    return replace(options, partition_by=partition_columns(schema, options.partition_by))


def _mode(options: SourceOptions, *, overwrite: bool) -> Mode:
    if not overwrite:
        return Mode.FAIL if options.fail_if_exists else Mode.APPEND
    if options.fail_if_exists:
        raise OptionError("mode('overwrite') and if_exists=fail contradict each other: drop one")
    return Mode.REPLACE_PARTITIONS if options.replace_partitions else Mode.REPLACE_TABLE


def _rows(schema: StructType, options: SourceOptions) -> RowSchema:
    data = StructType([f for f in schema.fields if f.name not in options.partition_by])
    return RowSchema(_arrow(data), data.json(), pyspark.__version__)


def _arrow(schema: StructType) -> pa.Schema:
    convert: Any = to_arrow_schema
    try:
        return convert(schema, timezone="UTC")
    except TypeError:  # before 4.2 that is the default
        return convert(schema)

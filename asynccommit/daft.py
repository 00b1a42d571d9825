"""Daft: a DataFrame written as one job, by the native runner or on Ray.

report = write_parquet(frame, "abfss://data@lake/flights", partition_cols=["day"])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.options.checked import Url
from asynccommit.options.job import Mode
from asynccommit.parallel import EngineMode, JobArguments, TaskPlace
from asynccommit.results import JobReport
from asynccommit.tabular.names import check_columns, columns_of

if TYPE_CHECKING:
    from daft import DataFrame

__all__ = ["write_csv", "write_parquet"]


def write_parquet(
    frame: DataFrame,
    url: Url,
    *,
    compression: str = "snappy",
    mode: EngineMode = Mode.APPEND,
    partition_cols: str | Sequence[str] | None = None,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **file_options: Any,
) -> JobReport:
    """Write a DataFrame to Parquet files; commit once.

    Args:
        frame: the DataFrame.
        url: the destination.
        compression: of the files, as pyarrow takes it.
        mode: ``append``, ``error``, ``ignore``, ``overwrite`` or ``replace_partitions``, see
            ``Mode``.
        partition_cols: the columns that are directories, named as Spark names them.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.
        file_options: further options of files, as ``pyarrow.dataset.ParquetFileFormat`` takes them.

    Raises ``CommitError``, ``OptionError`` and errors of Daft.
    """
    job = JobArguments(mode, job_id, options, storage_options, committer)
    return _write(frame, url, partition_cols, ("parquet", compression, file_options), job)


def write_csv(
    frame: DataFrame,
    url: Url,
    *,
    mode: EngineMode = Mode.APPEND,
    partition_cols: str | Sequence[str] | None = None,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **file_options: Any,
) -> JobReport:
    """Write a DataFrame to CSV files; commit once.

    Takes and raises what ``write_parquet`` does; ``file_options`` are those of
    ``pyarrow.dataset.CsvFileFormat``.
    """
    job = JobArguments(mode, job_id, options, storage_options, committer)
    return _write(frame, url, partition_cols, ("csv", None, file_options), job)


def _write(
    frame: DataFrame,
    url: Url,
    partition_cols: str | Sequence[str] | None,
    form: tuple[str, Any, dict[str, Any]],
    job: JobArguments,
) -> JobReport:
    from asynccommit.tabular.arrow_files import ArrowFiles
    from asynccommit.tabular.daft_files import write_files, writes_itself
    from asynccommit.tabular.daft_sink import TaskSink

    columns = columns_of(partition_cols)
    check_columns(columns, frame.column_names)
    files = ArrowFiles.of(columns, *form)

    def run(place: TaskPlace) -> list[TaskCommit]:
        if writes_itself(place, frame, columns, *form):
            codec = form[1]
            return [place.run(0, lambda task: write_files(task, place, frame, columns, codec))]
        return TaskSink.commits(frame.write_sink(TaskSink(place, files)).to_pydict())

    return job.commit(url, run)

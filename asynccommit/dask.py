"""Dask: jobs whose tasks are partitions of a collection, or delayed calls.

    report = to_parquet(frame, "abfss://data@lake/flights", partition_on="day")

The client sets the job up and commits it, with the scheduler that is active: threads, processes or
``distributed``. Each partition is a task, whose commit message is the result that Dask returns to
the client. A call that Dask repeats, because a worker died or its result was lost, is another
attempt, and only the attempt whose message reaches the client is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.commit.layouts.layout import TaskCommit, check_name
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options.checked import Url
from asynccommit.options.job import Mode
from asynccommit.parallel import EngineMode, JobArguments, TaskPlace
from asynccommit.results import JobReport
from asynccommit.tabular.names import columns_of

if TYPE_CHECKING:
    from asynccommit.tabular.frames import PartitionWriter

__all__ = ["DelayedWrite", "commit_delayed", "to_parquet"]


class DelayedWrite:
    """A write that begins with ``compute``."""

    def __init__(self, run: Callable[[Mapping[str, Any]], JobReport], url: object) -> None:
        self._run = run
        self._url = url

    def __repr__(self) -> str:
        return f"DelayedWrite({self._url!s})"

    def compute(self, **compute_kwargs: Any) -> JobReport:
        """Write and commit, as another job with each call.

        Takes what ``dask.compute`` takes. Raises what ``to_parquet`` does.
        """
        return self._run(compute_kwargs)

    def __dask_graph__(self) -> NoReturn:
        raise UnsupportedError(
            f"{self!r} is committed by the client and cannot be part of a graph: call its compute()"
        )


def commit_delayed(
    url: Url,
    tasks: Iterable[Sequence[Any]],
    *,
    mode: EngineMode = Mode.APPEND,
    compute_kwargs: Mapping[str, Any] | None = None,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
) -> JobReport:
    """Run delayed calls that write files; commit once.

    If a call fails, nothing becomes visible, and the error is raised.

    Args:
        url: the destination.
        tasks: ``(function, *arguments)`` of each task. ``function(task, *arguments)`` writes its
            files into the task; arguments may be ``Delayed`` or collections of Dask.
        mode: ``append``, ``error``, ``ignore``, ``overwrite`` or ``replace_partitions``, see
            ``Mode``.
        compute_kwargs: arguments of ``dask.compute``, such as ``scheduler`` or ``retries``.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.

    Raises ``CommitError``, ``OptionError``, and what a function or Dask raises.
    """
    job = JobArguments(mode, job_id, options, storage_options, committer)
    return _commit(url, [(_call, *each) for each in tasks], compute_kwargs or {}, job)


def _commit(
    url: Url,
    calls: Sequence[tuple[Any, ...]],
    compute_kwargs: Mapping[str, Any],
    job: JobArguments,
) -> JobReport:
    """Run ``function(place, number, *arguments)`` of each call; commit once."""
    from dask.base import compute
    from dask.delayed import delayed

    def run(place: TaskPlace) -> Sequence[TaskCommit]:
        tasks = [
            delayed(function, pure=False)(place, number, *arguments)
            for number, (function, *arguments) in enumerate(calls)
        ]
        commits: Sequence[TaskCommit] = compute(*tasks, **compute_kwargs)  # type: ignore[no-untyped-call]
        return commits

    return job.commit(url, run)


def _call(
    place: TaskPlace, number: int, function: Callable[..., object], *arguments: Any
) -> TaskCommit:
    return place.run(number, lambda task: function(task, *arguments))


def to_parquet(
    df: Any,
    url: Url,
    *,
    compression: Any = "snappy",
    write_index: bool = True,
    partition_on: str | Sequence[str] | None = None,
    mode: EngineMode = Mode.APPEND,
    name_function: Callable[[int], str] | None = None,
    schema: Any = "infer",
    custom_metadata: Mapping[Any, Any] | None = None,
    storage_options: StorageOptions = None,
    compute: bool = True,
    compute_kwargs: Mapping[str, Any] | None = None,
    job_id: str | None = None,
    options: OptionsLike = None,
    committer: str | None = None,
    **kwargs: Any,
) -> Any:
    """Write a Dask DataFrame to Parquet files; commit once.

    The arguments are those of ``dask.dataframe.to_parquet``, with ``mode`` in the place of
    ``append`` and ``overwrite``. Directories of partitions are named as Spark names them.

    Args:
        df: the DataFrame. It may be read from the table that is replaced.
        url: the destination.
        compression: of the files, as pyarrow takes it.
        write_index: whether the index is a column of the files.
        partition_on: the columns that are directories.
        mode: see ``commit_delayed``.
        name_function: returns the name of the file of a partition, by its number; by default the
            name has the id of the job, so that files of two jobs never have the same name.
        schema: ``"infer"``, ``None``, a schema of pyarrow, or types of some columns.
        custom_metadata: metadata for the footer of each file.
        storage_options: credentials and other options of the store, under fsspec's names.
        compute: ``False`` to return a ``DelayedWrite``, whose ``compute`` writes.
        compute_kwargs: arguments of ``dask.compute``.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        committer: the name of the committer, see ``open_job``.
        kwargs: further options of files, as ``pyarrow.dataset.ParquetFileFormat`` takes them.

    Returns a ``JobReport``. Raises ``CommitError``, ``OptionError``, and what Dask raises.
    """
    from asynccommit.tabular.frames import PartitionWriter

    writer = PartitionWriter.of(
        df, columns_of(partition_on), compression, kwargs, write_index, schema, custom_metadata
    )
    names = _file_names(name_function, df.npartitions)
    job = JobArguments(mode, job_id, options, storage_options, committer)

    def run(arguments: Mapping[str, Any]) -> JobReport:
        parts = zip(df.to_delayed(), names, strict=True)
        calls = [(_write_partition, writer, part, name) for part, name in parts]
        return _commit(url, calls, arguments, job)

    return run(compute_kwargs or {}) if compute else DelayedWrite(run, url)


def _write_partition(
    place: TaskPlace, number: int, writer: PartitionWriter, frame: Any, name: str | None
) -> TaskCommit:
    return place.run(number, lambda task: writer.write(task, number, place.job_id, frame, name))


def _file_names(name_function: Callable[[int], str] | None, count: int) -> Sequence[str | None]:
    """Return the names of the files of partitions. Raises ``OptionError``."""
    if name_function is None:
        return [None] * count
    names = [name_function(number) for number in range(count)]
    if len({*names}) < count:
        raise OptionError("name_function returned a name twice: expected a name for each partition")
    for name in names:
        check_name("the result of name_function", name)
    return names

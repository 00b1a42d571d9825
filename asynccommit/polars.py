"""polars: the result of a query written as one job.

    report = sink_parquet(frame, "abfss://data@lake/flights", partition_by="day")

A query runs in one process, so it is one task.
"""

from __future__ import annotations

import io
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.errors import UnsupportedError
from asynccommit.formats.partition_names import Single, directory, moment_of
from asynccommit.options.checked import Url
from asynccommit.options.job import Mode
from asynccommit.parallel import EngineMode, JobArguments
from asynccommit.results import JobReport
from asynccommit.sync import BlockingFile, BlockingTask
from asynccommit.tabular.arguments import local_directory, refuse
from asynccommit.tabular.names import check_columns, columns_of, ending, stem

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from polars import DataFrame, LazyFrame

__all__ = ["sink_csv", "sink_ipc", "sink_parquet"]

_NOT_OURS = {
    "credential_provider": "use storage_options",
    "lazy": "leave it out, as the call returns when the job is committed",
    "mkdir": "leave it out, as directories are made",
    "sinked_paths_callback": "leave it out, as paths change when the job commits",
}
_CSV_CODECS = {"gzip": ".gz", "zstd": ".zst"}
_BY_SIZE = ("approximate_bytes_per_file", "max_rows_per_file")


def sink_parquet(
    frame: LazyFrame | DataFrame,
    url: Url,
    *,
    partition_by: str | Sequence[str] | None = None,
    mode: EngineMode = Mode.APPEND,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **sink_options: Any,
) -> JobReport:
    """Run a query and write the rows to Parquet files; commit once.

    The query may read the destination: its files stay until the job commits.

    Args:
        frame: the query.
        url: the destination, a directory.
        partition_by: the columns that are directories, named as Spark names them.
        mode: ``append``, ``error``, ``ignore``, ``overwrite`` or ``replace_partitions``, see
            ``Mode``.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.
        sink_options: what ``LazyFrame.sink_parquet`` takes; and with partitions
            ``max_rows_per_file`` and ``approximate_bytes_per_file``, as ``polars.PartitionBy`` has
            them.

    Raises ``CommitError``, ``OptionError`` and errors of polars.
    """
    job = JobArguments(mode, job_id, options, storage_options, committer)
    suffix = ending("parquet", sink_options.get("compression", "zstd"))
    return _sink("sink_parquet", frame, url, partition_by, suffix, sink_options, job)


def sink_csv(
    frame: LazyFrame | DataFrame,
    url: Url,
    *,
    partition_by: str | Sequence[str] | None = None,
    mode: EngineMode = Mode.APPEND,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **sink_options: Any,
) -> JobReport:
    """Run a query and write the rows to CSV files; commit once.

    Takes and raises what ``sink_parquet`` does; ``sink_options`` are those of
    ``LazyFrame.sink_csv``.
    """
    job = JobArguments(mode, job_id, options, storage_options, committer)
    suffix = f".csv{_CSV_CODECS.get(sink_options.get('compression', ''), '')}"
    return _sink("sink_csv", frame, url, partition_by, suffix, sink_options, job)


def sink_ipc(
    frame: LazyFrame | DataFrame,
    url: Url,
    *,
    partition_by: str | Sequence[str] | None = None,
    mode: EngineMode = Mode.APPEND,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **sink_options: Any,
) -> JobReport:
    """Run a query and write the rows to Arrow IPC files; commit once.

    Takes and raises what ``sink_parquet`` does; ``sink_options`` are those of
    ``LazyFrame.sink_ipc``.
    """
    job = JobArguments(mode, job_id, options, storage_options, committer)
    return _sink("sink_ipc", frame, url, partition_by, ".arrow", sink_options, job)


def _sink(
    method: str,
    frame: LazyFrame | DataFrame,
    url: Url,
    partition_by: str | Sequence[str] | None,
    suffix: str,
    given: dict[str, Any],
    job: JobArguments,
) -> JobReport:
    """Write by a method of polars; commit once."""
    refuse(given, _NOT_OURS)
    columns, query = columns_of(partition_by), frame.lazy()
    by_size = {name: given[name] for name in _BY_SIZE if name in given}
    rest = {name: value for name, value in given.items() if name not in by_size}
    if columns:
        check_columns(columns, query.collect_schema().names())

    if "check_extension" in signature(getattr(query, method)).parameters:
        rest["check_extension"] = False  # of names that the job gives

    parts = bool(columns or by_size)
    if parts:
        rest["mkdir"] = True

    def write(task: BlockingTask, name: str) -> None:
        start, end = stem(0, name), f"{suffix}{task.staging_suffix}"
        with _opening(task, makes_directories=parts) as file:
            where = _parts(task, file, start, end, columns, by_size) if parts else None
            getattr(query, method)(where or file(f"{start}0{end}"), **rest)

    return job.commit_one(url, write)


def _parts(
    task: BlockingTask,
    file: Callable[[str], Any],
    start: str,
    suffix: str,
    columns: tuple[str, ...],
    by_size: dict[str, Any],
) -> Any:
    """Return the target of polars for many files."""
    import polars

    lock = threading.Lock()
    if not hasattr(polars, "PartitionBy"):
        raise UnsupportedError(
            f"polars {polars.__version__} has no PartitionBy, which writes many files: upgrade it"
        )

    counters: defaultdict[str, Iterator[int]] = defaultdict(count)

    def file_of(arguments: Any) -> Any:
        folder = ""
        if columns:
            keys = arguments.partition_keys
            folder = f"{directory(columns, [_value(keys.get_column(_)) for _ in columns])}/"
        # A null and an empty text are two partitions of polars, and one directory.
        with lock:
            number = next(counters[folder])
        return file(f"{folder}{start}{number}{suffix}")

    keys: dict[str, Any] = {"key": list(columns), "include_key": False} if columns else {}
    base = local_directory(task) or ""
    return polars.PartitionBy(base, file_path_provider=file_of, **keys, **by_size)


def _value(column: Any) -> object:
    """Return the value of a column of one row as ``partition_value`` takes it.

    Raises ``OptionError`` for a time with parts of a microsecond.
    """
    kind, value = str(column.dtype), column.item()
    if value is None:
        return None
    if kind in ("Float32", "Float16"):
        return Single(value)
    if kind.startswith("Datetime"):
        scale = {"ns": 1, "us": 10**3, "ms": 10**6}[column.dtype.time_unit]
        return moment_of(column.to_physical().item() * scale, column.dtype.time_zone)
    return value


@contextmanager
def _opening(task: BlockingTask, *, makes_directories: bool) -> Iterator[Callable[[str], Any]]:
    """Yield a function that returns what polars writes a file to.

    Args:
        task: the task.
        makes_directories: whether polars makes local directories.

    Raises the errors of files that polars closed.
    """
    base = local_directory(task)
    if base is not None:
        # Made by polars, directories cost a quarter: it makes them in threads of its own.
        yield (lambda name: f"{base}/{name}") if makes_directories else task.path
        return
    opened: WeakSet[_ClosedWhenDropped] = WeakSet()
    failed: list[BaseException] = []

    def open_file(name: str) -> _ClosedWhenDropped:
        file = _ClosedWhenDropped(task.open(name), failed)
        opened.add(file)
        return file

    yield open_file
    for file in list(opened):
        file.close()
    if failed:
        raise failed[0]


class _ClosedWhenDropped(io.RawIOBase):
    """A file of a task that is closed with its last reference.

    polars closes no file.
    """

    def __init__(self, inner: BlockingFile, failed: list[BaseException]) -> None:
        super().__init__()
        self._inner, self._failed = inner, failed

    def writable(self) -> bool:
        """Return true: the file can be written to."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write all of ``data``. Raises ``StoreError``."""
        return self._inner.write(data)

    def close(self) -> None:
        """Close the file once; an error is kept."""
        if not self.closed:
            super().close()
            try:
                self._inner.close()
            except BaseException as error:
                self._failed.append(error)

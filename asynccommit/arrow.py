"""pyarrow: a dataset written as one job.

report = write_dataset(table, "abfss://data@lake/flights", partitioning=["day"])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from asynccommit.api import OptionsLike, StorageOptions
from asynccommit.errors import OptionError
from asynccommit.options.checked import Url
from asynccommit.options.job import Mode
from asynccommit.parallel import EngineMode, JobArguments
from asynccommit.results import JobReport
from asynccommit.tabular.names import columns_of

if TYPE_CHECKING:
    from asynccommit.tabular.arrow_files import ArrowFiles

    Behavior: TypeAlias = Literal["error", "overwrite_or_ignore", "delete_matching"]

__all__ = ["write_dataset"]

_BEHAVIORS = {
    "error": Mode.FAIL,
    "overwrite_or_ignore": Mode.APPEND,
    "delete_matching": Mode.REPLACE_PARTITIONS,
}


def write_dataset(
    data: Any,
    url: Url,
    *,
    schema: Any = None,
    format: Any = "parquet",
    partitioning: Any = None,
    existing_data_behavior: Behavior | None = None,
    mode: EngineMode | None = None,
    file_options: Any = None,
    job_id: str | None = None,
    options: OptionsLike = None,
    storage_options: StorageOptions = None,
    committer: str | None = None,
    **write_options: Any,
) -> JobReport:
    """Write a dataset; commit once.

    The arguments are those of ``pyarrow.dataset.write_dataset``. The dataset may be read from the
    destination: its files stay until the job commits.

    Args:
        data: a table, batch, dataset, scanner or reader of pyarrow, a list of tables or batches, an
            iterable of batches with ``schema``, or anything that exports a stream of Arrow.
        url: the destination.
        schema: of an iterable.
        format: ``parquet``, ``csv`` or ``ipc``, also as a ``FileFormat``.
        partitioning: the columns that are directories, as names, a schema or a
            ``HivePartitioning``; directories are ``column=value``, named as Spark names them.
        existing_data_behavior: pyarrow's word for the mode: ``error`` (the default), which refuses
            a destination that is not empty; ``overwrite_or_ignore``, which is ``append`` here; or
            ``delete_matching``, which is ``replace_partitions``.
        mode: instead of it ``append``, ``error``, ``ignore``, ``overwrite`` or
            ``replace_partitions``, see ``Mode``.
        file_options: what ``make_write_options`` of the format returned.
        job_id: unique under the destination; a fresh one by default.
        options: ``Options``, or configuration keys under Hadoop's names.
        storage_options: credentials and other options of the store, under fsspec's names.
        committer: the name of the committer, see ``open_job``.
        write_options: further arguments of ``pyarrow.dataset.write_dataset``: ``use_threads``,
            ``preserve_order``, ``max_partitions``, ``max_open_files``, ``max_rows_per_file``,
            ``min_rows_per_group``, ``max_rows_per_group``.

    Raises ``CommitError``, ``OptionError`` and errors of pyarrow.
    """
    files = _files(format, partitioning, file_options, write_options)
    chosen = _mode(existing_data_behavior, mode)
    given = _rows(data, schema, partitioned=bool(files.partition_by))
    job = JobArguments(chosen, job_id, options, storage_options, committer)
    return job.commit_one(url, lambda task, name: files.write(task, 0, name, given))


def _mode(behavior: str | None, mode: EngineMode | None) -> EngineMode:
    if mode is not None:
        if behavior is not None:
            raise OptionError("existing_data_behavior and mode are both given: expected one")
        return mode
    found = _BEHAVIORS.get(behavior or "error")
    if found is None:
        words = ", ".join(_BEHAVIORS)
        raise OptionError(f"existing_data_behavior is {behavior!r}: expected one of {words}")
    return found


_WRITE_OPTIONS = {
    *("max_open_files", "max_partitions", "max_rows_per_file", "max_rows_per_group"),
    *("min_rows_per_group", "preserve_order", "use_threads"),
}


def _files(format: Any, partitioning: Any, file_options: Any, more: dict[str, Any]) -> ArrowFiles:
    from asynccommit.tabular.arrow_files import ArrowFiles

    unknown = sorted({*more} - _WRITE_OPTIONS)
    if unknown:
        text = ", ".join(sorted(_WRITE_OPTIONS))
        raise OptionError(f"{unknown[0]} is not an argument here: expected one of {text}")
    form = format if isinstance(format, str) else format.default_extname
    form = "ipc" if form in ("arrow", "feather") else form
    return ArrowFiles.of(_columns(partitioning), form, None, {}, **more).made_with(file_options)


def _columns(partitioning: Any) -> tuple[str, ...]:
    """Return the partition columns that an argument of pyarrow names."""
    flavor = type(partitioning).__name__
    if flavor in ("DirectoryPartitioning", "FilenamePartitioning"):
        raise OptionError(f"partitioning is a {flavor}: expected names, or a HivePartitioning")
    schema = getattr(partitioning, "schema", partitioning)
    return columns_of(getattr(schema, "names", schema))


def _rows(data: Any, schema: Any, *, partitioned: bool) -> Any:
    """Return rows as a reader or, where that is enough, as they are."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(data, ds.Dataset):
        data = data.scanner()
    if isinstance(data, ds.Scanner):
        return data.to_reader() if partitioned else data
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Sequence) and data:
        tables = [pa.Table.from_batches([_]) if isinstance(_, pa.RecordBatch) else _ for _ in data]
        return pa.concat_tables(tables)
    if isinstance(data, Iterable) and schema is not None:
        return pa.RecordBatchReader.from_batches(schema, data)
    raise OptionError(
        f"data is a {type(data).__name__}: expected tables, batches, a dataset or a reader, or an "
        "iterable of batches with schema"
    )

"""Rows of Arrow, written by pyarrow into a task.

Directories of partitions are named as Spark names them: pyarrow gets the partition columns as text
that is escaped already.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem

from asynccommit.commit.task import to_arrow
from asynccommit.errors import OptionError
from asynccommit.formats.partition_names import Single, escape, moment_of
from asynccommit.sync import BlockingTask
from asynccommit.tabular.arguments import local_directory
from asynccommit.tabular.names import NULL, check_columns, ending, escaped, stem

_MANY = 2**31 - 1
_ROWS = 1 << 20
"""Rows that are sorted by their partitions at once; those of a partition become a row group."""
_BYTES = 1 << 27
"""The memory that they may take, unless one batch takes more."""
_FORMATS: Mapping[str, Callable[[], Any]] = {
    "parquet": ds.ParquetFileFormat,
    "csv": ds.CsvFileFormat,
    "ipc": ds.IpcFileFormat,
    "arrow": ds.IpcFileFormat,
}


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """The files that pyarrow makes of the rows of a task; can be pickled.

    Attributes:
        partition_by: the columns that are directories.
        form: ``parquet``, ``csv``, ``ipc`` or ``arrow``.
        compression: as ``make_write_options`` of the format takes it.
        file_options: further arguments of ``make_write_options``.
        write_options: further arguments of ``pyarrow.dataset.write_dataset``.
        name: the name of the one file of a task, in each of its directories; ``None`` for a name
            with the number of the task and the id of the job.
        made: file options as ``make_write_options`` returned them, instead of those above.
    """

    partition_by: tuple[str, ...] = ()
    form: str = "parquet"
    compression: Any = None
    file_options: Mapping[str, Any] = field(default_factory=dict)
    write_options: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    made: Any = None

    @classmethod
    def of(
        cls,
        partition_by: tuple[str, ...],
        form: str,
        compression: Any,
        file_options: Mapping[str, Any],
        **write_options: Any,
    ) -> Self:
        """Return the files of a format.

        Raises ``OptionError`` for a format and for options that pyarrow does not have.
        """
        if form not in _FORMATS:
            raise OptionError(f"format {form!r}: expected one of {', '.join(_FORMATS)}")
        made = cls(partition_by, form, compression, file_options, write_options)
        try:
            made._file_options()
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise OptionError(f"options of {form} files: {error}") from error
        return made

    def made_with(self, made: Any) -> ArrowFiles:
        """Return the same with what ``make_write_options`` returned, or ``None``."""
        return replace(self, made=made)

    def named(self, name: str | None) -> ArrowFiles:
        """Return the same with the name of a file."""
        return replace(self, name=name)

    def write(self, task: BlockingTask, number: int, job_id: str, data: Any) -> None:
        """Write rows into a task.

        Args:
            task: the task.
            number: its number.
            job_id: the id of its job.
            data: what ``pyarrow.dataset.write_dataset`` takes; with partitions a table or a
                ``RecordBatchReader``.

        Raises ``OptionError``, ``StoreError`` and errors of pyarrow.
        """
        end = f"{ending(self.form, self.compression)}{task.staging_suffix}"
        template = f"{stem(number, job_id)}{{i}}{end}"
        arguments = {"max_partitions": _MANY, **self._partitioned(data), **self.write_options}
        name = None if self.name is None else f"{self.name}{task.staging_suffix}"
        with _filesystem(task, template, name) as filesystem:
            ds.write_dataset(
                base_dir=local_directory(task) or "",
                basename_template=template,
                format=self.form,
                file_options=self._file_options(),
                existing_data_behavior="overwrite_or_ignore",
                filesystem=filesystem,
                create_dir=True,
                **arguments,
            )

    def _file_options(self) -> Any:
        if self.made is not None:
            return self.made
        given = dict(self.file_options)
        if self.compression is not None:
            given["compression"] = self.compression
        return _FORMATS[self.form]().make_write_options(**given)

    def _partitioned(self, data: Any) -> dict[str, Any]:
        """Return rows and partitioning as arguments of pyarrow."""
        if not self.partition_by:
            return {"data": data}
        reader = data.to_reader() if hasattr(data, "to_reader") else data
        check_columns(self.partition_by, reader.schema.names)
        schema = _schema(reader.schema, self.partition_by)
        batches = (
            piece
            for batch in _gathered(reader)
            for piece in _pieces(_batch(batch, schema, self.partition_by), self.partition_by)
        )
        directories = pa.schema([schema.field(name) for name in self.partition_by])
        return {
            "data": pa.RecordBatchReader.from_batches(schema, batches),
            # A Hive partitioning of pyarrow escapes names in its own way.
            "partitioning": ds.DirectoryPartitioning(directories, segment_encoding="none"),
        }


_NAMES = pa.dictionary(
    pa.int32(), pa.string()
)  # pyarrow groups rows by numbers faster than by text


def _schema(schema: Any, partitions: Sequence[str]) -> Any:
    """Return the schema of rows whose partition columns name directories."""
    for name in partitions:
        schema = schema.set(schema.get_field_index(name), pa.field(name, _NAMES))
    return schema


def _gathered(reader: Any) -> Iterator[Any]:
    """Yield batches of up to ``_ROWS`` rows, or fewer of ``_BYTES`` bytes."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in reader:
        for start in range(0, len(batch), _ROWS):
            part = batch.slice(start, _ROWS)
            if waiting and (rows + len(part) > _ROWS or size + part.nbytes > _BYTES):
                yield pa.concat_batches(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + len(part), size + part.nbytes
    if waiting:
        yield pa.concat_batches(waiting)


def _pieces(batch: Any, partitions: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of each partition, in their order.

    pyarrow would make a row group of each partition of every 32,768 rows.
    """
    number = pa.scalar(0, pa.int64())
    for name in partitions:
        column = batch.column(name)
        indices = pc.cast(column.indices, pa.int64())
        number = pc.add(pc.multiply(number, len(column.dictionary)), indices)
    order = pc.sort_indices(number)
    ordered, start = batch.take(order), 0
    for end in pc.run_end_encode(number.take(order)).run_ends.to_pylist():
        yield ordered.slice(start, end - start)
        start = end


def _batch(batch: Any, schema: Any, partitions: Sequence[str]) -> Any:
    columns = list(batch.columns)
    for name in partitions:
        place = batch.schema.get_field_index(name)
        columns[place] = _directories(columns[place], escape(name))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _directories(values: Any, column: str) -> Any:
    """Return the name of the directory of each value of a column."""
    if not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    texts = [escaped(value) for value in python_values(values.dictionary)]
    known: dict[str, int] = {}
    places = [known.setdefault(text, len(known)) for text in [*texts, NULL]]
    # Values with one text, such as a null and an empty text, are one directory.
    numbers = pa.array(places[:-1], pa.int32()).take(values.indices)
    numbers = pc.fill_null(numbers, pa.scalar(places[-1], pa.int32()))
    return pa.DictionaryArray.from_arrays(numbers, [f"{column}={text}" for text in known])


def python_values(values: Any) -> list[object]:
    """Return values of Arrow as ``partition_value`` takes them.

    Raises ``OptionError`` for a time with parts of a microsecond.
    """
    kind = values.type
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return [None if each is None else Single(each) for each in values.to_pylist()]
    if not pa.types.is_timestamp(kind):
        return values.to_pylist()  # type: ignore[no-any-return]
    scale = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
    numbers = pc.cast(values, pa.int64()).to_pylist()
    return [None if each is None else moment_of(each * scale, kind.tz) for each in numbers]


@contextmanager
def _filesystem(task: BlockingTask, template: str, name: str | None) -> Iterator[Any]:
    """Yield a filesystem that writes a task's files under their names."""
    if local_directory(task) is not None:
        yield _named(LocalFileSystem(), template, name)
        return
    # pyarrow by itself closes no more files at once than it has threads.
    with task.filesystem.closing_in_background() as remote:
        yield _named(to_arrow(remote), template, name)


def _named(files: Any, template: str, name: str | None) -> Any:
    return files if name is None else PyFileSystem(_Named(files, template, name))


class _Named(FSSpecHandler):  # type: ignore[misc]
    """A filesystem that gives the first file of a directory another name."""

    def __init__(self, inner: Any, template: str, name: str) -> None:
        from fsspec.implementations.arrow import ArrowFSWrapper

        super().__init__(ArrowFSWrapper(inner))
        self._inner = inner
        self._first, self._name = template.replace("{i}", "0"), name

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        """Open a file under its name. Raises the errors of the filesystem."""
        folder, name = posixpath.split(path)
        if name == self._first:
            path = posixpath.join(folder, self._name)
        return self._inner.open_output_stream(path, metadata=metadata)

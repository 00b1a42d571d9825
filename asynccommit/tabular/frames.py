"""Partitions of a DataFrame of Dask as files of Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from asynccommit.errors import OptionError
from asynccommit.sync import BlockingTask
from asynccommit.tabular.arguments import refuse
from asynccommit.tabular.arrow_files import ArrowFiles
from asynccommit.tabular.names import check_columns

_INDEX = "__null_dask_index__"
"""The name that Dask gives to the column of an index without a name."""
_NOT_OURS = {
    "append": "use mode='append'",
    "overwrite": "use mode='overwrite'",
    "engine": "leave it out, as pyarrow writes",
    "filesystem": "use storage_options",
    "write_metadata_file": "leave it out, as no _metadata is written",
    "ignore_divisions": "leave it out",
}


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """The writer of each partition of a DataFrame; can be pickled.

    Attributes:
        files: the files.
        schema: of every partition, without metadata; ``None`` to infer it from each.
        index: whether the index is a column.
        metadata: further metadata of each file.
    """

    files: ArrowFiles
    schema: Any
    index: bool
    metadata: Mapping[Any, Any]

    @classmethod
    def of(
        cls,
        df: Any,
        partition_on: tuple[str, ...],
        compression: Any,
        file_options: Mapping[str, Any],
        index: bool,
        schema: Any,
        metadata: Mapping[Any, Any] | None,
    ) -> Self:
        """Return the writer for a DataFrame. Raises ``OptionError``."""
        refuse(file_options, _NOT_OURS)
        if metadata and {"pandas", b"pandas"} & {*metadata}:
            raise OptionError("custom_metadata has the key 'pandas', which pandas itself writes")
        check_columns(partition_on, list(df.columns))
        # Tasks run side by side already; one thread each keeps the order of rows.
        files = ArrowFiles.of(partition_on, "parquet", compression, file_options, use_threads=False)
        return cls(files, _schema_of(df, index, schema), index, metadata or {})

    def write(
        self, task: BlockingTask, number: int, job_id: str, frame: Any, name: str | None
    ) -> None:
        """Write a partition into its task.

        Raises ``OptionError``, ``StoreError`` and errors of pyarrow.
        """
        table = pa.Table.from_pandas(_indexed(frame, self.index), self.schema, self.index)
        if self.metadata:
            table = table.replace_schema_metadata({**table.schema.metadata, **self.metadata})
        self.files.named(name).write(task, number, job_id, table)


def _schema_of(df: Any, index: bool, given: Any) -> Any:
    """Return the schema of all partitions, as some may be empty."""
    if given is None or isinstance(given, pa.Schema):
        return given
    if given != "infer" and not isinstance(given, Mapping):
        raise OptionError(f"schema is {given!r}: expected 'infer', None, a schema, or a mapping")
    schema = pa.Schema.from_pandas(_indexed(df._meta_nonempty, index), preserve_index=index)
    schema = schema.remove_metadata()
    for name, kind in {} if given == "infer" else given.items():
        place = schema.get_field_index(name)
        if place < 0:
            raise OptionError(f"schema names the column {name!r}: expected some of {schema.names}")
        schema = schema.set(place, pa.field(name, kind))
    return schema


def _indexed(frame: Any, index: bool) -> Any:
    if not index or frame.index.name is not None:
        return frame
    return frame.rename_axis(index=_INDEX)

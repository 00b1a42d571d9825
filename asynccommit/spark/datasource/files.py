"""Write the files of one task, with limits on open files and memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from asynccommit.formats.partition_names import directory, file_name
from asynccommit.spark.datasource.encoders import Encoder, encoder
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.rows import part_rows
from asynccommit.spark.datasource.sinks import FileSink

_GATHERED = 16 << 20
"""Bytes of rows that are partitioned at once; fewer bytes make many small copies."""


OpenSink = Callable[[str], FileSink]
"""Opens a file of this name below the table."""


@dataclass(slots=True)
class _Part:
    """One directory, and the file in it that is being written."""

    directory: str
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0
    number: int = 0
    rows: int = 0
    name: str = ""
    sink: Any = None  # a FileSink while there is an encoder
    encoder: Encoder | None = None


class TableFiles:
    """The files that one task writes from its rows.

    Args:
        options: the options of the write; ``partition_by`` as the schema spells it.
        schema: the schema of the rows, with the metadata that files of the format contain.
        task: the number of the task.
        tag: part of the name of every file of the job.
        open_sink: opens a file.
        whole: an open file is in memory until it is closed, so its size counts as memory.

    Attributes:
        written: name -> size of each finished file.
    """

    def __init__(
        self,
        options: SourceOptions,
        schema: pa.Schema,
        task: int,
        tag: str,
        open_sink: OpenSink,
        *,
        whole: bool = False,
    ) -> None:
        self.written: dict[str, int] = {}
        self._options = options
        self._columns = options.partition_by
        self._schema = schema
        self._task, self._tag = task, tag
        self._open_sink, self._whole = open_sink, whole
        self._parts: dict[str, _Part] = {}
        self._open: OrderedDict[str, _Part] = OrderedDict()
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._waiting_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Accept rows; most are written later.

        Raises ``OSError`` and ``StoreError``.
        """
        if batch.num_rows == 0:
            return
        if not self._columns:
            self._add("", pa.Table.from_batches([batch]))
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= min(_GATHERED, self._options.memory):
            self._part()

    def close(self) -> None:
        """Write the waiting rows, and finish the files.

        The first task of a table without partitions writes a file even without rows: that file
        tells readers the columns.
        """
        self._part()
        if not self._columns and self._task == 0 and not self._parts:
            part = self._parts[""] = _Part("")
            self._begin(part)
        for part in self._parts.values():
            self._end(part)

    def forget(self) -> None:
        """Abort every open file."""
        for part in self._open.values():
            if part.encoder is not None:
                part.encoder.forget()
                part.sink.abort()

    def _part(self) -> None:
        if not self._gathered:
            return
        table = pa.Table.from_batches(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        for values, rows in part_rows(table, self._columns):
            self._add(directory(self._columns, values), rows)

    def _add(self, place: str, rows: pa.Table) -> None:
        part = self._parts.get(place)
        if part is None:
            part = self._parts[place] = _Part(place)
        most = self._options.file_rows
        while rows.num_rows:
            room = rows.num_rows if most is None else most - part.rows - part.waiting_rows
            self._wait(part, rows.slice(0, room))
            rows = rows.slice(room)
            if most is not None and part.rows + part.waiting_rows >= most:
                self._end(part)
        if self._waiting_bytes > self._options.memory:
            self._make_room()

    def _wait(self, part: _Part, rows: pa.Table) -> None:
        group = self._options.row_group_rows
        while rows.num_rows:
            taken = rows.slice(0, group - part.waiting_rows)
            rows = rows.slice(taken.num_rows)
            part.waiting.append(taken)
            part.waiting_rows += taken.num_rows
            part.waiting_bytes += taken.nbytes
            self._waiting_bytes += taken.nbytes
            if part.waiting_rows >= group or part.waiting_bytes >= self._options.row_group_bytes:
                self._flush(part)

    def _make_room(self) -> None:
        """Write the largest waiting groups, until half of the memory is free."""
        largest = sorted(self._parts.values(), key=lambda part: -part.waiting_bytes)
        for part in largest:
            if self._waiting_bytes <= self._options.memory // 2:
                return
            self._flush(part)

    def _flush(self, part: _Part) -> None:
        """Write waiting rows as one row group; finish a file that is large enough."""
        if not part.waiting:
            return
        table = pa.concat_tables(part.waiting)
        self._waiting_bytes -= part.waiting_bytes
        part.waiting, part.waiting_rows, part.waiting_bytes = [], 0, 0
        writing = self._begin(part)
        writing.write(table.replace_schema_metadata(self._schema.metadata))
        part.rows += table.num_rows
        if part.sink.tell() >= self._options.file_bytes:
            self._finish(part)
        elif self._whole:
            self._keep_few_bytes()

    def _begin(self, part: _Part) -> Encoder:
        """Return the encoder of a partition's file; begin the file if needed.

        Other files are closed if too many are open.
        """
        if part.encoder is not None:
            self._open.move_to_end(part.directory)
            return part.encoder
        while len(self._open) >= self._options.open_files:
            self._end(next(iter(self._open.values())))
        name = file_name(
            self._task,
            self._tag,
            part.number,
            self._options.ending,
            partitioned=bool(self._columns),
        )
        part.name = f"{part.directory}/{name}" if part.directory else name
        part.number += 1
        part.sink = self._open_sink(part.name)
        part.encoder = encoder(part.sink, self._schema, self._options)
        self._open[part.directory] = part
        return part.encoder

    def _end(self, part: _Part) -> None:
        """Write the waiting rows and finish the file."""
        self._flush(part)
        self._finish(part)

    def _finish(self, part: _Part) -> None:
        if part.encoder is None:
            return
        part.encoder.close()
        self.written[part.name] = part.sink.tell()
        part.sink.close()
        part.encoder = part.sink = None
        part.rows = 0
        del self._open[part.directory]

    def _keep_few_bytes(self) -> None:
        """Finish the largest files if the open files fill the memory."""
        while sum(part.sink.tell() for part in self._open.values()) > self._options.memory:
            self._finish(max(self._open.values(), key=lambda part: part.sink.tell()))

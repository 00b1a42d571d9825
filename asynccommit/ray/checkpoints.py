"""Checkpoints of Ray Data that agree with the tasks of a job.

Ray's own checkpoints name rows whose write task has ended. These name the task of the job as well,
so that the rows that a rerun skips are exactly those of the tasks that it commits. A record is a
file of Parquet: the ids of the rows of a write task, and in its metadata the commit message.
"""

from __future__ import annotations

import json
import logging
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import ray
from pyarrow.fs import FileSelector, FileSystem, FileType
from ray.data.checkpoint import CheckpointConfig, CheckpointManager

from asynccommit import sync
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import OptionError
from asynccommit.parallel import TaskPlace
from asynccommit.redact import Redacted

log = logging.getLogger(__name__)

_COMMIT = b"asynccommit.commit"
_FOLDER = "records"
_SUFFIX = ".parquet"
_PER_OBJECT = 64
"""Bytes that an id takes as an object of Python, beside its content."""
_chosen: dict[str, Sequence[TaskCommit]] = {}
"""The tasks whose rows the plan of a sink skips, by the id of the sink; in the driver."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The rows that one write task has written.

    Attributes:
        commit: the commit message of the task.
        ids: of its rows.
    """

    commit: TaskCommit
    ids: Any

    def save(self, files: FileSystem, folder: str, column: str) -> None:
        """Write the record whole. Raises errors of pyarrow, and ``OSError``."""
        message = json.dumps(self.commit.to_json()).encode()
        table = pa.table({column: self.ids}).replace_schema_metadata({_COMMIT: message})
        name = posixpath.join(folder, self.commit.task_id)
        files.create_dir(folder, recursive=True)
        parquet.write_table(table, f"{name}.part", filesystem=files)
        files.move(f"{name}.part", f"{name}{_SUFFIX}")

    @classmethod
    def read(cls, files: FileSystem, path: str) -> TaskRecord:
        """Read a record. Raises ``OptionError`` for any other file."""
        with files.open_input_file(path) as file:
            table = parquet.read_table(file)
        message = (table.schema.metadata or {}).get(_COMMIT)
        if message is None or table.num_columns != 1:
            raise OptionError(f"{path} is not a record of a checkpoint: delete it")
        return cls(TaskCommit.from_json(json.loads(message)), table.column(0).combine_chunks())


def disjoint(records: Iterable[TaskRecord]) -> list[TaskRecord]:
    """Return records that have no row in common, in order.

    A row is in two of them if a write task ran twice.
    """
    found = list(records)
    ids = pa.chunked_array([each.ids for each in found])
    counted = pc.value_counts(ids)
    twice = counted.field(0).filter(pc.greater(counted.field(1), 1))
    taken: set[Any] = set()
    kept = []
    for each in found:
        shared = set(each.ids.filter(pc.is_in(each.ids, twice)).to_pylist())
        if not shared & taken:
            taken |= shared
            kept.append(each)
    return kept


class SinkCheckpoints(CheckpointConfig):
    """The configuration of checkpoints for one sink.

    Args:
        sink: the id of the sink.
        place: its job.
        id_column: the column whose values identify rows.
        path: the directory of checkpoints, which all workers reach.
        filesystem: that it is on; by default the one that the path names.
    """

    def __init__(
        self,
        sink: str,
        place: TaskPlace,
        id_column: str,
        path: str,
        filesystem: FileSystem | None = None,
    ) -> None:
        own = f"asynccommit-{place.job_id}"
        super().__init__(
            id_column,
            posixpath.join(path, own),
            delete_checkpoint_on_success=False,  # that would be before the commit
            override_filesystem=filesystem,
            checkpoint_manager_cls=Records,
        )
        self.sink = sink
        self.place = place
        self._column = id_column
        root = path if filesystem is not None else FileSystem.from_uri(path)[1]
        self._root = posixpath.join(root, own)
        self.folder = posixpath.join(self._root, _FOLDER)

    def check(self, rows: Any) -> None:
        """Raise ``OptionError`` for rows without the column of ids."""
        if self._column not in rows.column_names:
            raise OptionError(f"rows have no column {self._column!r}, which the checkpoint needs")

    def save(self, commit: TaskCommit, rows: Any) -> None:
        """Save what a write task has written. Raises errors of the filesystem."""
        TaskRecord(commit, rows[self._column]).save(self.filesystem, self.folder, self._column)

    def records(self) -> list[TaskRecord]:
        """Return the records of the job that have no row in common, by name."""
        selector = FileSelector(self.folder, allow_not_found=True)
        found = [info for info in self.filesystem.get_file_info(selector) if _is_record(info)]
        paths = sorted(info.path for info in found)
        return disjoint(TaskRecord.read(self.filesystem, path) for path in paths) if paths else []

    def take(self) -> Sequence[TaskCommit]:
        """Return, once, the tasks whose rows the plan of the sink skips."""
        return _chosen.pop(self.sink, ())

    def delete(self) -> None:
        """Delete the checkpoint. Raises errors of the filesystem."""
        if self.filesystem.get_file_info(self._root).type != FileType.NotFound:
            self.filesystem.delete_dir(self._root)

    def end(self) -> None:
        """Delete the checkpoint of a job that is committed; a failure is logged."""
        try:
            self.delete()
        except OSError as error:
            log.warning("%s was not deleted: %s", self.checkpoint_path, Redacted(error))


def _is_record(info: Any) -> bool:
    return bool(info.type == FileType.File and info.path.endswith(_SUFFIX))


class Records(CheckpointManager):
    """The part of Ray's planner that says which rows to skip."""

    def __init__(self, *, checkpoint_config: SinkCheckpoints, data_context: Any) -> None:
        super().__init__(checkpoint_config=checkpoint_config, data_context=data_context)
        self._config = checkpoint_config

    def load_checkpoint(self, *_: Any, **__: Any) -> tuple[Any, int]:
        """Return the ids of rows to skip, and their size in bytes.

        Records of a job that is not there any more, as it was committed or aborted, are deleted.
        """
        config = self._config
        if not _is_there(config.place):
            config.delete()
            return None, 0
        found = config.records()
        _chosen[config.sink] = [each.commit for each in found]
        if not found:
            return None, 0
        ids = pa.chunked_array([each.ids for each in found])
        values = numpy.sort(ids.to_numpy())
        objects = values.dtype == object
        size = values.nbytes + (ids.nbytes + len(values) * _PER_OBJECT if objects else 0)
        return ray.put(values), size


def _is_there(place: TaskPlace) -> bool:
    """Return whether the job of a sink exists and its clean-up has not ended."""
    storage: Mapping[str, Any] | None = place.storage_options
    found = sync.job_statuses(place.url, storage_options=storage)
    return any(status.job_id == place.job_id for status in found)

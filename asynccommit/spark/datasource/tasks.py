"""Run a task of the Data Source: write rows to files and report them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from asynccommit.api import Job
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.commit.registry import Committer
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.datasource.encoders import footer
from asynccommit.spark.datasource.files import TableFiles
from asynccommit.spark.datasource.jobs import SourceJob, leave_nothing, opened_blocking, see_alive
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.spark.datasource.sinks import LocalSink, StoreSink
from asynccommit.stores.base import Modes
from asynccommit.stores.modes import MODES, create, make_directory
from asynccommit.sync import BlockingJob, BlockingTask


@dataclass(frozen=True, slots=True)
class SparkAttempt:
    """The identity of a task attempt.

    For the committer each attempt is a task of its own: attempts commit without asking for
    permission, so two attempts of a task must not write the same manifest. The messages tell which
    attempts count.

    Attributes:
        task: the number of the task in its job, for the names of files.
        number: unique among all attempts of the program.
    """

    task: int
    number: int


@dataclass(frozen=True, slots=True)
class RowSchema:
    """The facts about the rows that are known in advance.

    Attributes:
        schema: Arrow's schema, for a task without rows.
        data_json: Spark's schema of the columns that go into files.
        spark: the version of Spark that makes the rows.
    """

    schema: pa.Schema
    data_json: str
    spark: str


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """The result of a task attempt: the message, and the files' sizes."""

    commit: TaskCommit
    files: tuple[tuple[str, int], ...]


def run_task(
    job: SourceJob,
    options: SourceOptions,
    rows: RowSchema,
    attempt: SparkAttempt,
    tag: str,
    batches: Iterable[pa.RecordBatch],
) -> TaskMessage:
    """Write ``batches``; no file is visible before the job is committed.

    If the job has ended meanwhile, the attempt's files are removed and ``NotFoundError`` is raised.
    If an error occurs, the attempt is aborted.
    """
    with opened_blocking(job) as committer:
        try:
            submit(see_alive(committer))
            with BlockingJob(Job(committer)).task(attempt.number) as task:
                files = _write(committer, task, options, rows, (attempt.task, tag), batches)
            submit(see_alive(committer))
        except BaseException as error:
            _leave(error, committer, job, attempt)
            raise
    return TaskMessage(task.commit, files)


def _leave(
    error: BaseException, committer: Committer, job: SourceJob, attempt: SparkAttempt
) -> None:
    try:
        submit(leave_nothing(committer, job, attempt.number))
    except Exception as failure:
        error.add_note(f"and its files could not be removed: {failure}")


def _write(
    committer: Committer,
    task: BlockingTask,
    options: SourceOptions,
    rows: RowSchema,
    named: tuple[int, str],
    batches: Iterable[pa.RecordBatch],
) -> tuple[tuple[str, int], ...]:
    waiting = iter(batches)
    first = next(waiting, None)
    schema = _file_schema(rows, rows.schema if first is None else first.schema, options)
    local, modes = committer.layout.dest.scheme == "file", committer.store.traits.modes or MODES
    begin = _local(task.directory, modes) if local else _remote(committer, task)
    # If files are uploaded in parts, only one part of each is in memory.
    whole = not local and committer.store.traits.multipart is None
    files = TableFiles(options, schema, *named, begin, whole=whole)
    try:
        for batch in _from(first, waiting):
            files.write(batch)
        files.close()
    except BaseException:
        files.forget()
        raise
    return tuple(files.written.items())


def _from(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    return rest if first is None else chain((first,), rest)


def _file_schema(rows: RowSchema, schema: pa.Schema, options: SourceOptions) -> pa.Schema:
    inside = [field for field in schema if field.name not in options.partition_by]
    return pa.schema(inside, metadata=footer(rows.data_json, rows.spark))


def _local(directory: str, modes: Modes) -> Callable[[str], Any]:
    """Return a function that opens files below a task attempt's directory.

    The function never makes that directory, so no file comes back once the end of the job has
    removed it.
    """

    def begin(name: str) -> Any:
        place = directory
        for part in name.split("/")[:-1]:
            place = f"{place}/{part}"
            if not os.path.isdir(place):
                make_directory(place, modes.directory)
        path = f"{directory}/{name}"
        os.close(create(path, os.O_WRONLY | os.O_CREAT, modes.file))
        return LocalSink(path, "wb")

    return begin


def _remote(committer: Committer, task: BlockingTask) -> Callable[[str], Any]:
    """Return a function that opens files on a store, unless the job has ended."""

    def begin(name: str) -> Any:
        submit(see_alive(committer))
        return StoreSink(task.open(name))

    return begin

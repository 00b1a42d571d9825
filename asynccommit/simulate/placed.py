"""Create a job with committed tasks in a model, without requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.formats.manifest import (
    NOT_FOUND,
    DirEntry,
    FileEntry,
    TaskManifest,
    encode_manifest,
)
from asynccommit.simulate.model import Model
from asynccommit.simulate.setup import Setup

SIZE = 128 * 1024 * 1024
"""Declared size of each file in bytes."""


class ModelTaskWriter:
    """A writer that puts the tasks of a job into a model, one by one.

    Args:
        model: model to write to.
        layout: layout of the job.
        setup: size of the job.
    """

    def __init__(self, model: Model, layout: Layout, setup: Setup) -> None:
        self._model = model
        self._layout = layout
        self._setup = setup
        self._dest = layout.url(layout.dest.path)

    def all_tasks(self, step: Callable[[int], object]) -> list[TaskCommit]:
        """Write all tasks, calling ``step`` after each, and return their commit messages."""
        setup = self._setup
        self._model.put_directory(self._layout.manifests_dir)
        commits, first = [], 0
        for task in range(setup.tasks):
            last = (task + 1) * setup.files // setup.tasks
            commits.append(self._task(task, range(first, last)))
            first = last
            step(first)
        return commits

    def _task(self, task: int, numbers: Sequence[int]) -> TaskCommit:
        """Write the output of a task attempt: its files, and their manifest."""
        layout = self._layout
        task_id, attempt_id = layout.ids(task)
        base = layout.task_attempt_dir(attempt_id)
        self._model.put_directory(base)
        files = self._files(task, numbers, base)
        partitions = dict.fromkeys(map(self._partition, numbers))
        manifest = TaskManifest(
            layout.job_id,
            layout.attempt,
            task_id,
            attempt_id,
            layout.url(base),
            files,
            [DirEntry(f"{self._dest}/{name}", NOT_FOUND, 1) for name in partitions],
        )
        data = encode_manifest(manifest)
        path = layout.manifest(task_id)
        self._model.put_data(path, data)
        digest = "sha256:" + sha256(data).hexdigest()
        size = len(files) * SIZE
        return TaskCommit(task_id, attempt_id, layout.url(path), digest, len(files), size)

    def _files(self, task: int, numbers: Sequence[int], base: str) -> list[FileEntry]:
        put, dest, source = self._model.put_file, self._dest, self._layout.url(base)
        entries: list[FileEntry] = []
        for number in numbers:
            name = f"part-{task:05}-{number:08}-6f7a1c0d2b3e.c000.snappy.parquet"
            path = f"{self._partition(number)}/{name}"
            etag = put(f"{base}/{path}", SIZE)
            entries.append(FileEntry(f"{source}/{path}", f"{dest}/{path}", SIZE, etag))
        return entries

    def _partition(self, number: int) -> str:
        return partition_name(number % self._setup.partitions)


def partition_name(number: int) -> str:
    """Return the directory of one partition."""
    return f"day={number:05}"


def visible(model: Model, setup: Setup) -> int:
    """Return the number of the job's files at their destination."""
    names = map(partition_name, range(setup.partitions))
    return sum(model.files_in(f"{model.dest.path}/{name}") for name in names)

"""The jobs that are measured: what committed tasks leave behind, made without any committer."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from pathlib import Path

from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.formats.statistics import Statistics

JOB_ID = "7d1f6a52-2a0c-4f0e-9a57-6b1f3a1c0d11"
_TYPE = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1"
_RUN = "202601010000_0001"
CLASSIC_ID = f"job_{_RUN}"
"""The job of the tasks, as their ids say it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How much the tasks of a job wrote: ``files`` one-byte files each, over ``partitions``."""

    tasks: int
    files: int
    partitions: int

    @property
    def total(self) -> int:
        """Files of the whole job."""
        return self.tasks * self.files

    def name(self, task: int, number: int) -> str:
        """Return the path of one file of a task, relative to the destination."""
        name = f"part-{task:05d}-{number:04d}-c86b6e2f.c000.snappy.parquet"
        return f"{self.partition(number)}/{name}"

    def names(self, task: int) -> Iterator[str]:
        """Yield the paths that one task wrote, relative to the destination."""
        return (self.name(task, number) for number in range(self.files))

    def partition(self, number: int) -> str:
        """Return the directory of a task's file of that number."""
        return f"day={number % self.partitions:04d}"

    def all_names(self) -> Iterator[str]:
        """Yield the paths that all tasks wrote, relative to the destination."""
        for task in range(self.tasks):
            yield from self.names(task)


def task_id(task: int) -> str:
    """Return the id of a task."""
    return f"task_{_RUN}_m_{task:06d}"


def attempt_id(task: int) -> str:
    """Return the id of the first attempt of a task."""
    return f"attempt_{_RUN}_m_{task:06d}_0"


def job_attempt_dir(dest: str) -> str:
    """Return where the manifest committers keep the first attempt of the job."""
    return f"{dest}/_temporary/{JOB_ID}/00"


def work_dir(dest: str, task: int) -> str:
    """Return where a task attempt of the manifest committers writes."""
    return f"{job_attempt_dir(dest)}/tasks/{attempt_id(task)}"


def committed_dir(dest: str, task: int) -> str:
    """Return where FileOutputCommitter v1 keeps the output of a committed task."""
    return f"{dest}/_temporary/0/{task_id(task)}"


@dataclass(frozen=True, slots=True)
class Place:
    """What Hadoop's URIs have before a path: those of files that a task lists, and of others."""

    listed: str
    made: str


LOCAL = Place("file://", "file:")


def manifest(
    dest: str, shape: Shape, task: int, place: Place = LOCAL, etags: Sequence[str] = ()
) -> bytes:
    """Return a task manifest as Hadoop writes it; ``dest`` needs no percent-encoding.

    Formatted as text rather than from objects: a million entries are made within a measurement.
    """
    work, made = work_dir(dest, task), f"{place.made}{dest}"
    ends = [f',\n    "e" : "{etag}"\n  }}' for etag in etags] or repeat("\n  }")
    listed = f"{place.listed}{work}"
    files = ", ".join(
        f'{{\n    "s" : "{listed}/{name}",\n    "d" : "{made}/{name}",\n    "z" : 1{end}'
        for name, end in zip(shape.names(task), ends, strict=False)
    )
    directories = ", ".join(
        f'{{\n    "d" : "{made}/{shape.partition(number)}",\n    "t" : 1,\n    "l" : 1\n  }}'
        for number in range(min(shape.partitions, shape.files))
    )
    return (
        f'{{\n  "extraData" : {{ }},\n  "type" : "{_TYPE}",\n  "version" : 1,\n'
        f'  "jobId" : "{JOB_ID}",\n  "jobAttemptNumber" : 0,\n  "taskID" : "{task_id(task)}",\n'
        f'  "taskAttemptID" : "{attempt_id(task)}",\n  "taskAttemptDir" : "{place.made}{work}",\n'
        f'  "files" : [ {files} ],\n  "directories" : [ {directories} ],\n'
        f'  "iostatistics" : {_no_statistics()}\n}}'
    ).encode()


@cache
def _no_statistics() -> str:
    return json.dumps(Statistics().to_json(), indent=2, separators=(",", " : "))


def make_pool(pool: str, shape: Shape) -> None:
    """Make the job's files once; every run borrows them.

    Making and deleting them for each run takes ten times as long on ext4, which passes over
    inodes that were deleted a short while ago one by one.
    """
    for number in range(shape.partitions):
        os.makedirs(f"{pool}/{shape.partition(number)}")
    for name in shape.all_names():
        descriptor = os.open(f"{pool}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, b"1")
        os.close(descriptor)


def arrange_manifest_job(pool: str, dest: str, shape: Shape) -> None:
    """Make what all tasks of a manifest committer's job leave behind, with the pool's files."""
    manifests = Path(job_attempt_dir(dest), "manifests")
    manifests.mkdir(parents=True)
    for task in range(shape.tasks):
        _move_files(pool, work_dir(dest, task), shape, task)
        (manifests / f"{task_id(task)}-manifest.json").write_bytes(manifest(dest, shape, task))


def messages(dest: str, shape: Shape) -> list[TaskCommit]:
    """Return what the tasks of a manifest committer's job have told its driver."""
    return [_message(dest, shape, task) for task in range(shape.tasks)]


def _message(dest: str, shape: Shape, task: int) -> TaskCommit:
    name = f"{job_attempt_dir(dest)}/manifests/{task_id(task)}-manifest.json"
    said = digest(manifest(dest, shape, task))
    return TaskCommit(
        task_id(task), attempt_id(task), f"file:{name}", said, shape.files, shape.files
    )


def arrange_classic_job(pool: str, dest: str, shape: Shape) -> None:
    """Make what all tasks of a FileOutputCommitter v1 job leave behind, with the pool's files."""
    for task in range(shape.tasks):
        _move_files(pool, committed_dir(dest, task), shape, task)


def _move_files(pool: str, root: str, shape: Shape, task: int) -> None:
    for number in range(min(shape.partitions, shape.files)):
        os.makedirs(f"{root}/{shape.partition(number)}")
    for name in shape.names(task):
        os.rename(f"{pool}/{name}", f"{root}/{name}")


def give_back(pool: str, dest: str, shape: Shape) -> None:
    """Move a checked output back into the pool, and remove the rest of ``dest``."""
    for number in range(shape.partitions):
        os.rename(f"{dest}/{shape.partition(number)}", f"{pool}/{shape.partition(number)}")
    shutil.rmtree(dest)


def check(dest: str, shape: Shape, *, committed: bool) -> None:
    """Raise ``AssertionError`` unless ``dest`` holds exactly the job's files.

    ``committed`` says that a committer worked: ``_SUCCESS`` is there and ``_temporary`` is not.
    """
    found: set[str] = set()
    for number in range(shape.partitions):
        partition = shape.partition(number)
        found.update(f"{partition}/{name}" for name in os.listdir(f"{dest}/{partition}"))
    expected = set(shape.all_names())
    if found != expected:
        raise AssertionError(
            f"{dest}: {len(expected - found)} files missing, {len(found - expected)} too many"
        )
    rest = {name for name in os.listdir(dest) if not name.startswith(("day=", "._SUCCESS"))}
    if committed and rest != {"_SUCCESS"}:
        raise AssertionError(f"{dest} holds {sorted(rest)} besides the partitions")

"""The job that is committed: empty files on HDFS, borrowed by each contender in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import hdfs_native

from asynccommit.commit.job.messages import digest
from asynccommit.commit.layouts.layout import TaskCommit
from bench import trees

DEST = "/bench/table"
POOL = "/bench/pool"
THREADS = 64

Pair = tuple[str, str]
Where = Callable[[str, int], str]
"""The directory of a task's files, of the destination and the task's number."""


class Account:
    """A client of the NameNode that makes, lends and takes back the files of a job.

    Args:
        url: the NameNode.
        shape: how much the tasks wrote.
    """

    def __init__(self, url: str, shape: trees.Shape) -> None:
        self.url = url
        self.shape = shape
        self._client = hdfs_native.Client(url)
        self._etags: dict[tuple[int, int], str] = {}
        self._pool = ThreadPoolExecutor(THREADS)

    @property
    def place(self) -> trees.Place:
        """What URIs have before a path."""
        return trees.Place(self.url, self.url)

    def make_pool(self) -> None:
        """Make the files once."""
        self._mkdirs(f"{POOL}/{task}" for task in range(self.shape.tasks))
        list(self._pool.map(self._touch, (pair[0] for pair in self.pairs(_work))))
        for task in range(self.shape.tasks):  # as the tasks of a Spark job note them
            for status in self._client.list_status(f"{POOL}/{task}"):
                number = int(status.path.rpartition("/")[2])
                self._etags[task, number] = f"{status.modification_time:x}-{status.length:x}"

    def _touch(self, path: str) -> None:
        self._client.create(path, hdfs_native.WriteOptions()).close()

    def pairs(self, where: Where) -> Iterator[Pair]:
        """Yield the place of each file in the pool, and in the directory of its task."""
        for task in range(self.shape.tasks):
            root = where(DEST, task)
            for number, name in enumerate(self.shape.names(task)):
                yield f"{POOL}/{task}/{number}", f"{root}/{name}"

    def lend(self, where: Where) -> None:
        """Put the files where tasks have left them; the destination has nothing else."""
        self._client.delete(DEST, True)
        parts = range(min(self.shape.partitions, self.shape.files))
        self._mkdirs(
            f"{where(DEST, task)}/{self.shape.partition(number)}"
            for task in range(self.shape.tasks)
            for number in parts
        )
        self.move(self.pairs(where))

    def make_partitions(self) -> None:
        """Make the directories of the destination."""
        self._mkdirs(f"{DEST}/{self.shape.partition(n)}" for n in range(self.shape.partitions))

    def take_back(self) -> None:
        """Put the files of the destination into the pool. Raises if one is missing."""
        self.move((dest, pool) for pool, dest in self.pairs(lambda dest, _task: dest))

    def move(self, pairs: Iterator[Pair]) -> None:
        """Rename so many at once as there are threads."""
        chunks = iter(lambda: list(islice(pairs, 100)), [])
        list(self._pool.map(self._move, chunks))

    def _move(self, pairs: list[Pair]) -> None:
        for source, dest in pairs:
            self._client.rename(source, dest, False)

    def manifests(self) -> list[TaskCommit]:
        """Write the manifests of all tasks; return what the tasks have told the driver."""
        folder = f"{trees.job_attempt_dir(DEST)}/manifests"
        self._client.mkdirs(folder, 0o755, True)
        return list(self._pool.map(self._manifest, range(self.shape.tasks)))

    def _manifest(self, task: int) -> TaskCommit:
        name = f"{trees.job_attempt_dir(DEST)}/manifests/{trees.task_id(task)}-manifest.json"
        etags = [self._etags[task, number] for number in range(self.shape.files)]
        text = trees.manifest(DEST, self.shape, task, self.place, etags)
        text = text.replace(b'"z" : 1', b'"z" : 0')
        writer = self._client.create(name, hdfs_native.WriteOptions())
        writer.write(text)
        writer.close()
        told = (trees.task_id(task), trees.attempt_id(task), f"{self.url}{name}", digest(text))
        return TaskCommit(*told, self.shape.files, 0)

    def is_there(self, path: str) -> bool:
        """Return whether something is at a path."""
        try:
            self._client.get_file_info(path)
        except FileNotFoundError:
            return False
        return True

    def _mkdirs(self, paths: Iterator[str]) -> None:
        list(self._pool.map(lambda path: self._client.mkdirs(path, 0o755, True), paths))


def _work(dest: str, task: int) -> str:
    return trees.work_dir(dest, task)

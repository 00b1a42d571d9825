"""A job whose tasks have committed, put into the model without a request."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from hashlib import sha256

from asynccommit.formats.manifest import (
    NOT_FOUND,
    DirEntry,
    FileEntry,
    TaskManifest,
    encode_manifest,
)
from asynccommit.job import Layout, TaskCommit
from asynccommit.sim.nodes import Node, find, link
from asynccommit.sim.store import Account
from asynccommit.simulate.setup import Setup

FILESYSTEM = "data"
SIZE = 128 * 1024 * 1024
"""Bytes that each file is said to have."""


class Packed(Node):
    """A file that nobody changes, compressed: the manifests of a large job are many megabytes."""

    __slots__ = ("packed",)
    packed: bytes

    @classmethod
    def of(cls, blank: Node, data: bytes) -> Packed:
        """Return a file of ``data`` in the place of ``blank``."""
        packed = cls(None, blank.version, blank.created)
        packed.size = len(data)
        packed.packed = zlib.compress(data, 1)
        return packed

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """See ``Node.read``."""
        return zlib.decompress(self.packed)[start : self.size if end is None else end]


class Placed:
    """Puts the tasks of a job into an account, one after the other.

    Args:
        account: takes them.
        layout: of the job.
        setup: how large it is.
    """

    def __init__(self, account: Account, layout: Layout, setup: Setup) -> None:
        self._account = account
        self._layout = layout
        self._setup = setup
        self._manifests = self._directory(layout.manifests_dir)
        self._dest = layout.url(layout.dest.path)

    def all_tasks(self, step: Callable[[int], object]) -> list[TaskCommit]:
        """Put all tasks there, and return their commit messages; ``step`` is told each one."""
        setup = self._setup
        commits, first = [], 0
        for task in range(setup.tasks):
            last = (task + 1) * setup.files // setup.tasks
            commits.append(self._task(task, range(first, last)))
            first = last
            step(first)
        return commits

    def _task(self, task: int, numbers: Sequence[int]) -> TaskCommit:
        """Put what one task attempt leaves: its files, and the manifest that lists them."""
        layout = self._layout
        task_id, attempt_id = layout.ids(task)
        base = layout.task_attempt_dir(attempt_id)
        files, partitions = self._files(task, numbers, base)
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
        node = Packed.of(self._account.new_node(), data)
        link(self._manifests, path.rpartition("/")[2], node)
        digest = "sha256:" + sha256(data).hexdigest()
        size = len(files) * SIZE
        return TaskCommit(task_id, attempt_id, layout.url(path), digest, len(files), size)

    def _files(
        self, task: int, numbers: Sequence[int], base: str
    ) -> tuple[list[FileEntry], dict[str, Node]]:
        account, dest = self._account, self._dest
        source, directory = self._layout.url(base), self._directory(base)
        entries: list[FileEntry] = []
        partitions: dict[str, Node] = {}
        for number in numbers:
            partition = partition_name(number % self._setup.partitions)
            within = partitions.get(partition)
            if within is None:
                within = partitions[partition] = account.new_node(directory=True)
                link(directory, partition, within)
            name = f"part-{task:05}-{number:08}-6f7a1c0d2b3e.c000.snappy.parquet"
            node = account.new_node()
            node.size = SIZE
            link(within, name, node)
            path = f"{partition}/{name}"
            entries.append(FileEntry(f"{source}/{path}", f"{dest}/{path}", SIZE, node.etag))
        return entries, partitions

    def _directory(self, path: str) -> Node:
        return self._account.create(FILESYSTEM, path[1:], directory=True)


def partition_name(number: int) -> str:
    """Return the directory of one partition."""
    return f"day={number:05}"


def visible(account: Account, layout: Layout, setup: Setup) -> list[Node]:
    """Return the directories of all partitions that are at the destination."""
    root = account.head_filesystem(FILESYSTEM).root
    names = map(partition_name, range(setup.partitions))
    found = (find(root, f"{layout.dest.path[1:]}/{name}") for name in names)
    return [node for node in found if node is not None]

"""A store that holds a job's manifests, made as they are asked for, and does nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from time import perf_counter

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import RECORD, Layout
from asynccommit.errors import NotFoundError
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.runtime.host import this_host
from asynccommit.stores.base import Info, Kind, Move, Page, Renamed, Store, Traits
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import Address
from bench import trees

DEST = "/warehouse/flights"
PAGE = 1000
_TOGETHER = LocalStore.traits.bulk_rename


class NoopStore:
    """Claims that every request was done; lists the job's output once renames have begun.

    Args:
        shape: of the job whose manifests it holds.
        together: it renames many files in one call, as the local disk does.
        keep: make manifests and listings once and hold them, so that their making can be left
            out of what is timed; otherwise they cost time, counted in ``making``, and no memory.
    """

    def __init__(self, shape: trees.Shape, *, keep: bool, together: bool = False) -> None:
        self.traits = Traits("no-op", workers=64, bulk_rename=_TOGETHER if together else 0)
        self.shape = shape
        self.renamed = 0
        self.making = 0.0
        self.record = b""
        self._layout = Layout(Address("file", "", DEST), trees.JOB_ID)
        self._tasks = {self._layout.manifest(trees.task_id(n)): n for n in range(shape.tasks)}
        self._partitions = {f"{DEST}/{shape.partition(n)}": n for n in range(shape.partitions)}
        self._keep = keep
        self._manifests: dict[str, bytes] = {}
        self._pages: dict[tuple[str, int], Page] = {}
        self._listings: dict[str, Iterator[Info]] = {}
        if keep:
            self._fill()

    def _fill(self) -> None:
        self._manifests = {path: self._manifest(path) for path in self._tasks}
        for path in self._partitions:
            page, number = self._outputs(path, 0), 0
            self._pages[path, 0] = page
            while page.token is not None:
                number += 1
                self._pages[path, number] = page = self._outputs(path, number)

    def _manifest(self, path: str) -> bytes:
        return trees.manifest(DEST, self.shape, self._tasks[path])

    def _outputs(self, path: str, number: int) -> Page:
        """Return a page of what a partition holds after the commit."""
        if number == 0:
            self._listings[path] = self._partition(path)
        entries = tuple(islice(self._listings[path], PAGE))
        return Page(entries, str(number + 1) if len(entries) == PAGE else None)

    def _partition(self, path: str) -> Iterator[Info]:
        step, first = self.shape.partitions, self._partitions[path]
        for task in range(self.shape.tasks):
            for number in range(first, self.shape.files, step):
                yield Info(f"{DEST}/{self.shape.name(task, number)}", Kind.FILE, 1)

    async def head(self, path: str) -> Info:
        """The destination, the job's directories and the commit record are there, nothing else."""
        if path == self._layout.record and self.record:
            return Info(path, Kind.FILE, len(self.record))
        if path == self._layout.epoch_dir(1):
            return Info(path, Kind.DIRECTORY)
        if path == DEST or self._layout.manifests_dir.startswith(path):
            return Info(path, Kind.DIRECTORY)
        raise NotFoundError("head", path)

    async def list(self, path: str, token: str | None = None) -> Page:
        """Manifests, task attempts, and what was renamed."""
        if path == self._layout.manifests_dir:
            return Page(tuple(Info(name, Kind.FILE, 1) for name in self._tasks))
        if path.endswith("/tasks"):
            attempts = (trees.attempt_id(task) for task in range(self.shape.tasks))
            return Page(tuple(Info(f"{path}/{name}", Kind.DIRECTORY) for name in attempts))
        if path in self._partitions and self.renamed:
            number = int(token or 0)
            if self._keep:
                return self._pages[path, number]
            begin = perf_counter()
            page = self._outputs(path, number)
            self.making += perf_counter() - begin
            return page
        if path == DEST:
            return Page((Info(self._layout.temporary, Kind.DIRECTORY),))
        raise NotFoundError("list", path)

    async def get(self, path: str, limit: int) -> bytes:
        """Return a manifest, or the commit record."""
        if path.endswith(f"/{RECORD}") and self.record:
            return self.record
        if self._keep and path in self._manifests:
            return self._manifests[path]
        if path not in self._tasks:
            raise NotFoundError("get", path)
        begin = perf_counter()
        data = self._manifest(path)
        self.making += perf_counter() - begin
        return data

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """Claim to have written, and keep the commit record."""
        if path == self._layout.record:
            self.record = data
        return Info(path, Kind.FILE, len(data))

    async def delete(self, path: str) -> None:
        """Claim to have deleted."""

    async def delete_tree(self, path: str) -> None:
        """Claim to have deleted."""

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """Claim to have copied."""

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """Count."""
        self.renamed += 1

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """Count."""
        self.renamed += len(pairs)
        return len(pairs), None

    async def mkdir(self, path: str) -> None:
        """Claim to have made."""

    async def sync(self, path: str) -> None:
        """Claim to have made it last."""

    async def aclose(self) -> None:
        """Hold nothing."""


def wrapped(store: Store) -> Wrapped:
    """Return the store behind the very wrappers that ``open_store`` puts around every store."""
    opened = open_store(Address("file", "", "/"), StoreSettings(rng=random.Random(1)))
    return Wrapped(store, *opened.policies)


async def commit(store: NoopStore) -> JobReport:
    """Commit the job of the store, with every default, and see that all files were renamed."""
    layout = Layout(Address("file", "", DEST), trees.JOB_ID)
    store.renamed, store.record = 0, b""
    report = await ManifestCommitter(wrapped(store), layout, Options(), this_host()).commit_job()
    # Renamed as well: the manifests, the marker, the owner's place, the job attempt's directory.
    files = store.renamed - 4
    if (files, report.files) != (store.shape.total, store.shape.total):
        raise AssertionError(f"{files} of {store.shape.total} files were renamed")
    return report

"""What the tests of engines share: tables, workers that die while they write, and rows as read."""

from __future__ import annotations

import io
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.dataset as ds
from fsspec.implementations.local import LocalFileSystem

from asynccommit import sync
from asynccommit.commit.layouts.layout import STAGED

ROOT = Path(__file__).parents[2]
VALUES = ["a b/c:d=é", None, "", "{[^]}%#", "x+y&z", "plain"]
"""Values of a partition column that are hard to name a directory by."""


def files(dest: Path) -> list[str]:
    """Return the visible data files below a directory, relative, in order."""
    sync.wait_for_cleanup(30)
    found = (path.relative_to(dest) for path in dest.rglob("*") if path.is_file())
    return sorted(str(name) for name in found if name.parts[0][0] not in "_.")


def directories(dest: Path) -> set[str]:
    """Return the directories that have visible data files, relative."""
    return {str(Path(name).parent) for name in files(dest)}


def table_of(dest: Path, **partitions: Any) -> Any:
    """Return the visible rows as a table of Arrow.

    Args:
        dest: the destination.
        partitions: partition column -> type.
    """
    schema = pa.schema(list(partitions.items()))
    partitioning = ds.partitioning(schema, flavor="hive") if partitions else None
    named = [str(dest / name) for name in files(dest)]
    if not named:
        return pa.table({})
    return ds.dataset(named, partitioning=partitioning, partition_base_dir=str(dest)).to_table()


def values_of(dest: Path, column: str, **partitions: Any) -> Counter[Any]:
    """Return how many visible rows have each value of a column."""
    table = table_of(dest, **partitions)
    return Counter(table[column].to_pylist()) if column in table.column_names else Counter()


def dies_while_writing(root: Path, flag: Path) -> None:
    """Kill this process, once in all, as soon as it or another has begun a file under ``root``.

    Raises nothing: the process ends by ``SIGKILL`` in a thread, in the middle of what it does.
    """
    if not flag.exists():
        known = _count(root)
        threading.Thread(target=_die, args=(root, flag, known), daemon=True).start()


def _die(root: Path, flag: Path, known: int) -> None:
    ends = time.monotonic() + 120
    while _count(root) <= known and time.monotonic() < ends:
        time.sleep(0.001)
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _count(root: Path) -> int:
    return sum(
        name.removesuffix(STAGED).endswith((".parquet", ".csv", ".arrow"))
        for _, _, names in os.walk(root)
        for name in names
    )


_closed: Counter[str] = Counter()
_closing = threading.Lock()


class DyingFileSystem(LocalFileSystem):  # type: ignore[misc]
    """A local filesystem that kills its process, once in all, with a number of files complete.

    An engine's own writer writes through it; nothing but the moment of the death is chosen.

    Args:
        flag: a file that is made as the process dies; with it the filesystem is any other.
        files: how many files are closed before.
    """

    protocol = "dying"

    def __init__(self, flag: str, files: int, **more: Any) -> None:
        super().__init__(**more)
        self.flag, self.files = flag, files

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if mode != "wb" or os.path.exists(self.flag):
            return super()._open(path, mode, **more)
        return _Counted(self, self._strip_protocol(path))

    def closed(self) -> None:
        """Count a file that is complete, and die with the last one."""
        with _closing:
            _closed[self.flag] += 1
            if _closed[self.flag] == self.files:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)


class _Counted(io.FileIO):
    def __init__(self, filesystem: DyingFileSystem, path: str) -> None:
        super().__init__(path, "wb")
        self._filesystem = filesystem

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._filesystem.closed()


@contextmanager
def running_ray() -> Iterator[Any]:
    """Run a Ray of two CPUs on loopback; its workers import what this process does."""
    import ray

    environment = {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0", "NO_PROXY": "*"}
    with patch.dict(os.environ, environment):
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _node_ip_address="127.0.0.1",
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield ray
        finally:
            ray.shutdown()


def once(values: Iterable[Any]) -> Counter[Any]:
    """Return how many rows have each value if each is there once."""
    return Counter(values)

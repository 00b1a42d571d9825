"""Commits whose files the workers of a cluster rename, of which one is killed on the way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.commit.planning import plan_file
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.testing import AdlsEmulator, Climate, running_emulator
from asynccommit.testing.models.invariants import tree_of

TASKS, FILES = 4, 240
URL = "abfs://data/table"
_SLOW = {"latency": {"model": "lognormal", "median": 0.1, "sigma": 0.3}}
Workers = Callable[[], "list[int]"]
"""Returns the processes of the cluster that do slices now."""


class StruckCommit:
    """One commit, on an emulator with a real port.

    Args:
        emulator: has the container ``data``.

    Attributes:
        killed: the workers that were killed.
    """

    def __init__(self, emulator: Any) -> None:
        self._emulator = emulator
        self.killed: list[int] = []

    def committed(self, workers: Workers | None = None, runner: Any = "none") -> JobReport:
        """Commit a job; kill a worker once a fifth of its files are at their places."""
        storage = {"connection_string": self._emulator.connection_string}
        name, given = (runner, None) if isinstance(runner, str) else ("none", runner)
        options = Options(runner=name, cleanup="wait")
        with (
            self._striking(workers),
            sync.open_job(URL, storage_options=storage, options=options, runner=given) as job,
        ):
            for task in range(TASKS):
                with job.task(task) as out:
                    for number in range(FILES // TASKS):
                        out.put(f"day={number % 3}/part-{task}-{number}", b"x")
            self._set(Climate.from_json(_SLOW) if workers else Climate())
        return job.report

    @contextmanager
    def _striking(self, workers: Workers | None) -> Iterator[None]:
        if workers is None:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._strike, args=(workers, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._set(Climate())

    def _strike(self, workers: Workers, over: threading.Event) -> None:
        while not over.is_set() and self.shown() < FILES // 5:
            time.sleep(0.05)
        while not over.is_set() and not self.killed:
            for worker in workers()[:1]:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    self.killed.append(worker)

    def _set(self, climate: Climate) -> None:
        self._emulator.do(partial(_set_climate, climate))

    def files(self) -> list[str]:
        """Return the paths of all files."""
        tree = self._emulator.do(lambda emulator: tree_of(emulator.model, "data"))
        return [path for path, item in tree.items() if item.data is not None]

    def shown(self) -> int:
        """Return how many files of the job the table has."""
        return sum(path.startswith("/table/day=") for path in self.files())

    def problems(self, report: JobReport) -> list[str]:
        """Return what is wrong after a commit: a file too few or too many, or a remain."""
        found = [path for path in self.files() if "_temporary" in path]
        if (report.files, self.shown()) != (FILES, FILES):
            found.append(f"{report.files} files in the report, {self.shown()} in the table")
        return found


def _set_climate(climate: Climate, emulator: AdlsEmulator) -> None:
    emulator.weather.climate = climate


@contextmanager
def struck_commit() -> Iterator[StruckCommit]:
    """Yield a commit whose slices have a few rows."""
    with (
        pytest.MonkeyPatch.context() as patch,
        running_emulator(filesystems=["data"]) as emulator,
    ):
        patch.setattr(plan_file, "CHUNK_ROWS", 30)
        yield StruckCommit(emulator)

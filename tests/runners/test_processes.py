"""Commits whose files processes of this machine rename, on an emulator's port."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.commit.orders import Slice, Tally
from asynccommit.commit.planning import plan_file
from asynccommit.options.job import Options
from asynccommit.results import JobReport
from asynccommit.runners import processes
from asynccommit.testing.models.invariants import tree_of
from asynccommit.testing.pytest_plugin import adls_emulator_thread

__all__ = ["adls_emulator_thread"]

FILES = 40


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice have a few rows."""
    monkeypatch.setattr(plan_file, "CHUNK_ROWS", 5)


def committed(emulator: Any, **storage: Any) -> JobReport:
    """Commit a job with two processes; return its report."""
    emulator.do(lambda it: it.model.create_filesystem("data"))
    storage = {"connection_string": emulator.connection_string, **storage}
    options = Options(runner="processes:2", cleanup="wait")
    with sync.open_job("abfs://data/table", storage_options=storage, options=options) as job:
        for task in range(4):
            with job.task(task) as out:
                for number in range(FILES // 4):
                    out.put(f"day={number % 3}/part-{task}-{number}", b"x")
    return job.report


def shown(emulator: Any) -> int:
    """Return how many files the table has; nothing may be left below ``_temporary``."""
    tree = emulator.do(lambda it: tree_of(it.model, "data"))
    files = [path for path, item in tree.items() if item.data is not None]
    assert not [path for path in files if "_temporary" in path]
    return sum("/part-" in path for path in files)


@pytest.fixture(params=[signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name)
def lost(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """Have the first worker that gets a slice meet a signal; return the signal's victims."""
    monkeypatch.setattr(processes, "_SILENCE", 10.0)
    victims: list[int] = []
    do = processes._Child.do

    async def struck(self: Any, piece: Slice) -> Tally:
        if not victims:
            victims.append(self._process.pid)
            os.kill(self._process.pid, request.param)
        return await do(self, piece)

    monkeypatch.setattr(processes._Child, "do", struck)
    return victims


@pytest.mark.full
@pytest.mark.every(2)
def test_processes_rename_the_files(adls_emulator_thread: Any) -> None:
    """The report is that of a commit of one process, and nobody warns."""
    report = committed(adls_emulator_thread)

    assert (report.files, list(report.warnings)) == (FILES, [])
    assert shown(adls_emulator_thread) == FILES
    assert 1 <= len(report.workers) <= 2
    assert sum(work["files"] for work in report.workers.values()) == FILES
    assert sum(work["slices"] for work in report.workers.values()) >= FILES // 5
    assert all(work["seconds"] > 0 and not work["refused"] for work in report.workers.values())


@pytest.mark.full
@pytest.mark.every(4)
def test_a_process_that_is_lost_is_replaced(adls_emulator_thread: Any, lost: list[int]) -> None:
    """Its slice is done again, by another process."""
    report = committed(adls_emulator_thread)

    assert len(lost) == 1
    assert (report.files, list(report.warnings)) == (FILES, [])
    assert shown(adls_emulator_thread) == FILES

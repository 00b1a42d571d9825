"""Jobs whose tasks run in pools of threads and processes."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from asynccommit import OptionError, sync
from asynccommit.errors import PreflightError
from asynccommit.parallel import commit_parallel, partition_directory
from asynccommit.sync import BlockingTask
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.pytest_plugin import adls_emulator_thread
from tests.support.jobs import visible

__all__ = ["adls_emulator_thread"]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what pools leave here, and not on the event loop, which may not block."""
    yield
    gc.collect()


def _write(task: BlockingTask, item: int) -> None:
    task.put(f"p={item}/part", str(item).encode())


def _fail_at_three(task: BlockingTask, item: int) -> None:
    _write(task, item)
    if item == 3:
        raise ConnectionError("the source went away")


def _die_at_three(task: BlockingTask, item: int) -> None:
    _write(task, item)
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)


def _files(dest: Path) -> dict[str, str]:
    sync.wait_for_cleanup(30)
    return visible(dest) if dest.exists() else {}


EXACT = {f"p={number}/part": str(number) for number in range(8)}


def test_threads_write_one_job(tmp_path: Path) -> None:
    """Each item is a task, and all of them are one commit."""
    with ThreadPoolExecutor(3) as executor:
        report = commit_parallel(tmp_path / "out", _write, range(8), executor)

    assert (report.files, len(report.tasks)) == (8, 8)
    assert _files(tmp_path / "out") == EXACT


def test_processes_write_one_job(tmp_path: Path) -> None:
    """Function, items and messages go through pickles."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        commit_parallel(tmp_path / "out", _write, range(8), executor)

    assert _files(tmp_path / "out") == EXACT


@pytest.mark.full
def test_multiprocessing_pool_writes_one_job(tmp_path: Path) -> None:
    """A pool of multiprocessing has other methods than an executor; an error is raised too."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        commit_parallel(tmp_path / "out", _write, range(8), pool)
        with pytest.raises(ConnectionError):
            commit_parallel(tmp_path / "out2", _fail_at_three, range(8), pool)

    assert _files(tmp_path / "out") == EXACT
    assert _files(tmp_path / "out2") == {}


def test_a_failed_call_leaves_nothing(tmp_path: Path) -> None:
    """The error of a call is raised, and no file of the others becomes visible."""
    with ThreadPoolExecutor(3) as executor, pytest.raises(ConnectionError, match="went away"):
        commit_parallel(tmp_path / "out", _fail_at_three, range(8), executor)

    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    """An executor whose process was killed breaks, and the job is aborted."""
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(2, mp_context=context) as executor,
        pytest.raises(BrokenProcessPool),
    ):
        commit_parallel(tmp_path / "out", _die_at_three, range(8), executor)

    assert _files(tmp_path / "out") == {}


def test_modes_of_a_second_job(tmp_path: Path) -> None:
    """``error`` refuses, ``replace_partitions`` and ``overwrite`` replace what they name."""
    dest = tmp_path / "out"
    with ThreadPoolExecutor(2) as executor:
        commit_parallel(dest, _write, [1, 2], executor)
        with pytest.raises(PreflightError):
            commit_parallel(dest, _write, [3], executor, mode="error")
        part = commit_parallel(dest, _write, [2, 3], executor, mode="replace_partitions")
        assert (part.replaced_files, sorted(_files(dest))) == (
            1,
            [f"p={n}/part" for n in (1, 2, 3)],
        )
        commit_parallel(dest, _write, [4], executor, mode="overwrite")

        with pytest.raises(OptionError, match="expected one of"):
            commit_parallel(dest, _write, [5], executor, mode="over")  # type: ignore[arg-type]

    assert _files(dest) == {"p=4/part": "4"}


def test_ignore_writes_only_where_there_is_nothing(tmp_path: Path) -> None:
    """``ignore`` writes a new table, and calls nothing for one that has files, as Spark does."""
    dest = tmp_path / "out"
    with ThreadPoolExecutor(2) as executor:
        first = commit_parallel(dest, _write, [1], executor, mode="ignore")
        second = commit_parallel(dest, _write, [2], executor, mode="ignore")

    assert (first.files, second.files, _files(dest)) == (1, 0, {"p=1/part": "1"})
    assert second.warnings == (
        f"file:{dest} is not empty, and the mode is ignore: nothing was written",
    )
    assert not (dest / "_temporary").exists()


def test_tasks_of_a_relative_path_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is one from the caller's directory, wherever a process of the pool is."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with ProcessPoolExecutor(
        1, initializer=os.chdir, initargs=(tmp_path / "elsewhere",)
    ) as executor:
        commit_parallel("out", _write, [1], executor)

    assert _files(tmp_path / "out") == {"p=1/part": "1"}


def test_an_account_takes_a_job_of_a_pool(adls_emulator_thread: EmulatorThread) -> None:
    """Tasks get the storage options of the job."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    options = {"connection_string": emulator.connection_string}
    with ThreadPoolExecutor(2) as executor:
        report = commit_parallel(url, _write, range(3), executor, storage_options=options)

    assert (report.files, len(report.tasks)) == (3, 3)


class _UPath:
    """A path of ``universal_pathlib``: its text, protocol and storage options."""

    def __init__(self, text: str, storage_options: Mapping[str, Any]) -> None:
        self.text, self.protocol, self.storage_options = text, "abfs", storage_options

    def __str__(self) -> str:
        return self.text


def test_a_upath_is_a_destination(adls_emulator_thread: EmulatorThread) -> None:
    """Tasks get the storage options that the path holds."""
    emulator = adls_emulator_thread
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    place: Any = _UPath(url, {"connection_string": emulator.connection_string})
    with ThreadPoolExecutor(2) as executor:
        report = commit_parallel(place, _write, range(3), executor)

    assert (report.files, report.dest) == (3, url)


@pytest.mark.parametrize(
    "value, directory",
    [
        ("a b/c:d=é", "x=a b%2Fc%3Ad%3Dé"),
        ("{[^]}%\x01\x7f", "x=%7B%5B%5E%5D}%25%01%7F"),
        (None, "x=__HIVE_DEFAULT_PARTITION__"),
        (math.nan, "x=__HIVE_DEFAULT_PARTITION__"),
        ("", "x=__HIVE_DEFAULT_PARTITION__"),
        (True, "x=true"),
        (numpy.bool_(False), "x=false"),
        (pandas.NA, "x=__HIVE_DEFAULT_PARTITION__"),
        (pandas.Timestamp("2026-01-02 03:04:05"), "x=2026-01-02 03%3A04%3A05"),
        (7, "x=7"),
    ],
)
def test_partition_directories_are_those_of_spark(value: object, directory: str) -> None:
    """Names and values are escaped as ``ExternalCatalogUtils`` of Spark escapes them."""
    assert partition_directory({"x": value}) == directory
    assert partition_directory({"y": 1, "x": value}) == f"y=1/{directory}"

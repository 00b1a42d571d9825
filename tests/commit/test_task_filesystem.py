"""Libraries that write files by themselves write into a task, on every store."""

from __future__ import annotations

import asyncio
import builtins
import pickle
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from asynccommit import OptionError, UnsupportedError, engine, open_job, open_store, sync
from asynccommit.commit.task_filesystem import TaskFileSystem
from asynccommit.engine.renames import find
from asynccommit.errors import NotFoundError
from asynccommit.runtime.loop_thread import submit
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.pytest_plugin import adls_emulator_thread

__all__ = ["adls_emulator_thread"]

TABLE = pa.table({"day": [1, 1, 2], "delay": [4, 12, 0]})
Place = tuple[str, Mapping[str, Any]]


@pytest.fixture(params=["local", "adls"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a destination and its storage options."""
    if request.param == "local":
        yield str(tmp_path), {}
        return
    emulator: EmulatorThread = request.getfixturevalue("adls_emulator_thread")
    emulator.do(lambda running: running.model.create_filesystem("data"))
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/out"
    yield url, {"connection_string": emulator.connection_string}
    sync.wait_for_cleanup(30)


def _read(place: Place) -> dict[str, bytes]:
    url, options = place
    sync.wait_for_cleanup(30)

    async def read() -> dict[str, bytes]:
        top, found = parse_url(url).path, dict[str, bytes]()
        async with open_store(url, storage_options=options) as store:
            if await find(store, top) is None:
                return {}
            async for info in engine.list_tree(store, top):
                if not info.is_dir and "_SUCCESS" not in info.path:
                    found[info.path[len(top) + 1 :]] = await store.get(info.path, 1 << 20)
        return found

    return asyncio.run(read())


def test_libraries_write_into_a_task(place: Place) -> None:
    """Files of pandas and pyarrow, partitioned and text, are those of the committed job."""
    url, options = place
    frame = pd.DataFrame({"a": [1, 2]})
    with sync.open_job(url, storage_options=options) as job, job.task(0) as task:
        files = task.filesystem
        frame.to_parquet("pandas/a.parquet", filesystem=files)
        with files.open("pandas/a.csv", "w") as text:
            frame.to_csv(text, index=False)
        ds.write_dataset(
            TABLE,
            "arrow",
            filesystem=task.arrow_filesystem,
            format="parquet",
            partitioning=ds.partitioning(pa.schema([("day", pa.int64())]), flavor="hive"),
        )
        files.pipe_file("raw/b", b"bytes")

    found = _read(place)

    assert job.report.files == 5
    assert found["pandas/a.csv"] == b"a\n1\n2\n"
    assert found["raw/b"] == b"bytes"
    assert pq.read_table(pa.BufferReader(found["arrow/day=1/part-0.parquet"])).num_rows == 2
    assert pq.read_table(pa.BufferReader(found["pandas/a.parquet"])).num_rows == 2


def test_what_was_written_is_listed(place: Place) -> None:
    """Names, sizes and implied directories are known; anything else does not exist."""
    url, options = place
    with sync.open_job(url, storage_options=options) as job, job.task(0) as task:
        files = task.filesystem
        files.makedirs("a/b", exist_ok=True)
        assert files.find("") == []
        files.pipe_file("/a/b/one", b"12345")
        with files.open("asynccommit://a/two", "wb") as file:
            file.write(b"123")
        assert files.find("") == ["a/b/one", "a/two"]
        assert files.ls("a", detail=False) == ["a/b", "a/two"]
        assert files.info("a/two")["size"] == 3
        assert files.isdir("a/b")
        assert not files.exists("a/three")
        with pytest.raises(FileNotFoundError):
            files.ls("none")
    assert {*_read(place)} == {"a/b/one", "a/two"}


def test_what_a_task_cannot_do_is_refused(tmp_path: Path) -> None:
    """Reading, appending, leaving the destination and pickling have errors that say why."""
    with sync.open_job(tmp_path) as job, job.task(0) as task:
        files = task.filesystem
        for mode in ("rb", "ab", "r+b"):
            with pytest.raises(UnsupportedError, match="only written"):
                files.open("a", mode)
        with pytest.raises(OptionError):
            files.pipe_file("../a", b"")
        with pytest.raises(UnsupportedError, match="pickled"):
            pickle.dumps(files)
        assert repr(files).startswith("TaskFileSystem('attempt_")


async def test_an_asyncio_task_is_used_from_threads(tmp_path: Path) -> None:
    """A library in a thread waits for the loop; on the loop itself it is refused."""
    async with open_job(tmp_path) as job, job.task(0) as task:
        files, arrow = task.filesystem, task.arrow_filesystem
        await asyncio.to_thread(lambda: pq.write_table(TABLE, "one.parquet", filesystem=arrow))
        with pytest.raises(UnsupportedError, match="to_thread"):
            files.pipe_file("two", b"")
    assert job.report.files == 1


def test_files_are_closed_in_the_background(tmp_path: Path) -> None:
    """Closes within the block run at the same time, and have ended after it."""
    together = threading.Barrier(8)

    def run(work: Any) -> Any:
        if work.cr_code.co_name == "_close":
            together.wait(30)
        return submit(work)

    with sync.open_job(tmp_path) as job, job.task(0) as task:
        files = TaskFileSystem(task._inner, run)
        with files.closing_in_background():
            for number in range(8):
                with files.open(f"{number}", "wb") as file:
                    file.write(b"data")
    assert job.report.files == 8


def test_a_close_in_the_background_that_fails_is_raised(tmp_path: Path) -> None:
    """The error is that of the close, and the task is aborted."""
    with pytest.raises(NotFoundError), sync.open_job(tmp_path) as job, job.task(0) as task:  # noqa: SIM117
        with task.filesystem.closing_in_background() as files:
            file = files.open("a", "wb")
            shutil.rmtree(task.directory)
            file.close()
    assert job.job_id
    assert not (tmp_path / "a").exists()


def test_an_error_of_the_library_aborts_the_task(place: Place) -> None:
    """A write that fails half-way leaves nothing at the destination."""
    url, options = place
    with (
        pytest.raises(ZeroDivisionError),
        sync.open_job(url, storage_options=options) as job,
        job.task(0) as task,
    ):
        file = task.filesystem.open("a", "wb")
        file.write(b"half")
        file.close()
        raise ZeroDivisionError
    assert _read(place) == {}


def test_without_fsspec_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the extra to install."""
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == "fsspec":
            raise ModuleNotFoundError("No module named 'fsspec'", name="fsspec")
        return real(name, *args)

    monkeypatch.delitem(sys.modules, "asynccommit.commit.task_filesystem", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with sync.open_job(tmp_path) as job, job.task(0) as task:
        task.put("a", b"")
        with pytest.raises(UnsupportedError, match=r"asynccommit\[fsspec\]"):
            task.filesystem  # noqa: B018 - the property raises

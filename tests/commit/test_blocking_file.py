"""Files of tasks as file objects."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asynccommit import sync
from asynccommit.commit.blocking_file import BlockingFile
from asynccommit.commit.tasks.writers import LocalWriter, WholeWriter
from asynccommit.errors import OptionError, RejectedError, UnavailableError


async def _refuse(data: bytes) -> None:
    raise UnavailableError("put", "/t/a", "not now")


def test_what_writes_to_file_objects(tmp_path: Path) -> None:
    """Arrow writes Parquet to one, and reads it again."""
    table = pa.table({"number": list(range(1000))})

    with sync.open_job(tmp_path / "out") as job, job.task(0) as task, task.open("part-0") as file:
        pq.write_table(table, file)
        assert file.tell() > 0

    assert pq.read_table(tmp_path / "out" / "part-0") == table


def test_exception_in_the_block(tmp_path: Path) -> None:
    """An exception in the block aborts the file: nothing of it is left."""
    file = BlockingFile(LocalWriter(str(tmp_path / "a")), "a")

    with pytest.raises(ValueError, match="mine"), file:
        file.write(b"x" * (2 << 20))
        raise ValueError("mine")

    assert file.closed
    assert not (tmp_path / "a").exists()


def test_close_that_fails() -> None:
    """What keeps a file from being written is raised when it is closed."""
    file = BlockingFile(WholeWriter("/t/a", _refuse), "a")

    assert (file.writable(), file.write(b"data"), file.tell()) == (True, 4, 4)
    with pytest.raises(UnavailableError):
        file.close()
    file.close()


def test_small_writes_are_gathered() -> None:
    """The event loop is asked once for many of them, and gets each byte in order."""
    whole: list[bytes] = []
    asked: list[str] = []

    async def save(data: bytes) -> None:
        whole.append(data)

    def run(work: Any) -> Any:
        asked.append(work.cr_code.co_name)
        return asyncio.run(work)

    with BlockingFile(WholeWriter("/t/a", save), "a", run) as file:
        for number in range(1_000):
            file.write(bytes([number % 256]) * 300)
        assert file.tell() == 300_000

    assert whole == [b"".join(bytes([number % 256]) * 300 for number in range(1_000))]
    assert asked == ["_write", "_close"]


def test_write_that_fails(tmp_path: Path) -> None:
    """A file that has lost bytes is aborted, and cannot be finished without them."""
    (tmp_path / "a").mkdir()
    file = BlockingFile(LocalWriter(str(tmp_path / "a")), "a")

    with pytest.raises(RejectedError):
        file.write(b"x" * (2 << 20))

    with pytest.raises(OptionError, match="closed"):
        file.write(b"more")


def test_file_that_is_forgotten() -> None:
    """A file that nobody closed is not finished when it is thrown away."""
    file = BlockingFile(WholeWriter("/t/a", _refuse), "a")
    file.write(b"half of it")

    del file

    assert gc.collect() >= 0

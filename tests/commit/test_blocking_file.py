"""Files of tasks as file objects."""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asynccommit import sync
from asynccommit.commit.blocking_file import BlockingFile
from asynccommit.commit.writers import LocalWriter, WholeWriter
from asynccommit.errors import UnavailableError


async def _refuse(data: bytes) -> None:
    raise UnavailableError("put", "/t/a", "not now")


def test_what_writes_to_file_objects(tmp_path: Path) -> None:
    """Arrow writes Parquet to one, and reads it again."""
    table = pa.table({"number": list(range(1000))})

    with sync.job(tmp_path / "out") as job, job.task(0) as task, task.open("part-0") as file:
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


def test_file_that_is_forgotten() -> None:
    """A file that nobody closed is not finished when it is thrown away."""
    file = BlockingFile(WholeWriter("/t/a", _refuse), "a")
    file.write(b"half of it")

    del file

    assert gc.collect() >= 0

"""Files that are written by and by, in memory or on this machine."""

from __future__ import annotations

import asyncio
import resource
import shutil
from pathlib import Path

import pytest

from asynccommit.commit.tasks.writers import LocalWriter, WholeWriter, make_parents
from asynccommit.errors import NotFoundError, OptionError, PreconditionError, RejectedError


async def test_whole_file_is_saved_once() -> None:
    """What was written is handed over when the file is closed, and never again."""
    saved: list[bytes] = []

    async def save(data: bytes) -> None:
        saved.append(data)

    file = WholeWriter("/t/part-0", save)
    async with file:
        assert await file.write(b"ab") == 2
        await file.write(memoryview(b"cd"))
    await file.aclose()

    assert saved == [b"abcd"]
    with pytest.raises(OptionError, match="/t/part-0 is closed"):
        await file.write(b"more")


async def test_whole_file_that_is_aborted() -> None:
    """An exception in the block saves nothing."""
    saved: list[bytes] = []

    async def save(data: bytes) -> None:
        saved.append(data)

    with pytest.raises(ValueError, match="mine"):
        async with WholeWriter("/t/part-0", save) as file:
            await file.write(b"ab")
            raise ValueError("mine")

    assert saved == []


async def test_local_file(tmp_path: Path) -> None:
    """A local file has its directories made, and holds all that was written, in order."""
    path = tmp_path / "day=1" / "part-0"
    chunk = bytes(range(256)) * 1024

    async with LocalWriter(str(path)) as file:
        for _ in range(9):
            await file.write(chunk)

    assert path.read_bytes() == chunk * 9


async def test_empty_local_file(tmp_path: Path) -> None:
    """A file to which nothing is written is there, empty."""
    async with LocalWriter(str(tmp_path / "part-0")):
        pass

    assert (tmp_path / "part-0").read_bytes() == b""


async def test_local_file_that_is_aborted(tmp_path: Path) -> None:
    """An exception in the block deletes what had been written to the disk."""
    path = tmp_path / "part-0"

    with pytest.raises(ValueError, match="mine"):
        async with LocalWriter(str(path)) as file:
            await file.write(b"x" * (2 << 20))
            assert path.exists()
            raise ValueError("mine")

    assert not path.exists()


async def test_local_file_that_cannot_be_written(tmp_path: Path) -> None:
    """What the disk refuses is an error of the store's kind, with the path."""
    (tmp_path / "day=1").write_text("a file")

    with pytest.raises(PreconditionError, match="day=1"):
        async with LocalWriter(str(tmp_path / "day=1" / "part-0")) as file:
            await file.write(b"x")


async def test_local_file_below_a_directory_that_is_gone(tmp_path: Path) -> None:
    """The directory of a task that has ended is not made again, and neither are those above."""
    top = tmp_path / "job" / "task"
    top.mkdir(parents=True)
    await asyncio.to_thread(make_parents, str(top / "a" / "b" / "part-0"), str(top))
    assert (top / "a" / "b").is_dir()

    shutil.rmtree(tmp_path / "job")
    for name in ("part-0", "a/part-0"):
        with pytest.raises(NotFoundError, match="has ended"):
            async with LocalWriter(str(top / name), str(top)) as file:
                await file.write(b"x")
    assert list(tmp_path.iterdir()) == []


async def test_local_file_whose_close_fails(tmp_path: Path) -> None:
    """Half of a file, on a disk that takes no more, is not left for the task to commit."""
    path = tmp_path / "part-0"
    file = LocalWriter(str(path))
    await file.write(bytes(100))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))  # Python ignores the signal
    try:
        with pytest.raises(RejectedError, match="part-0"):
            await file.aclose()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not path.exists()
    assert not file.is_open

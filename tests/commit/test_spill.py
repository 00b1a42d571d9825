"""The spill: section 6.9 of the reference's catalogue."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import IO

import pytest

import asynccommit.commit.spill as spill_module
from asynccommit.commit.spill import CHUNK, Entry, Spill, in_batches, unnamed_file
from asynccommit.errors import RejectedError
from asynccommit.runtime.concurrency import ChunkedItems


def entries(start: int, count: int) -> list[Entry]:
    """Return distinct entries."""
    return [
        Entry(f"/s/{i}", f"/d é/{i}", i, None if i % 2 else f"e{i}")
        for i in range(start, start + count)
    ]


async def everything(spill: Spill) -> list[Entry]:
    """Return what the spill holds."""
    return [entry async for entry in spill.each()]


@pytest.mark.parametrize("in_memory", [1, 10, 1_000_000])
@pytest.mark.parametrize("count", [0, 1, CHUNK * 2 + 1])
async def test_what_goes_in_comes_out(in_memory: int, count: int) -> None:
    """Entries come back in their order, from memory or from the file."""
    with Spill(in_memory=in_memory) as spill:
        for start in range(0, count, 100):
            await spill.append(entries(start, min(100, count - start)))

        assert spill.count == count
        assert await everything(spill) == entries(0, count)
        assert await everything(spill) == entries(0, count)


@pytest.mark.parametrize("in_memory", [1, 1_000_000])
@pytest.mark.parametrize("count, sizes", [(0, []), (3, [3]), (8, [4, 4]), (9, [4, 4, 1])])
async def test_entries_some_at_a_time(in_memory: int, count: int, sizes: list[int]) -> None:
    """Batches are as large as was asked, the last one as what is left; the order stays."""
    with Spill(in_memory=in_memory) as spill:
        await spill.append(entries(0, count))
        found = [batch async for batch in in_batches(spill.entries(), 4)]

        assert [len(batch) for batch in found] == sizes
        assert [entry for batch in found for entry in batch] == entries(0, count)


async def test_rows_of_a_file_are_handed_out_as_they_are_read() -> None:
    """A worker waits for as many rows as one read of the file gives, not for each."""
    with Spill(in_memory=3) as spill:
        await spill.append(entries(0, CHUNK + 1))
        handed = spill.entries()
        assert isinstance(handed, ChunkedItems)
        assert [len(chunk) async for chunk in handed.chunks] == [CHUNK, 1, 0]


async def test_many_producers() -> None:
    """Entries of parallel producers all come back, once."""
    with Spill(in_memory=50) as spill:
        await asyncio.gather(*(spill.append(entries(n * 100, 100)) for n in range(100)))

        assert sorted(await everything(spill)) == sorted(entries(0, 10_000))


async def test_the_file_cannot_be_found(tmp_path: Path) -> None:
    """The spill file has no name, so that nobody opens it and no crash leaves it."""
    with Spill(str(tmp_path), in_memory=1) as spill:
        await spill.append(entries(0, 10))

        assert list(tmp_path.iterdir()) == []
        assert len(await everything(spill)) == 10


async def test_no_place_for_the_file(tmp_path: Path) -> None:
    """A directory that cannot be written to is named, with the option to change."""
    with (
        Spill(str(tmp_path / "missing"), in_memory=1) as spill,
        pytest.raises(RejectedError, match=r"asynccommit\.spill\.directory"),
    ):
        await spill.append(entries(0, 10))


def test_the_file_is_private() -> None:
    """Nobody else may read the spill file."""
    with unnamed_file(None) as file:
        assert os.fstat(file.fileno()).st_mode & 0o077 == 0


async def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full local disk is named as such, also when the file is closed after it."""

    def full(directory: str | None) -> IO[bytes]:
        return open("/dev/full", "r+b")

    monkeypatch.setattr(spill_module, "unnamed_file", full)
    with (
        pytest.raises(RejectedError, match=r"No space left.*asynccommit\.spill\.directory"),
        Spill(in_memory=1) as spill,
    ):
        await spill.append(entries(0, 10))

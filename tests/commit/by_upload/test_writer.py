"""Writing one file in parts: what is sent, in how much memory, and what is left if it fails."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from asynccommit.commit.by_upload.writer import (
    UploadWriter,
    check_part_size,
    part_size_for,
    ranges,
)
from asynccommit.commit.tasks.block_writer import Slots
from asynccommit.errors import OptionError, RejectedError, UnavailableError
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.policies.funnel import Policy
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.faults import Fault, Faults
from tests.support.uploads import Gate, Gauge, keys, new_bucket, open_uploads, store_of

PATH = "/t/part-0"


@dataclass
class Desk:
    """A bucket, and the files that were closed."""

    bucket: S3Bucket
    store: MultipartStore
    slots: Slots
    closed: list[UploadWriter] = field(default_factory=list)

    async def open(self, path: str = PATH, part_size: int = 4) -> UploadWriter:
        """Begin a file."""
        upload_id = await self.store.create_upload(path)

        async def keep(file: UploadWriter) -> None:
            self.closed.append(file)

        return UploadWriter(
            self.store, path, upload_id, part_size=part_size, slots=self.slots, closed=keep
        )

    async def complete(self, file: UploadWriter) -> bytes:
        """Complete a file and return what is in it."""
        await self.store.complete_upload(file.path, file.upload_id, file.parts)
        return await self.store.get(file.path, 1 << 20)


def desk(*policies: Policy, in_flight: int = 4, **rules: int) -> Desk:
    """Return a desk over an empty bucket."""
    bucket = new_bucket(**rules)
    return Desk(bucket, store_of(bucket, *policies), Slots(in_flight))


@pytest.mark.parametrize(
    "chunks",
    [[b""], [b"abc"], [b"abcd"], [b"a", b"bcdefghi"], [b"abcd" * 5, b"e"], [b"x" * 41]],
    ids=repr,
)
async def test_parts_are_what_was_written(chunks: list[bytes]) -> None:
    """However it is cut into chunks, the file is what was written, and an empty one has a part."""
    at = desk()

    async with await at.open() as file:
        for chunk in chunks:
            assert await file.write(chunk) == len(chunk)
        assert keys(at.bucket) == []

    whole = b"".join(chunks)
    assert file.length == len(whole)
    assert len(file.parts) == max(1, -(-len(whole) // 4))
    assert await at.complete(file) == whole


async def test_any_bytes_are_taken() -> None:
    """What holds bytes is copied: who wrote it may change it afterwards."""
    at, chunk = desk(), bytearray(b"abcdef")

    async with await at.open() as file:
        await file.write(chunk)
        chunk[:] = b"......"
        await file.write(memoryview(b"gh"))

    assert await at.complete(file) == b"abcdefgh"


@pytest.mark.parametrize("in_flight", [1, 2, 4])
async def test_memory_of_one_file_is_bounded(in_flight: int) -> None:
    """Parts on the wire and the one that is filled are never more than were allowed."""
    gauge = Gauge()
    at = desk(gauge, in_flight=in_flight)

    async with await at.open(part_size=10) as file:
        for _ in range(100):
            await file.write(b"abc")

    assert gauge.most == 10 * max(1, in_flight - 1)
    assert await at.complete(file) == b"abc" * 100


async def test_memory_of_several_files_is_bounded() -> None:
    """Files that are open together share the parts in flight, and none waits for ever."""
    gauge = Gauge()
    at = desk(gauge, in_flight=3)

    async def write(number: int) -> bytes:
        async with await at.open(f"/t/{number}", part_size=10) as file:
            for _ in range(20):
                await file.write(bytes([number]) * 7)
        return await at.complete(file)

    written = await asyncio.gather(*(write(number) for number in range(8)))

    assert written == [bytes([number]) * 140 for number in range(8)]
    assert gauge.most == 20


async def test_parts_are_sent_at_once() -> None:
    """While one part is on its way the next ones are, too."""
    gate = Gate("put_part")
    at = desk(gate, in_flight=4)
    file = await at.open()

    await file.write(b"abcd" * 3)
    await asyncio.sleep(0)

    assert gate.waiting == 3
    gate.open()
    await file.aclose()
    assert await at.complete(file) == b"abcd" * 3


async def test_failed_part_is_told_and_aborts() -> None:
    """The next write says why a part failed, and leaving the block aborts the upload."""
    at = desk(Faults(Fault("put_part", UnavailableError, skip=1, times=1)), in_flight=2)

    with pytest.raises(UnavailableError):
        async with await at.open() as file:
            for _ in range(10):
                await file.write(b"abcd")

    assert (at.closed, open_uploads(at.bucket)) == ([], [])
    assert not file.is_open


async def test_failed_close_aborts() -> None:
    """A last part that fails aborts the upload when the file is closed."""
    at = desk(Faults(Fault("put_part", UnavailableError)))
    file = await at.open()
    await file.write(b"abc")

    with pytest.raises(UnavailableError):
        await file.aclose()

    assert (at.closed, open_uploads(at.bucket)) == ([], [])


async def test_failed_abort_is_a_note() -> None:
    """The error of the block is the one that is raised, whatever becomes of the abort."""
    at = desk(Faults(Fault("abort_upload", UnavailableError)))

    with pytest.raises(ValueError, match="mine") as caught:
        async with await at.open() as file:
            raise ValueError("mine")

    assert "could not be aborted" in caught.value.__notes__[0]
    assert not file.is_open


async def test_abort_leaves_no_part() -> None:
    """A part that was under way when the file was aborted is not left on the store."""
    gate = Gate("put_part")
    at = desk(gate)
    file = await at.open()
    await file.write(b"abcd" * 2)
    await asyncio.sleep(0)

    await file.abort()
    gate.open()

    assert at.bucket.uploads.open == {}
    with pytest.raises(OptionError, match="closed"):
        await file.write(b"more")


async def test_abort_after_close_changes_nothing() -> None:
    """A closed file is the committer's: aborting it does not touch the upload."""
    at = desk()
    async with await at.open() as file:
        await file.write(b"abc")

    await file.abort()
    await file.aclose()

    assert at.closed == [file]
    assert await at.complete(file) == b"abc"


async def test_cancelled_write_spoils_the_file() -> None:
    """Nobody knows how much of a write that was cancelled is in the file: it cannot be closed."""
    gate = Gate("put_part")
    at = desk(gate, in_flight=2)
    file = await at.open()
    writing = asyncio.create_task(file.write(b"abcd" * 3))
    await asyncio.sleep(0.01)

    writing.cancel()
    await asyncio.wait([writing])
    gate.open()

    with pytest.raises(OptionError, match="cancelled in progress"):
        await file.write(b"more")
    with pytest.raises(OptionError, match="cancelled in progress"):
        await file.aclose()
    assert open_uploads(at.bucket) == []


async def test_too_many_parts() -> None:
    """A stream that outgrows an upload says which part size to set."""
    at = desk(most_parts=3)

    with pytest.raises(RejectedError, match=r"3 parts of 4 bytes.*fs\.s3a\.multipart\.size"):
        async with await at.open() as file:
            await file.write(b"abcd" * 3 + b"e")
            await file.aclose()

    assert open_uploads(at.bucket) == []


def test_part_size_of_a_known_length() -> None:
    """Parts grow with a file that would have too many, and what no upload can hold is refused."""
    store = store_of(new_bucket(most_parts=10, largest_part=4 << 20))

    assert part_size_for(store, 40, 4) == 4
    assert part_size_for(store, 41, 4) == 1 << 20
    assert part_size_for(store, (10 << 20) + 1, 4) == 2 << 20
    with pytest.raises(RejectedError, match="more than 10 parts"):
        part_size_for(store, (40 << 20) + 1, 4)


def test_part_size_that_the_store_refuses() -> None:
    """A part size that the store does not take is refused before anything is sent."""
    store = store_of(new_bucket())

    check_part_size(store, 4)
    with pytest.raises(OptionError, match=r"fs\.s3a\.multipart\.size is 3 bytes"):
        check_part_size(store, 3)


@pytest.mark.parametrize(
    "length, expected",
    [(0, [(1, 0, 0)]), (4, [(1, 0, 4)]), (9, [(1, 0, 4), (2, 4, 4), (3, 8, 1)])],
)
def test_ranges(length: int, expected: list[tuple[int, int, int]]) -> None:
    """The parts of a file cover it once; an empty file has one."""
    assert list(ranges(length, 4)) == expected


def test_no_part_in_memory() -> None:
    """A file needs room for one part."""
    with pytest.raises(OptionError, match="at least 1"):
        Slots(0)


async def test_cancelled_part_is_missed() -> None:
    """A part whose sending somebody cancelled, as a loop that ends does, is no part of a file."""
    gate = Gate("put_part")
    at = desk(gate)
    before = asyncio.all_tasks()
    file = await at.open()
    await file.write(b"abcd" * 2)
    await asyncio.sleep(0)
    (asyncio.all_tasks() - before).pop().cancel()
    gate.open()

    with pytest.raises(OptionError, match="sending a block was cancelled"):
        await file.aclose()

    assert (at.closed, open_uploads(at.bucket)) == ([], [])

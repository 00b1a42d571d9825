"""Append blobs by azure-storage-blob: appends, conditions, seal, logs of several writers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobType
from azure.storage.blob.aio import BlobClient, BlobServiceClient, ContainerClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.witness.sdk import answer_of


@pytest.fixture
async def container(adls_emulator: AdlsEmulator) -> AsyncIterator[ContainerClient]:
    """Yield the SDK's client of a new container."""
    account = (adls_emulator.url, adls_emulator.key)
    async with BlobServiceClient(*account, retry_total=0, max_block_size=1 << 19) as service:
        yield await service.create_container("data")


@pytest.fixture
async def log(container: ContainerClient) -> BlobClient:
    """Return the SDK's client of a new append blob."""
    blob = container.get_blob_client("d/log")
    await blob.create_append_blob(metadata={"k": "v"})
    return blob


async def test_blocks_are_appended(log: BlobClient) -> None:
    """Each answer has the offset and the count; the properties have both at the end."""
    answers = [await log.append_block(data) for data in (b"one\n", b"two\n", b"three\n")]
    found = await log.get_blob_properties()

    assert [answer["blob_append_offset"] for answer in answers] == ["0", "4", "8"]
    assert [answer["blob_committed_block_count"] for answer in answers] == [1, 2, 3]
    assert found.blob_type == BlobType.APPENDBLOB
    assert (found.append_blob_committed_block_count, found.size) == (3, 14)
    assert (found.etag, found.metadata) == (answers[-1]["etag"], {"k": "v"})
    assert await (await log.download_blob()).readall() == b"one\ntwo\nthree\n"


async def test_upload_of_a_whole_append_blob(container: ContainerClient) -> None:
    """``upload_blob`` makes the blob, and appends to it if it is there."""
    for data in (b"one\n", b"two\n"):
        await container.upload_blob("log", data, blob_type=BlobType.APPENDBLOB)
    large = b"." * (5 << 18)
    blob = await container.upload_blob("large", large, blob_type=BlobType.APPENDBLOB)

    found = await blob.get_blob_properties()
    log = await container.download_blob("log")
    assert await log.readall() == b"one\ntwo\n"
    assert (found.size, found.append_blob_committed_block_count) == (5 << 18, 3)


async def test_conditions_on_the_size(log: BlobClient) -> None:
    """A block at another offset, or beyond the largest size, is refused with 412."""
    await log.append_block(b"one", appendpos_condition=0, maxsize_condition=3)
    conditions: list[dict[str, Any]] = [{"appendpos_condition": 0}, {"maxsize_condition": 5}]
    for condition in conditions:
        with pytest.raises(HttpResponseError) as refused:
            await log.append_block(b"two", **condition)
        assert refused.value.status_code == 412
    await log.append_block(b"two", appendpos_condition=3, maxsize_condition=6)

    assert await (await log.download_blob()).readall() == b"onetwo"


async def test_conditions_on_the_etag_and_the_lease(log: BlobClient) -> None:
    """A block for another etag is refused, and one without the lease."""
    etag = (await log.append_block(b"one"))["etag"]
    same: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    await log.append_block(b"two", **same)
    with pytest.raises(ResourceModifiedError):
        await log.append_block(b"x", **same)
    lease = await log.acquire_lease()
    with pytest.raises(HttpResponseError) as missing:
        await log.append_block(b"x")
    await log.append_block(b"!", lease=lease)

    assert answer_of(missing.value) == (412, "LeaseIdMissing")
    assert await (await log.download_blob()).readall() == b"onetwo!"


async def test_blob_of_another_kind_is_refused(container: ContainerClient) -> None:
    """A block blob takes no blocks at its end."""
    blob = await container.upload_blob("a", b"data")
    with pytest.raises(ResourceExistsError) as refused:
        await blob.append_block(b"x")

    assert answer_of(refused.value) == (409, "InvalidBlobType")


async def test_seal(log: BlobClient) -> None:
    """A sealed blob says so, and takes no more blocks."""
    await log.append_block(b"one")
    sealed = await log.seal_append_blob()
    with pytest.raises(HttpResponseError) as refused:
        await log.append_block(b"x")

    assert sealed["blob_sealed"]
    assert answer_of(refused.value) == (409, "BlobIsSealed")


async def test_block_from_another_blob(container: ContainerClient, log: BlobClient) -> None:
    """The service reads the block itself, in a range."""
    source = await container.upload_blob("source", b"0123456789")
    added = await log.append_block_from_url(source.url, source_offset=2, source_length=3)

    assert added["blob_committed_block_count"] == 1
    assert await (await log.download_blob()).readall() == b"234"


async def test_several_writers_lose_nothing(log: BlobClient) -> None:
    """Blocks of writers that know nothing of each other are each there once and whole."""
    lines = [f"{writer}-{number}\n".encode() for writer in range(5) for number in range(10)]
    await asyncio.gather(*(log.append_block(line) for line in lines))

    found = await (await log.download_blob()).readall()
    assert sorted(found.splitlines(keepends=True)) == sorted(lines)

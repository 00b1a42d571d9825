"""Blocks of a flat account, rule by rule as the service has them, and Azure's own SDK beside us."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobType, ContentSettings
from azure.storage.blob.aio import BlobLeaseClient, BlobServiceClient

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    PreconditionError,
    RejectedError,
    UnavailableError,
)
from asynccommit.runtime.host import this_host
from asynccommit.stores.adls.flat.client import LATE
from asynccommit.stores.adls.flat.store import FlatBlobStore
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator

FS = "data"
URL = f"abfs://{FS}@devstoreaccount1.dfs.core.windows.net/"
TOKEN = "0b0e7c6e-0000-4000-8000-000000000001"
WEEK = 7 * 86_400.0


@dataclass
class Place:
    """A flat account: the store, Azure's client of it, and its clock."""

    store: FlatBlobStore
    client: BlobServiceClient
    moment: list[float]
    options: dict[str, str]

    def blob(self, name: str) -> Any:
        """Return Azure's client of a blob."""
        return self.client.get_blob_client(FS, name)

    async def begin(self, path: str, *datas: bytes) -> tuple[str, list[Part]]:
        """Begin an upload with its blocks."""
        upload_id = await self.store.create_upload(
            path, token=TOKEN, owner="12345678-0001_m_000003_7"
        )
        numbered = enumerate(datas, 1)
        return upload_id, [await self.store.put_part(path, upload_id, *one) for one in numbered]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """An empty container of a flat account, whose clock can be turned on."""
    moment = [0.0]
    real = this_host()
    host = replace(real, now=lambda: real.now() + moment[0], clock=lambda: real.clock() + moment[0])
    async with AdlsEmulator(hns=False, filesystems=[FS], host=host) as emulator:
        options = {"connection_string": emulator.connection_string}
        store = FlatBlobStore(parse_url(URL), options, environ={}, host=host)
        client = BlobServiceClient.from_connection_string(emulator.connection_string)
        yield Place(store, client, moment, options)
        await client.close()
        await store.aclose()


async def test_ids_hold_job_and_attempt_and_have_one_length(place: Place) -> None:
    """Whoever finds the blocks, by any client, sees whose they are."""
    first, _ = await place.begin("/f", b"one", b"two")
    short = await place.store.create_upload("/f", owner="short")
    await place.store.put_part("/f", short, 1, b"other")

    _, blocks = await place.blob("f").get_block_list("uncommitted")

    assert first.startswith("12345678-0001_m_000003_7-")
    assert sorted(block.id for block in blocks) == sorted(
        [f"{first}.00001", f"{first}.00002", f"{short}.00001"]
    )
    assert len({len(block.id) for block in blocks}) == 1


async def test_a_list_sends_type_and_metadata(place: Place) -> None:
    """A block list replaces what the blob had, so it sends all, and only its own blocks."""
    old = ContentSettings(content_type="text/plain")
    await place.blob("f").upload_blob(b"old", metadata={"mine": "1"}, content_settings=old)
    await place.blob("f").stage_block("x" * 47, b"a stranger's")
    etag = (await place.store.head("/f")).etag
    upload_id, parts = await place.begin("/f", b"new")
    made = await place.store.complete_upload("/f", upload_id, parts, etag=etag, token=TOKEN)
    found = await place.blob("f").get_blob_properties()

    assert await (await place.blob("f").download_blob()).readall() == b"new"
    assert found.content_settings.content_type == "application/octet-stream"
    assert found.metadata == {"asynccommit_token": TOKEN}
    assert (await place.store.head("/f"))[:4] == (made.path, made.kind, 3, made.etag)


async def test_whoever_puts_a_blob_discards_the_blocks(place: Place) -> None:
    """A lost race is never a success, and is told as blocks that are gone."""
    upload_id, parts = await place.begin("/f", b"mine")
    await place.blob("f").upload_blob(b"another's")
    await place.blob("f").delete_blob()

    with pytest.raises(NotFoundError, match="another writer has used the name"):
        await place.store.complete_upload("/f", upload_id, parts, overwrite=False, token=TOKEN)
    assert await place.store.completed("/f", parts, TOKEN) is None


async def test_a_repeated_list_is_told_by_its_token(place: Place) -> None:
    """The second one finds no blocks or a blob; the token says that it is done."""
    upload_id, parts = await place.begin("/f", b"mine")
    made = await place.store.complete_upload("/f", upload_id, parts, overwrite=False, token=TOKEN)

    with pytest.raises((NotFoundError, ExistsError)):
        await place.store.complete_upload("/f", upload_id, parts, overwrite=False, token=TOKEN)
    found = await place.store.completed("/f", parts, TOKEN)
    assert found is not None
    assert found.etag == made.etag


async def test_a_list_that_is_late_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service takes a block list for the time that its signature says, and not longer."""
    upload_id, parts = await place.begin("/f", b"mine")
    send = place.store._client._send

    async def late(method: str, url: str, *args: Any, **options: Any) -> Any:
        place.moment[0] += LATE + 2 if "comp=blocklist" in url and method == "PUT" else 0
        return await send(method, url, *args, **options)

    monkeypatch.setattr(place.store._client, "_send", late)
    with pytest.raises(UnavailableError, match="came late"):
        await place.store.complete_upload("/f", upload_id, parts, overwrite=False)

    with pytest.raises(NotFoundError):
        await place.store.head("/f")


async def test_a_clock_that_is_wrong_moves_no_bound(place: Place) -> None:
    """The moment in a signature is told by the service's clock, not by this machine's."""
    real = this_host()
    ahead = replace(real, now=lambda: real.now() + 800)
    other = FlatBlobStore(parse_url(URL), place.options, environ={}, host=ahead)
    await other.list("/")
    there = other._client._service_time()
    await other.aclose()

    assert real.now() - 5 < there <= real.now()


async def test_blocks_of_a_stranger_with_longer_ids_are_named(place: Place) -> None:
    """The service wants ids of one length for one name: the error names what is in the way."""
    await place.blob("f").stage_block("a-stranger", b"left over")

    with pytest.raises(RejectedError, match="ids of another length, as YS1zdHJhbmdlcg=="):
        await place.begin("/f", b"mine")


async def test_a_week_after_the_last_block_all_are_gone(place: Place) -> None:
    """A job that commits later must upload again."""
    upload_id, parts = await place.begin("/f", b"mine")
    assert [one.upload_id for one in (await place.store.list_uploads("/")).entries] == [upload_id]
    place.moment[0] += WEEK + 1

    with pytest.raises(NotFoundError, match="a week has passed"):
        await place.store.complete_upload("/f", upload_id, parts)
    assert (await place.store.list_uploads("/")).entries == ()


async def test_an_abort_makes_nothing_visible(place: Place) -> None:
    """Blocks stay where they are: no request deletes them alone."""
    upload_id, _ = await place.begin("/f", b"mine")
    await place.store.abort_upload("/f", upload_id)

    blobs = place.client.get_container_client(FS).list_blobs()
    assert [blob.name async for blob in blobs] == []
    assert (await place.store.list_parts("/f", upload_id)).entries[0][0] == 1


async def test_a_lease_on_the_blob_refuses_the_list(place: Place) -> None:
    """Somebody holds the blob: the error says so, and the blob stays."""
    await place.blob("f").upload_blob(b"held")
    upload_id, parts = await place.begin("/f", b"mine")
    await BlobLeaseClient(place.blob("f")).acquire(-1)

    with pytest.raises(PreconditionError, match="somebody holds a lease"):
        await place.store.complete_upload("/f", upload_id, parts, token=TOKEN)
    assert await place.store.get("/f", 10) == b"held"


async def test_a_blob_of_another_type_refuses_blocks(place: Place) -> None:
    """An append blob has the name: no block is staged, and it stays."""
    await place.blob("f").upload_blob(b"log", blob_type=BlobType.APPENDBLOB)

    with pytest.raises(PreconditionError, match="a blob of another type has this name"):
        await place.begin("/f", b"mine")
    assert await place.store.get("/f", 10) == b"log"


async def test_sdk_commits_what_the_store_has_staged(place: Place) -> None:
    """The blocks are those of the service: another client can make a blob of them."""
    upload_id, _ = await place.begin("/f", b"one", b"two")
    blocks = [BlobBlock(f"{upload_id}.{number:05}") for number in (2, 1)]
    await place.blob("f").commit_block_list(blocks)

    assert await place.store.get("/f", 10) == b"twoone"
    with pytest.raises(HttpResponseError):
        await place.blob("g").commit_block_list(blocks)


async def test_a_file_without_bytes_is_known_by_a_mark(place: Place) -> None:
    """No block may be empty: a mark stands for the upload, and no list names it."""
    upload_id, parts = await place.begin("/f", b"")
    listed = await place.store.list_parts("/f", upload_id)
    await place.store.complete_upload("/f", upload_id, parts, overwrite=False, token=TOKEN)

    assert [(number, size) for number, _, size in listed.entries] == [(1, 0)]
    assert await place.store.get("/f", 10) == b""
    with pytest.raises(NotFoundError):
        await place.store.complete_upload("/f", upload_id, parts, token=TOKEN)


async def test_a_copy_is_known_by_its_source(place: Place) -> None:
    """A copy has an etag of its own here; once it is written again it is none."""
    made = await place.store.put("/a b", b"content")
    await place.store.copy_if("/a b", "/c", made.etag or "")

    assert await place.store.copied_from("/c") == "/a b"
    assert await place.store.copied_from("/a b") is None
    await place.store.put("/c", b"content")
    assert await place.store.copied_from("/c") is None

"""gcloud-aio-storage, as asyncio programs use it: objects by its own session or one it is given."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from gcloud.aio.storage import Storage

from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from tests.witness.gcs import HARD_NAMES, fault_of


@pytest.fixture
async def there(gcs_here: GcsEmulator) -> AsyncIterator[Storage]:
    """Yield the client, with a session of its own."""
    async with Storage(api_root=gcs_here.endpoint) as opened:
        yield opened


async def move(storage: Storage, source: str, dest: str, **params: Any) -> dict[str, Any]:
    """Move an object: the client has no method for it, but a session."""
    url = f"{storage._api_root_read}/data/o/{source}/moveTo/o/{dest}"
    answer = await storage.session.post(url, headers={}, params=params)
    found: dict[str, Any] = await answer.json()
    return found


@pytest.mark.parametrize("name", HARD_NAMES)
async def test_small_object(there: Storage, name: str) -> None:
    """Bytes alone are uploaded, listed, looked at, read and deleted, whatever the name."""
    made = await there.upload("data", name, b"hello", content_type="text/x-test")
    listed = await there.list_objects("data")
    found = await there.download_metadata("data", name)

    assert made == found
    assert (found["name"], found["size"], found["crc32c"]) == (name, "5", "mnG7TA==")
    assert found["contentType"] == "text/x-test"
    assert [item["name"] for item in listed["items"]] == [name]
    assert await there.download("data", name) == b"hello"
    assert await there.delete("data", name) == ""
    assert "items" not in await there.list_objects("data")


async def test_object_with_metadata(there: Storage) -> None:
    """What is said of an object goes in the same request as the object, and is kept."""
    said = {"metadata": {"k": "v", "number": 1}, "Cache-Control": "no-store"}
    await there.upload("data", "file", b"12345", metadata=said)
    found = await there.download_metadata("data", "file")

    assert (found["metadata"], found["cacheControl"]) == ({"k": "v", "number": "1"}, "no-store")


async def test_object_in_a_session(gcs_here: GcsEmulator, there: Storage) -> None:
    """A large object is uploaded in a session, with one request for all its bytes."""
    data = os.urandom(700_001)
    options: dict[str, Any] = {"metadata": {"metadata": {"k": "v"}}, "force_resumable_upload": True}
    made = await there.upload("data", "large", data, **options)

    assert (made["size"], made["metadata"]) == ("700001", {"k": "v"})
    assert await there.download("data", "large") == data
    assert gcs_here.weather.requests["upload"] == 2


@pytest.mark.parametrize(
    "kind, stored", [("before", 0), ("after", 5), ("busy", 0)], ids=["before", "after", "busy"]
)
async def test_session_that_meets_an_error(
    gcs_here: GcsEmulator,
    there: Storage,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    stored: int,
) -> None:
    """It asks how far the session is and takes the answer for the end: the object may be missing.

    The request that it sends again says that it only asks, though it has all the bytes.
    """
    waits: list[float] = []

    async def no_wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("gcloud.aio.storage.storage.sleep", no_wait)
    more = {"code": "backendError"} if kind == "busy" else {}
    gcs_here.weather.add(fault_of(kind.replace("busy", "before"), "upload", skip=1, **more))
    made = await there.upload("data", "file", b"12345", force_resumable_upload=True)
    listed = await there.list_objects("data")

    assert waits == [1.0]
    assert (made is None) == (not stored)
    assert [item["size"] for item in listed.get("items", [])] == ([str(stored)] if stored else [])


async def test_compressed_object(there: Storage) -> None:
    """What was stored compressed is read as it was before, unless it is wanted compressed."""
    await there.upload("data", "file", b"12345" * 100, zipped=True)
    found = await there.download_metadata("data", "file")
    packed = await there.download("data", "file", headers={"Accept-Encoding": "gzip"})

    assert found["contentEncoding"] == "gzip"
    assert gzip.decompress(packed) == b"12345" * 100


async def test_ranges_and_streams(there: Storage, tmp_path: Path) -> None:
    """A part of an object is read, and a whole one bit by bit or into a file."""
    await there.upload("data", "file", b"0123456789")
    part = await there.download("data", "file", headers={"Range": "bytes=3-5"})
    async with await there.download_stream("data", "file") as stream:
        bits = [await stream.content.read(4) for _ in range(3)]
    await there.download_to_filename("data", "file", str(tmp_path / "local"))
    await there.upload_from_filename("data", "again", str(tmp_path / "local"))

    assert (part, b"".join(bits)) == (b"345", b"0123456789")
    assert await there.download("data", "again") == b"0123456789"


async def test_list(there: Storage) -> None:
    """Listings by pages, prefix, delimiter and pattern."""
    names = [f"d/{number}" for number in range(5)]
    for name in [*names, "d/e/1", "other"]:
        await there.upload("data", name, b"1")
    bucket = there.get_bucket("data")
    page = await there.list_objects("data", params={"maxResults": "2", "prefix": "d/"})
    token = {"maxResults": "2", "prefix": "d/", "pageToken": page["nextPageToken"]}
    second = await there.list_objects("data", params=token)

    assert [item["name"] for item in page["items"] + second["items"]] == names[:4]
    assert await bucket.list_blobs("d/", delimiter="/") == [*names, "d/e/"]
    assert await bucket.list_blobs(match_glob="d/*/1") == ["d/e/1"]
    assert await bucket.list_blobs("nowhere/") == []


async def test_copy(there: Storage) -> None:
    """An object is copied, in several calls if the service wants it so."""
    await there.upload("data", "large", b"." * 2_500_000)
    done = await there.copy("data", "large", "tree", new_name="d/copy")
    steps = await there.copy(
        "data", "large", "tree", new_name="d/slow", params={"maxBytesRewrittenPerCall": "1048576"}
    )

    assert (done["done"], done["totalBytesRewritten"]) == (True, "2500000")
    assert steps["done"]
    for name in ("d/copy", "d/slow"):
        assert (await there.download_metadata("tree", name))["size"] == "2500000"


async def test_compose_and_patch(there: Storage) -> None:
    """Objects are put together, and what is said of one is changed."""
    for name in ("a", "b"):
        await there.upload("data", name, name.encode())
    made = await there.compose("data", "c", ["a", "b"], content_type="text/x-test")
    changed = await there.patch_metadata("data", "c", {"metadata": {"k": "v"}})

    assert (made["componentCount"], made["contentType"]) == (2, "text/x-test")
    assert (changed["metadata"], changed["metageneration"]) == ({"k": "v"}, "2")
    assert await there.download("data", "c") == b"ab"


async def test_conditions(there: Storage) -> None:
    """Conditions are given as parameters, and refused as they should be."""
    made = await there.upload("data", "file", b"1", parameters={"ifGenerationMatch": "0"})
    wrong = {"ifGenerationMatch": str(int(made["generation"]) + 1)}
    asked: list[Callable[[], Awaitable[Any]]] = [
        lambda: there.upload("data", "file", b"2", parameters={"ifGenerationMatch": "0"}),
        lambda: there.delete("data", "file", params=wrong),
        lambda: there.copy("data", "file", "data", new_name="file", params=wrong),
        lambda: there.patch_metadata("data", "file", {}, params=wrong),
        lambda: move(there, "file", "other", ifSourceGenerationMatch=wrong["ifGenerationMatch"]),
    ]
    for question in asked:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await question()
        assert caught.value.status == 412

    assert (await there.download_metadata("data", "file"))["generation"] == made["generation"]


async def test_eight_uploads_of_one_name(there: Storage) -> None:
    """Of uploads that want a free name, at one time, one wins."""
    free = {"ifGenerationMatch": "0"}
    uploads = [there.upload("data", "a", b"1", parameters=dict(free)) for _ in range(8)]
    done = await asyncio.gather(*uploads, return_exceptions=True)

    assert sum(isinstance(one, dict) for one in done) == 1
    assert {one.status for one in done if isinstance(one, aiohttp.ClientResponseError)} == {412}


async def test_eight_moves_of_one_object(there: Storage) -> None:
    """Of moves of one object, at one time, one wins; the others find no source."""
    await there.upload("data", "a", b"12345")
    moves = [move(there, "a", f"b{number}") for number in range(8)]
    done = await asyncio.gather(*moves, return_exceptions=True)
    (won,) = [one for one in done if isinstance(one, dict)]
    listed = await there.list_objects("data")

    assert {one.status for one in done if isinstance(one, aiohttp.ClientResponseError)} == {404}
    assert [item["name"] for item in listed["items"]] == [won["name"]]


async def test_move_whose_answer_is_lost(gcs_here: GcsEmulator, there: Storage) -> None:
    """It sends nothing again, and its error does not tell that the object has moved."""
    await there.upload("data", "a", b"12345")
    gcs_here.weather.add(fault_of("cut", "move"))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await move(there, "a", "b")

    assert await there.download("data", "b") == b"12345"


async def test_delete_whose_answer_is_lost(gcs_here: GcsEmulator, there: Storage) -> None:
    """The HTTP client below sends a deletion again by itself, and finds nothing left."""
    await there.upload("data", "a", b"12345")
    gcs_here.weather.add(fault_of("cut", "delete"))
    with pytest.raises(aiohttp.ClientResponseError) as caught:
        await there.delete("data", "a")

    assert caught.value.status == 404
    assert gcs_here.weather.requests["delete"] == 2


async def test_missing(there: Storage) -> None:
    """What is not there is not found, whatever is asked."""
    bucket = there.get_bucket("data")
    asked: list[Callable[[], Awaitable[Any]]] = [
        lambda: there.download("data", "nowhere"),
        lambda: there.download_metadata("data", "nowhere"),
        lambda: there.delete("data", "nowhere"),
        lambda: there.copy("data", "nowhere", "data", new_name="b"),
        lambda: there.get_bucket_metadata("nowhere"),
        lambda: there.list_objects("nowhere"),
    ]
    for question in asked:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await question()
        assert caught.value.status == 404

    assert not await bucket.blob_exists("nowhere")


async def test_buckets(there: Storage) -> None:
    """Buckets are listed and looked at."""
    listed = [bucket.name for bucket in await there.list_buckets("project")]

    assert listed == ["data", "tree", "versions"]
    assert (await there.get_bucket_metadata("tree"))["hierarchicalNamespace"] == {"enabled": True}


async def test_session_of_the_caller(gcs_here: GcsEmulator) -> None:
    """It works by a session that it is given, and by the environment alone."""
    async with aiohttp.ClientSession() as session:
        given: Any = session  # its types are those of the same library for requests
        storage = Storage(session=given, api_root=gcs_here.endpoint)
        await storage.upload("data", "a", b"12345")
        blob = await storage.get_bucket("data").get_blob("a")

        assert (blob.size, await blob.download()) == (5, b"12345")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", gcs_here.environ["STORAGE_EMULATOR_HOST"])
        async with Storage() as storage:
            assert await storage.download("data", "a") == b"12345"

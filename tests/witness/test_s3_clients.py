"""Clients of other hands beside our store, on moto and ministack: each sees what the other wrote.

That is aiobotocore, which is Amazon's own client, and pyarrow's, which is Amazon's for C++.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from asynccommit.errors import NotFoundError
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.tree import tree_pages
from tests.support.contract import NAMES
from tests.support.s3_servers import (
    KEY,
    REGION,
    SECRET,
    ministack_url,
    moto_url,
    new_bucket,
    open_s3,
)

__all__ = ["ministack_url", "moto_url"]

NAMED = [name for name in NAMES if name != "new\nline"]  # which moto finds no way to
FULL = b"x" * (5 << 20)  # the smallest part that ministack and S3 take
LIMIT = 1 << 24


@pytest.fixture(params=["moto", "ministack"])
def url(request: pytest.FixtureRequest) -> str:
    """Return the URL of a server."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def bucket(url: str) -> str:
    """Return the name of a new bucket."""
    return new_bucket(url)


@pytest.fixture
async def store(url: str, bucket: str) -> AsyncIterator[S3Store]:
    """Yield our store."""
    opened = open_s3(url, bucket)
    yield opened
    await opened.aclose()


@pytest.fixture
async def client(url: str) -> AsyncIterator[Any]:
    """Yield aiobotocore's client."""
    session = importlib.import_module("aiobotocore.session").get_session()
    opened = session.create_client(
        "s3",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    async with opened as client:
        yield client


@pytest.fixture
def arrow(url: str) -> Iterator[Any]:
    """Yield pyarrow's client."""
    fs = pytest.importorskip("pyarrow.fs")
    if not hasattr(fs, "S3FileSystem"):
        pytest.skip("needs a pyarrow with S3FileSystem")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region=REGION,
            scheme="http",
            endpoint_override=url.partition("://")[2],
        )


async def test_aiobotocore_finds_what_we_put(store: S3Store, client: Any, bucket: str) -> None:
    """Under the same key, with the same bytes, mark and etag; every hostile name is the same."""
    for name in NAMED:
        made = await store.put(f"/d/{name}", name.encode(), token="mark")
        found = await client.get_object(Bucket=bucket, Key=f"d/{name}")
        async with found["Body"] as body:
            assert await body.read() == name.encode()
        assert found["ETag"] == f'"{made.etag}"'
        assert found["Metadata"] == {"asynccommit-token": "mark"}
    listed = await client.list_objects_v2(Bucket=bucket, Prefix="d/")

    assert sorted(item["Key"] for item in listed["Contents"]) == sorted(f"d/{_}" for _ in NAMED)


async def test_we_find_what_aiobotocore_put(store: S3Store, client: Any, bucket: str) -> None:
    """The same the other way round, and a directory's marker is a directory."""
    for name in NAMED:
        await client.put_object(Bucket=bucket, Key=f"d/{name}", Body=name.encode())
    await client.put_object(Bucket=bucket, Key="d/empty/", Body=b"")
    listed = [info async for page in tree_pages(store, "/d") for info in page]

    assert sorted(info.path for info in listed if not info.is_dir) == sorted(
        f"/d/{name}" for name in NAMED
    )
    assert [info.path for info in listed if info.is_dir] == ["/d/empty"]
    for info in listed:
        if not info.is_dir:
            assert await store.get(info.path, LIMIT) == info.path[3:].encode()
            assert (await store.head(info.path)).etag == info.etag


async def test_we_complete_an_upload_of_aiobotocores(
    store: S3Store, client: Any, bucket: str
) -> None:
    """An upload that another began and fed is found with its parts, and completed here."""
    begun = await client.create_multipart_upload(Bucket=bucket, Key="d/f ü")
    name = begun["UploadId"]
    given = {"Bucket": bucket, "Key": "d/f ü", "UploadId": name}
    sent = [
        await client.upload_part(**given, PartNumber=number, Body=data)
        for number, data in ((1, FULL), (2, b"tail"))
    ]
    [upload] = (await store.list_uploads("/d")).entries
    assert (upload.path, upload.upload_id) == ("/d/f ü", name)

    parts = [part for _, part, _ in (await store.list_parts("/d/f ü", name)).entries]
    assert [part.etag.strip('"') for part in parts] == [_["ETag"].strip('"') for _ in sent]
    assert await store.completed("/d/f ü", parts) is None

    made = await store.complete_upload("/d/f ü", name, parts, overwrite=False)
    found = await store.completed("/d/f ü", parts)
    assert found is not None
    assert (found.etag, found.size) == (made.etag, len(FULL) + 4)
    assert await store.get("/d/f ü", LIMIT) == FULL + b"tail"


async def test_aiobotocore_completes_an_upload_of_ours(
    store: S3Store, client: Any, bucket: str
) -> None:
    """And the other way round; what it completed is known here as made of our parts."""
    name = await store.create_upload("/d/g")
    parts = [
        await store.put_part("/d/g", name, number, data)
        for number, data in ((1, FULL), (2, b"tail"))
    ]
    given = {"Bucket": bucket, "Key": "d/g", "UploadId": name}
    listed = await client.list_parts(**given)
    assert [item["ETag"].strip('"') for item in listed["Parts"]] == [
        part.etag.strip('"') for part in parts
    ]
    numbered = [
        {"PartNumber": number, "ETag": part.etag, "ChecksumCRC32": part.checksum}
        for number, part in enumerate(parts, 1)
    ]
    await client.complete_multipart_upload(**given, MultipartUpload={"Parts": numbered})

    assert await store.completed("/d/g", parts) is not None
    assert await store.completed("/d/g", [Part('"' + "0" * 32 + '"'), parts[1]]) is None


async def test_what_one_aborts_is_gone_for_the_other(
    store: S3Store, client: Any, bucket: str
) -> None:
    """An upload ends once, whoever ends it."""
    mine = await store.create_upload("/d/mine")
    theirs = await client.create_multipart_upload(Bucket=bucket, Key="d/theirs")
    await store.abort_upload("/d/theirs", theirs["UploadId"])
    await client.abort_multipart_upload(Bucket=bucket, Key="d/mine", UploadId=mine)

    assert (await store.list_uploads("/")).entries == ()
    with pytest.raises(NotFoundError):
        await store.abort_upload("/d/mine", mine)


async def test_a_marker_is_read_with_its_length(store: S3Store, client: Any, bucket: str) -> None:
    """What is said of a file that is to come is the metadata that Hadoop looks for."""
    await store.put_marker("/m", {"x-hadoop-s3a-magic-data-length": "17"})
    found = await client.head_object(Bucket=bucket, Key="m")

    assert found["ContentLength"] == 0
    assert found["Metadata"] == {"x-hadoop-s3a-magic-data-length": "17"}


async def test_arrow_reads_what_we_upload(store: S3Store, arrow: Any, bucket: str) -> None:
    """pyarrow's client sees a file of ours once it is completed, with its bytes."""
    name = await store.create_upload("/t/day=1/f")
    parts = [await store.put_part("/t/day=1/f", name, 1, b"data")]
    selector = importlib.import_module("pyarrow.fs").FileSelector
    assert arrow.get_file_info(selector(bucket, recursive=True)) == []

    await store.complete_upload("/t/day=1/f", name, parts)
    found = [_.path for _ in arrow.get_file_info(selector(bucket, recursive=True)) if _.is_file]
    assert found == [f"{bucket}/t/day=1/f"]
    with arrow.open_input_stream(found[0]) as stream:
        assert stream.read() == b"data"


async def test_we_read_what_arrow_uploads(store: S3Store, arrow: Any, bucket: str) -> None:
    """And the other way round: it uploads in parts too."""
    with arrow.open_output_stream(f"{bucket}/t/g") as stream:
        stream.write(b"data" * 1000)
    found = await store.head("/t/g")

    assert found.size == 4000
    assert await store.get("/t/g", LIMIT) == b"data" * 1000
    assert (await store.list_uploads("/")).entries == ()

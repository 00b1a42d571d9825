"""AWS's own client through the proxy: signatures stay valid, and each fault is what it should be.

The server is moto, and a small one where what came is looked at itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import aiobotocore.config
import aiobotocore.session
import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy
from asynccommit.testing.models.fault_rules import AFTER, BEFORE, CUT, CUT_BEFORE, LATE, SLOW, Fault
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.pytest_plugin import MakeProxy
from tests.support.s3_servers import KEY, REGION, SECRET, SMALLEST, moto_url, new_bucket
from tests.testing.emulators.behind import Behind

__all__ = ["moto_url"]

DATA = bytes(range(SMALLEST))
SESSION = aiobotocore.session.get_session()  # keeps the description of the service, which is large


@asynccontextmanager
async def _client(url: str, attempts: int = 1) -> AsyncIterator[Any]:
    """Yield AWS's client; it sends a request so often at most."""
    config = aiobotocore.config.AioConfig(
        retries={"total_max_attempts": attempts, "mode": "standard"}
    )
    async with SESSION.create_client(
        "s3",
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        config=config,
    ) as client:
        yield client


class Bucket:
    """A bucket of moto, seen through a proxy."""

    def __init__(self, client: Any, name: str, proxy: S3Proxy) -> None:
        self.client, self.name, self.proxy = client, name, proxy

    async def begin(self, key: str) -> dict[str, Any]:
        """Begin an upload with one part; return what completes it."""
        where = {"Bucket": self.name, "Key": key}
        begun = await self.client.create_multipart_upload(**where)
        where["UploadId"] = begun["UploadId"]
        part = await self.client.upload_part(**where, PartNumber=1, Body=DATA)
        parts = [{"ETag": part["ETag"], "PartNumber": 1}]
        return {**where, "MultipartUpload": {"Parts": parts}}

    async def keys(self) -> list[str]:
        """Return the keys of the objects that are there."""
        found = await self.client.list_objects_v2(Bucket=self.name)
        return [item["Key"] for item in found.get("Contents", ())]

    async def uploads(self) -> list[str]:
        """Return the keys of the uploads that are open."""
        found = await self.client.list_multipart_uploads(Bucket=self.name)
        return [item["Key"] for item in found.get("Uploads", ())]


@pytest.fixture
async def bucket(moto_url: str, s3_proxy: MakeProxy) -> AsyncIterator[Bucket]:
    """An empty bucket, and a proxy before it."""
    proxy = await s3_proxy(moto_url)
    name = await asyncio.to_thread(new_bucket, moto_url)
    async with _client(proxy.endpoint) as client:
        yield Bucket(client, name, proxy)


def _signature_of(raw: bytes) -> tuple[str, str]:
    """Return the signature that came with a request, and the one that it should have."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    said = headers["Authorization"]
    signed = said.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    kept = {name: value for name, value in headers.items() if name.lower() in signed}
    request = botocore.awsrequest.AWSRequest(
        method=method, url=f"http://{headers['Host']}{target}", headers=kept, data=body
    )
    date = datetime.strptime(headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
    request.context["timestamp"] = date.strftime("%Y%m%dT%H%M%SZ")
    credentials = botocore.credentials.Credentials(KEY, SECRET)
    auth = botocore.auth.S3SigV4Auth(credentials, "s3", REGION)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return said.partition("Signature=")[2], auth.signature(text, request)


async def test_signatures_stay_valid(s3_proxy: MakeProxy) -> None:
    """What comes to the server has the signature that it should have, odd keys and all."""
    async with Behind(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as behind:
        proxy = await s3_proxy(behind.url)
        async with _client(proxy.endpoint) as client:
            key = "day=1/a b+c%/é/~'()*!"
            await client.put_object(Bucket="data", Key=key, Body=DATA, Metadata={"a": " 1  2 "})
            await client.head_object(Bucket="data", Key=key)
            await client.delete_object(Bucket="data", Key=key)
        pairs = [_signature_of(raw) for raw in behind.came]

        assert len(pairs) == 3
        assert all(said == right for said, right in pairs)
        assert b"/data/day%3D1/a%20b%2Bc%25/%C3%A9/~" in behind.came[0]


async def test_what_is_done_through_it_is_done(bucket: Bucket) -> None:
    """Objects, listings, copies, deletions and uploads, each counted by its operation."""
    client, where = bucket.client, {"Bucket": bucket.name}
    large = DATA * 4096 * 8
    await client.put_object(**where, Key="a b+c/é=1", Body=large)
    found = await client.get_object(**where, Key="a b+c/é=1")
    body = await found["Body"].read()
    source = {**where, "Key": "a b+c/é=1"}
    await client.copy_object(**where, Key="copy", CopySource=source)
    await client.complete_multipart_upload(**await bucket.begin("whole"))
    begun = await bucket.begin("aborted")
    del begun["MultipartUpload"]
    parts = await client.list_parts(**begun)
    await client.abort_multipart_upload(**begun)
    keys = await bucket.keys()
    gone = {"Objects": [{"Key": "copy"}, {"Key": "nothing"}]}
    await client.delete_objects(**where, Delete=gone)
    await client.delete_object(**where, Key="whole")

    assert body == large
    assert len(parts["Parts"]) == 1
    assert keys == ["a b+c/é=1", "copy", "whole"]
    assert await bucket.keys() == ["a b+c/é=1"]
    assert await bucket.uploads() == []
    assert bucket.proxy.stats()["forwarded"] == {
        **{"put": 1, "get": 1, "copy": 1, "list": 2, "delete": 1, "delete_many": 1},
        **{"create_upload": 2, "put_part": 2, "complete_upload": 1, "abort_upload": 1},
        **{"list_parts": 1, "list_uploads": 1},
    }


@pytest.mark.parametrize(
    "kind, code, status",
    [
        (BEFORE, "SlowDown", 503),
        (BEFORE, "RequestTimeout", 400),
        (AFTER, "InternalError", 500),
        (AFTER, "ServiceUnavailable", 503),
    ],
)
async def test_client_reads_the_refusal(bucket: Bucket, kind: str, code: str, status: int) -> None:
    """In S3's form, whether the server has done it or not."""
    bucket.proxy.weather.add(Fault(kind, op="put", code=code, times=1))
    with pytest.raises(ClientError) as refused:
        await bucket.client.put_object(Bucket=bucket.name, Key="a", Body=DATA)

    assert refused.value.response["Error"]["Code"] == code
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert await bucket.keys() == (["a"] if kind == AFTER else [])


async def test_client_reads_an_error_under_success(bucket: Bucket) -> None:
    """S3 may begin its answer to a completion, and then fail: clients know, and say 500."""
    begun = await bucket.begin("a")
    fault = Fault(AFTER, op="complete_upload", code="InternalErrorInBody", times=1)
    bucket.proxy.weather.add(fault)
    with pytest.raises(ClientError, match="InternalError"):
        await bucket.client.complete_multipart_upload(**begun)

    assert await bucket.keys() == ["a"]


@pytest.mark.parametrize("kind, keys, uploads", [(CUT, ["a"], []), (CUT_BEFORE, [], ["a"])])
async def test_answer_to_a_completion_is_lost(
    bucket: Bucket, kind: str, keys: list[str], uploads: list[str]
) -> None:
    """The client is told of a connection that closed; the effect is there, or it is not."""
    begun = await bucket.begin("a")
    bucket.proxy.weather.add(Fault(kind, op="complete_upload", times=1))
    with pytest.raises(ConnectionClosedError):
        await bucket.client.complete_multipart_upload(**begun)

    assert (await bucket.keys(), await bucket.uploads()) == (keys, uploads)


async def test_completion_that_comes_late(bucket: Bucket) -> None:
    """The client is cut off before anything has happened; then the object is there."""
    begun = await bucket.begin("a")
    fault = Fault(LATE, op="complete_upload", times=1, delay=Latency.from_json(0.3))
    bucket.proxy.weather.add(fault)
    with pytest.raises(ConnectionClosedError):
        await bucket.client.complete_multipart_upload(**begun)
    at_first = dict(bucket.proxy.forwarded)
    bucket.proxy.weather.add(Fault(SLOW, op="list", times=1, delay=Latency.from_json(0.6)))
    await bucket.keys()

    assert "complete_upload" not in at_first
    assert await bucket.keys() == ["a"]
    assert bucket.proxy.forwarded["complete_upload"] == 1


async def test_client_that_tries_again_gets_through(bucket: Bucket) -> None:
    """What is refused or cut off before its effect does no harm to a client with patience."""
    weather = bucket.proxy.weather
    weather.add(Fault(BEFORE, op="put", times=1), Fault(CUT_BEFORE, op="put", times=1))
    async with _client(bucket.proxy.endpoint, attempts=4) as client:
        await client.put_object(Bucket=bucket.name, Key="a", Body=DATA)

    assert weather.requests["put"] == 3
    assert bucket.proxy.forwarded["put"] == 1
    assert await bucket.keys() == ["a"]

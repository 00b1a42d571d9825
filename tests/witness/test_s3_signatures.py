"""Signatures checked by a server: moto looks at them when it is told to."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from asynccommit.errors import DeniedError
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.s3.sign import SigningKeys
from asynccommit.stores.s3.store import S3Store
from tests.support.contract import NAMES
from tests.support.s3_servers import moto_url, new_bucket, open_s3

__all__ = ["moto_url"]

AWKWARD = [name for name in NAMES if name != "new\nline"]
EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}


def iam(url: str, action: str, **given: str) -> ElementTree.Element:
    """Ask the service that knows users and their keys."""
    form = urlencode({"Action": action, "Version": "2010-05-08", **given}).encode()
    asked = urllib.request.Request(url, form)
    # That it is this service is told by nothing else; nobody looks at this signature.
    scope = "Credential=AKID/20260101/us-east-1/iam/aws4_request"
    asked.add_header("authorization", f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0")
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return ElementTree.fromstring(answer.read())


def check_all_but(url: str, first: str) -> None:
    """Have moto look at no signature of as many requests, and then at all."""
    asked = urllib.request.Request(f"{url}/moto-api/reset-auth", first.encode())
    asked.add_header("content-type", "text/plain")
    urllib.request.urlopen(asked, timeout=30).close()


@pytest.fixture
def keys(moto_url: str) -> Iterator[SigningKeys]:
    """Keys of a user that may do anything with objects, while moto looks at signatures."""
    iam(moto_url, "CreateUser", UserName="writer")
    policy = json.dumps({"Version": "2012-10-17", **EVERYTHING})
    iam(moto_url, "PutUserPolicy", UserName="writer", PolicyName="p", PolicyDocument=policy)
    made = iam(moto_url, "CreateAccessKey", UserName="writer")
    found = {one.tag.rpartition("}")[2]: one.text or "" for one in made.iter()}
    try:
        yield SigningKeys(found["AccessKeyId"], found["SecretAccessKey"])
    finally:
        check_all_but(moto_url, "inf")
        iam(moto_url, "DeleteAccessKey", UserName="writer", AccessKeyId=found["AccessKeyId"])
        iam(moto_url, "DeleteUserPolicy", UserName="writer", PolicyName="p")
        iam(moto_url, "DeleteUser", UserName="writer")


@pytest.fixture
def bucket(moto_url: str, keys: SigningKeys) -> str:
    """A bucket whose requests have to be signed rightly."""
    assert keys  # which moto would not make any more
    name = new_bucket(moto_url)
    check_all_but(moto_url, "0")
    return name


async def use(store: S3Store, name: str) -> None:
    """Send every kind of request about one name."""
    path = f"/d {name}/{name}"
    token = "0b0e7c6e-0000-4000-8000-000000000001"
    made = await store.put(path, b"data", overwrite=False, token=token)
    assert (await store.head(path)).token == token
    assert await store.get(path, 10) == b"data"
    upload_id = await store.create_upload(path, token=token)
    part = await store.put_part(path, upload_id, 1, b"part")
    assert [one.path for one in (await store.list_uploads(f"/d {name}")).entries] == [path]
    assert len((await store.list_parts(path, upload_id)).entries) == 1
    await store.complete_upload(path, upload_id, [part], etag=made.etag)
    assert await store.completed(path, [part], token)
    await store.abort_upload(path, await store.create_upload(path))
    await store.copy(path, f"{path}+")
    assert len((await store.list(f"/d {name}")).entries) == 2
    assert await store.delete_many([Info(path, Kind.FILE), Info(f"{path}+", Kind.FILE)]) == [
        None,
        None,
    ]


@pytest.mark.parametrize("library", ["pyreqwest", "aiohttp"])
async def test_a_server_finds_our_signatures_right(
    moto_url: str, keys: SigningKeys, bucket: str, library: str
) -> None:
    """Whatever is in a name, as each HTTP library sends it: the server computes the same."""
    store = open_s3(moto_url, bucket, key=keys.access, secret=keys.secret, http_library=library)
    try:
        for name in AWKWARD:
            await use(store, name)
    finally:
        await store.aclose()


async def test_a_wrong_secret_is_told_as_one(moto_url: str, keys: SigningKeys, bucket: str) -> None:
    """The server refuses it, and the error says where secrets come from, and shows none."""
    store = open_s3(moto_url, bucket, key=keys.access, secret="hunter2")
    try:
        with pytest.raises(DeniedError, match=r"SignatureDoesNotMatch.*check secret") as caught:
            await store.put("/f", b"data")
        assert "hunter2" not in str(caught.value)
        with pytest.raises(DeniedError, match="check secret"):
            await store.head("/f")
    finally:
        await store.aclose()
    stranger = open_s3(moto_url, bucket, key="AKIASTRANGER", secret=keys.secret)
    try:
        with pytest.raises(DeniedError, match=r"InvalidAccessKeyId.*check key"):
            await stranger.get("/f", 10)
    finally:
        await stranger.aclose()

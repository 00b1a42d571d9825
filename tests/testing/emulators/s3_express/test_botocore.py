"""The emulator of directory buckets, driven by botocore's own client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from asynccommit.testing import (
    ExpressEmulator,
    ExpressEmulatorThread,
    running_express_emulator,
)
from asynccommit.testing.models.s3.directory_bucket import DirectoryRules

BUCKET, OTHER = "data--use1-az4--x-s3", "more--use1-az4--x-s3"


@pytest.fixture(name="emulator")
def _emulator() -> Iterator[ExpressEmulatorThread]:
    with running_express_emulator(buckets=[BUCKET, OTHER]) as running:
        yield running


def client(endpoint: str, **more: Any) -> Any:
    """Return boto3's client."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}),
        **more,
    )


@pytest.fixture(name="s3")
def _s3(emulator: ExpressEmulatorThread) -> Any:
    return client(emulator.endpoint)


def refused(call: Any, **arguments: Any) -> tuple[int, str]:
    """Return status and code of the refusal."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    said = caught.value.response
    return said["ResponseMetadata"]["HTTPStatusCode"], said["Error"]["Code"]


def put(s3: Any, key: str, body: bytes = b"rows") -> str:
    """Put an object, and return its etag."""
    return str(s3.put_object(Bucket=BUCKET, Key=key, Body=body)["ETag"])


def keys(s3: Any, **more: Any) -> set[str]:
    """Return the listed keys."""
    return {one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET, **more).get("Contents", ())}


def test_a_rename_keeps_what_the_guide_says(s3: Any) -> None:
    """Content, metadata, checksum and date are those of before; the source is gone."""
    s3.put_object(Bucket=BUCKET, Key="a/x", Body=b"rows", Metadata={"who": "me"})
    before = s3.head_object(Bucket=BUCKET, Key="a/x", ChecksumMode="ENABLED")
    s3.rename_object(Bucket=BUCKET, Key="b/y", RenameSource="a/x", DestinationIfNoneMatch="*")
    after = s3.head_object(Bucket=BUCKET, Key="b/y", ChecksumMode="ENABLED")
    assert keys(s3) == {"b/y"}
    for name in ("Metadata", "ChecksumCRC32", "LastModified", "ContentLength"):
        assert before[name] == after[name]


def test_a_rename_replaces_nothing_under_its_condition(s3: Any) -> None:
    """An object at the new name, or a source with another etag, is a 412."""
    put(s3, "x")
    etag = put(s3, "y")
    rename = s3.rename_object
    named = {"Bucket": BUCKET, "Key": "y", "RenameSource": "x"}
    assert refused(rename, **named, DestinationIfNoneMatch="*") == (412, "PreconditionFailed")
    assert refused(rename, **named, SourceIfMatch=etag) == (412, "PreconditionFailed")
    assert refused(rename, **named, SourceIfNoneMatch="*") == (412, "PreconditionFailed")
    rename(**named, DestinationIfMatch=etag)
    assert keys(s3) == {"y"}


def test_a_token_makes_a_repetition_do_nothing(s3: Any) -> None:
    """The same request succeeds again; one with other parameters is refused with 400."""
    named = {"Bucket": BUCKET, "Key": "y", "RenameSource": "x", "ClientToken": "t" * 64}
    put(s3, "x")
    s3.rename_object(**named)
    put(s3, "x", b"others")
    s3.rename_object(**named)
    assert keys(s3) == {"x", "y"}
    said = refused(s3.rename_object, **{**named, "Key": "z"})
    assert said == (400, "IdempotentParameterMismatch")
    said = refused(s3.rename_object, **{**named, "ClientToken": "t" * 65})
    assert said == (400, "InvalidArgument")


def test_a_token_is_forgotten_where_that_is_so() -> None:
    """After the time that no page names, the same token renames what is there now."""
    rules = DirectoryRules(remembers=0, keeps_etag=False)
    with running_express_emulator(buckets=[BUCKET], switches=rules) as emulator:
        s3 = client(emulator.endpoint)
        etag = put(s3, "x")
        named = {"Bucket": BUCKET, "Key": "y", "RenameSource": "x", "ClientToken": "t"}
        s3.rename_object(**named)
        assert s3.head_object(Bucket=BUCKET, Key="y")["ETag"] != etag
        assert refused(s3.rename_object, **named) == (404, "NoSuchKey")


@pytest.mark.parametrize("source, key", [("x/", "y"), ("x", "y/"), (f"{OTHER}/x", "y")])
def test_what_is_not_renamed_is_refused(s3: Any, source: str, key: str) -> None:
    """A key that ends in a slash, and an object of another bucket."""
    put(s3, "x")
    status, _ = refused(s3.rename_object, Bucket=BUCKET, Key=key, RenameSource=source)
    assert status == 400
    assert keys(s3) == {"x"}


def test_a_listing_has_no_order_and_shows_the_directories_of_uploads(s3: Any) -> None:
    """Pages have no order; a directory of nothing but an upload is a common prefix."""
    names = [f"t/{number}" for number in range(30)]
    for name in names:
        put(s3, name)
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="t/open/part")
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="t/", Delimiter="/", PaginationConfig={"PageSize": 7}
    )
    shown = list(pages)
    found = [one["Key"] for page in shown for one in page.get("Contents", ())]
    assert found != names
    assert sorted(found) == sorted(names)
    prefixes = [one["Prefix"] for page in shown for one in page.get("CommonPrefixes", ())]
    assert prefixes == ["t/open/"]
    s3.abort_multipart_upload(Bucket=BUCKET, Key="t/open/part", UploadId=upload["UploadId"])
    assert "CommonPrefixes" not in s3.list_objects_v2(Bucket=BUCKET, Prefix="t/", Delimiter="/")


@pytest.mark.parametrize("more", [{"Prefix": "t"}, {"Delimiter": "-"}, {"StartAfter": "t/1"}])
def test_a_listing_takes_only_slashes(s3: Any, more: dict[str, str]) -> None:
    """A prefix that ends otherwise, another delimiter and a first key are refused."""
    assert refused(s3.list_objects_v2, Bucket=BUCKET, **more)[0] == 400


def test_part_numbers_have_no_gaps(s3: Any) -> None:
    """A completion that leaves a number out is refused, and the upload still waits."""
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key="x")
    named = {"Bucket": BUCKET, "Key": "x", "UploadId": begun["UploadId"]}
    for number in (1, 3):
        etag = s3.upload_part(**named, PartNumber=number, Body=b"r" * (5 << 20))["ETag"]
    parts = {"Parts": [{"PartNumber": 3, "ETag": etag}]}
    said = refused(s3.complete_multipart_upload, **named, MultipartUpload=parts)
    assert said == (400, "InvalidPartOrder")
    assert len(s3.list_parts(**named)["Parts"]) == 2


def test_objects_are_deleted_by_their_etags(s3: Any) -> None:
    """Of a batch only what has the etag is deleted."""
    etags = {name: put(s3, name) for name in ("x", "y")}
    asked = [{"Key": "x", "ETag": etags["x"]}, {"Key": "y", "ETag": etags["x"]}]
    said = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": asked})
    assert [one["Key"] for one in said["Deleted"]] == ["x"]
    assert [one["Code"] for one in said["Errors"]] == ["PreconditionFailed"]


def test_a_copy_has_an_etag_of_its_own(s3: Any) -> None:
    """Etags are unique to the object, also where content and metadata are the same."""
    etag = put(s3, "x")
    source = {"Bucket": BUCKET, "Key": "x"}
    copied = s3.copy_object(Bucket=BUCKET, Key="y", CopySource=source)
    assert copied["CopyObjectResult"]["ETag"] != etag
    assert s3.get_object(Bucket=BUCKET, Key="y")["Body"].read() == b"rows"


def test_a_session_belongs_to_one_bucket_and_ends(emulator: ExpressEmulatorThread) -> None:
    """Its keys are of no use for another bucket, and none after its end."""
    s3 = client(emulator.endpoint)
    said = s3.create_session(Bucket=BUCKET, SessionMode="ReadOnly")["Credentials"]
    assert said["Expiration"].timestamp() - emulator.do(lambda _: _.host.now()) <= 300
    put(s3, "x")
    emulator.do(lambda _: _.service.bucket(BUCKET).sessions.clear())
    assert refused(s3.get_object, Bucket=BUCKET, Key="x") == (403, "AccessDenied")


def test_a_session_that_has_ended_is_refused(emulator: ExpressEmulatorThread, s3: Any) -> None:
    """The refusal says so, however long the client believed in the session."""
    put(s3, "x")
    emulator.do(end_sessions)
    assert refused(s3.get_object, Bucket=BUCKET, Key="x") == (400, "ExpiredToken")


def end_sessions(emulator: ExpressEmulator) -> None:
    """Let every session of the bucket end now."""
    sessions = emulator.service.bucket(BUCKET).sessions
    for token, session in sessions.items():
        sessions[token] = session._replace(expires=0.0)


def test_a_path_that_names_the_bucket_is_refused_as_by_the_service() -> None:
    """Only hosts name buckets, unless the host is an address and the emulator is not strict."""
    with running_express_emulator(buckets=[BUCKET], strict=True) as emulator:
        s3 = client(emulator.endpoint)
        assert refused(s3.create_session, Bucket=BUCKET) == (400, "InvalidRequest")


def test_a_bucket_is_named_by_the_host(emulator: ExpressEmulatorThread) -> None:
    """A name that ends in the address reaches the bucket by the host alone."""
    s3 = client("http://localhost:1", verify=False)
    s3.meta.events.register("before-send.s3", lambda request, **_: _through(emulator, request))
    put(s3, "x")
    assert keys(s3) == {"x"}


def _through(emulator: ExpressEmulatorThread, request: Any) -> None:
    """Send a request, which names its host in a header, to the emulator's address."""
    host, _, rest = request.url.partition("://")[2].partition("/")
    assert host == f"{BUCKET}.localhost:1"
    request.headers["Host"] = host
    request.url = f"{emulator.endpoint}/{rest}"


def test_keys_of_nobody_and_a_wrong_secret_are_refused(emulator: ExpressEmulatorThread) -> None:
    """A session is made for keys that are known, and for signatures that are right."""
    named = {"endpoint_url": emulator.endpoint, "region_name": "us-east-1"}
    other = boto3.client("s3", **named, aws_access_key_id="x", aws_secret_access_key="test")
    assert refused(other.create_session, Bucket=BUCKET) == (403, "InvalidAccessKeyId")
    wrong = boto3.client("s3", **named, aws_access_key_id="test", aws_secret_access_key="x")
    assert refused(wrong.create_session, Bucket=BUCKET) == (403, "SignatureDoesNotMatch")

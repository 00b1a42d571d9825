"""How requests of S3 are named, by what clients send."""

from __future__ import annotations

import pytest

from asynccommit.testing.emulators.s3_proxy.s3 import S3_HTTP, s3_operation, s3_place

LOCAL = "127.0.0.1:5000"
REQUESTS = [
    ("GET", "/", {}, "list_buckets"),
    ("OPTIONS", "/", {}, "other"),
    ("PUT", "/data", {}, "bucket"),
    ("HEAD", "/data/", {}, "bucket"),
    ("DELETE", "/data", {}, "bucket"),
    ("GET", "/data?location", {}, "bucket"),
    ("GET", "/data?versioning=", {}, "bucket"),
    ("GET", "/data", {}, "list"),
    ("GET", "/data/?list-type=2&prefix=a%2F&delimiter=%2F", {}, "list"),
    ("GET", "/data?versions&prefix=uploads", {}, "list_versions"),
    ("GET", "/data?prefix=a&uploads", {}, "list_uploads"),
    ("GET", "/data?prefix=uploads", {}, "list"),
    ("POST", "/data?delete", {}, "delete_many"),
    ("POST", "/data/?delete=", {}, "delete_many"),
    ("POST", "/data", {}, "other"),
    ("GET", "/data/a", {}, "get"),
    ("GET", "/data/a?versionId=1&response-content-type=x", {}, "get"),
    ("GET", "/data/a?attributes", {}, "other"),
    ("HEAD", "/data/a?partNumber=1", {}, "head"),
    ("PUT", "/data/a?x-id=PutObject", {}, "put"),
    ("PUT", "/data/a?tagging", {}, "other"),
    ("PUT", "/data/a", {"x-amz-copy-source": "/data/b"}, "copy"),
    ("PUT", "/data/a?partNumber=1&uploadId=u", {}, "put_part"),
    ("PUT", "/data/a?partNumber=1&uploadId=u", {"x-amz-copy-source": "data/b"}, "copy_part"),
    ("POST", "/data/a?uploads", {}, "create_upload"),
    ("POST", "/data/a?uploads=", {}, "create_upload"),
    ("POST", "/data/a?uploadId=u", {}, "complete_upload"),
    ("GET", "/data/a?uploadId=u&max-parts=5", {}, "list_parts"),
    ("DELETE", "/data/a?x-id=AbortMultipartUpload&uploadId=u", {}, "abort_upload"),
    ("DELETE", "/data/a", {}, "delete"),
    ("DELETE", "/data/a?versionId=1", {}, "delete"),
    ("POST", "/data/a?select&select-type=2", {}, "other"),
    ("PATCH", "/data/a", {}, "other"),
]


@pytest.mark.parametrize("method, target, headers, op", REQUESTS)
def test_operation(method: str, target: str, headers: dict[str, str], op: str) -> None:
    """By method, path, the names in the query, and whether something is copied."""
    assert s3_operation(method, target, {"host": LOCAL, **headers}) == op


def test_every_operation_has_a_request() -> None:
    """Rules can name no other operations than those that requests are told to be."""
    assert {op for *_, op in REQUESTS} == set(S3_HTTP.ops)


@pytest.mark.parametrize(
    "host",
    ["data.localhost:9000", "data.s3.eu-west-1.amazonaws.com", "data.s3-eu-west-1.amazonaws.com"],
)
def test_bucket_in_the_name_of_the_host(host: str) -> None:
    """As clients of Amazon's own endpoint put it there."""
    assert s3_operation("GET", "/?list-type=2", {"host": host}) == "list"
    assert s3_operation("GET", "/a/b", {"host": host}) == "get"
    assert s3_place("/a/b", {"host": host}) == "data/a/b"


@pytest.mark.parametrize(
    "host",
    [LOCAL, "localhost:9000", "[::1]:9000", "minio", "s3.amazonaws.com", "minio.corp.example"],
)
def test_bucket_in_the_path(host: str) -> None:
    """As with every other endpoint."""
    assert s3_operation("GET", "/data", {"host": host}) == "list"
    assert s3_place("/data/a", {"host": host}) == "data/a"


@pytest.mark.parametrize(
    "target, place",
    [
        ("/data/day%3D1/a%20b+c", "data/day=1/a b+c"),
        ("/data?list-type=2&prefix=day%3D1%2Fa+b", "data/day=1/a b"),
        ("/data?prefix=", "data"),
        ("/data/a?prefix=b", "data/a"),
        ("/", ""),
        ("http://127.0.0.1:5000/data/a", "data/a"),
    ],
)
def test_place(target: str, place: str) -> None:
    """What rules look for paths in, decoded."""
    assert s3_place(target, {}) == place

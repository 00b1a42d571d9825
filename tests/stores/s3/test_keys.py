"""How what is written is kept: encrypted by whose key, in which class, for whom."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.stores.s3.keys import Encryption, Keeping, keeping
from tests.stores.s3.test_options import read

SSE = "x-amz-server-side-encryption"
RAW = bytes(range(32))
KEY = base64.b64encode(RAW).decode()


def kept(**told: Any) -> Keeping:
    """Return the headers that options make."""
    return read(told).keeping


@pytest.mark.parametrize(
    "told,expected",
    [
        ({}, {}),
        ({"encryption": "AES256"}, {SSE: "AES256"}),
        ({"fs.s3a.encryption.algorithm": "SSE-S3"}, {SSE: "AES256"}),
        ({"encryption": "SSE-KMS"}, {SSE: "aws:kms"}),
        (
            {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/k"}},
            {SSE: "aws:kms", f"{SSE}-aws-kms-key-id": "alias/k"},
        ),
        (
            {
                "fs.s3a.server-side-encryption-algorithm": "DSSE-KMS",
                "fs.s3a.server-side-encryption.key": "arn:aws:kms:eu-west-1:1:key/2",
            },
            {SSE: "aws:kms:dsse", f"{SSE}-aws-kms-key-id": "arn:aws:kms:eu-west-1:1:key/2"},
        ),
        ({"encryption_key": "abc"}, {SSE: "aws:kms", f"{SSE}-aws-kms-key-id": "abc"}),
        ({"fs.s3a.create.storage.class": "standard_ia"}, {"x-amz-storage-class": "STANDARD_IA"}),
        (
            {"fs.s3a.acl.default": "BucketOwnerFullControl"},
            {"x-amz-acl": "bucket-owner-full-control"},
        ),
        ({"acl": "public-read"}, {"x-amz-acl": "public-read"}),
    ],
)
def test_headers_of_what_is_written(told: dict[str, Any], expected: dict[str, str]) -> None:
    """Each family's names lead to the service's headers."""
    assert kept(**told).written == expected


@pytest.mark.parametrize(
    "context",
    ['{"team": "a b"}', "team=a b", base64.b64encode(b'{"team": "a b"}').decode()],
)
def test_a_context_of_kms(context: str) -> None:
    """It may be JSON, pairs as Hadoop has them, or what the service wants already."""
    found = keeping(Encryption("SSE-KMS", "k", context)).written[f"{SSE}-context"]

    assert json.loads(base64.b64decode(found)) == {"team": "a b"}


@pytest.mark.parametrize("key", [KEY, RAW])
def test_a_key_of_the_customers(key: str | bytes) -> None:
    """It goes with whatever reads or writes content, and once more for the source of a copy."""
    found = keeping(Encryption("SSE-C", key))
    digest = base64.b64encode(hashlib.md5(RAW, usedforsecurity=False).digest()).decode()

    assert found.content == {
        f"{SSE}-customer-algorithm": "AES256",
        f"{SSE}-customer-key": KEY,
        f"{SSE}-customer-key-md5": digest,
    }
    assert list(found.source.values()) == list(found.content.values())
    assert all(name.startswith("x-amz-copy-source-") for name in found.source)


@pytest.mark.parametrize(
    "told,said",
    [
        ({"encryption": "CSE-KMS"}, "CSE"),
        ({"encryption": KEY}, "expected SSE-S3"),
        ({"encryption": "SSE-S3", "encryption_key": "k"}, "takes no key"),
        ({"encryption": "SSE-C", "encryption_key": "c2hvcnQ="}, "32 bytes"),
        ({"encryption": "SSE-C"}, "32 bytes"),
        ({"encryption": "SSE-KMS", "encryption_key": "a\r\nx: y"}, "invalid KMS key"),
        ({"encryption": "SSE-KMS", "encryption_context": "[1]"}, "context"),
        ({"encryption": "SSE-KMS", "encryption_context": '{"a": 1}'}, "context"),
        ({"storage_class": "a b"}, "storage class"),
        ({"acl": "x\r\ny"}, "ACL"),
        (
            {
                "encryption": "SSE-C",
                "encryption_key": KEY,
                "endpoint_url": "http://far.example.com",
            },
            "use https",
        ),
    ],
)
def test_what_cannot_be_kept_so(told: dict[str, Any], said: str) -> None:
    """The error says what is wrong and shows no key."""
    with pytest.raises(OptionError, match=said) as caught:
        kept(**told)

    assert KEY not in str(caught.value)

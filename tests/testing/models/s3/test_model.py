"""The objects of a bucket: what is there, what conditions say of it, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.s3.model import CompletedPart, S3Bucket, S3Service, UploadRules
from tests.testing.models.s3.bench import EPOCH, Clock, Ids, new_bucket


def md5(data: bytes) -> str:
    """Return what S3 calls the etag of an object that was put."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def refused(code: str, act: Callable[[], object]) -> None:
    """Check that something is refused with this code."""
    with pytest.raises(Refusal) as caught:
        act()
    assert caught.value.code == code


def test_an_object_is_what_was_put() -> None:
    """Its etag is the MD5, its time is in whole seconds, and its metadata is kept."""
    clock = Clock()
    bucket = new_bucket(clock=clock)
    clock.now += 0.7
    made = bucket.put("a/b", b"data", metadata={"k": "v"}, algorithm="CRC32")
    assert (made.key, made.size, made.etag) == ("a/b", 4, md5(b"data"))
    assert (made.modified, made.metadata) == (EPOCH, {"k": "v"})
    assert made.checksum == base64.b64encode(zlib.crc32(b"data").to_bytes(4, "big")).decode()
    assert bucket.head("a/b") is made


def test_a_put_replaces_unless_a_condition_speaks_against_it() -> None:
    """A condition is on there being nothing, or on an etag, in quotes or without."""
    bucket = new_bucket()
    first = bucket.put("a", b"1", if_none_match="*")
    refused("PreconditionFailed", lambda: bucket.put("a", b"2", if_none_match="*"))
    refused("PreconditionFailed", lambda: bucket.put("a", b"2", if_match="0" * 32))
    refused("NoSuchKey", lambda: bucket.put("b", b"2", if_match=first.etag))
    assert bucket.objects["a"] is first
    second = bucket.put("a", b"2", if_match=f'"{first.etag}"')
    assert bucket.put("a", b"3", if_match="*").etag != second.etag


def test_what_is_not_there_is_deleted_without_a_word_unless_it_was_asked_for() -> None:
    """A condition on nothing is refused; one that is not fulfilled deletes nothing."""
    bucket = new_bucket()
    bucket.delete("gone")
    refused("NoSuchKey", lambda: bucket.delete("gone", if_match="*"))
    bucket.put("a", b"1")
    refused("PreconditionFailed", lambda: bucket.delete("a", if_match="0" * 32))
    bucket.delete("a", if_match=md5(b"1"))
    assert bucket.objects == {}


def test_many_are_deleted_each_for_itself() -> None:
    """Each has its own answer; more than a thousand, or none, are no request."""
    bucket = new_bucket()
    for key in ("a", "b"):
        bucket.put(key, b"1")
    said = bucket.delete_many([("a", md5(b"1")), ("b", md5(b"2")), ("c", ""), ("d", md5(b"1"))])
    codes = [None if no is None else no.code for no in said]
    assert codes == [None, "PreconditionFailed", None, "NoSuchKey"]
    assert list(bucket.objects) == ["b"]
    refused("MalformedXML", lambda: bucket.delete_many([]))
    refused("MalformedXML", lambda: bucket.delete_many([("a", "")] * 1001))


def test_a_bucket_may_know_no_conditions_on_deletes() -> None:
    """Then they are not looked at."""
    bucket = new_bucket(UploadRules(conditional_deletes=False))
    bucket.put("a", b"1")
    assert bucket.delete_many([("a", md5(b"2")), ("gone", "*")]) == [None, None]
    assert bucket.objects == {}


def test_a_copy_is_made_as_by_one_put() -> None:
    """It keeps the metadata; of what came in parts it has another etag, that of the whole."""
    bucket = new_bucket(UploadRules(smallest_part=1))
    upload_id = bucket.create_upload("a", metadata={"k": "v"})
    part = bucket.upload_part("a", upload_id, 1, b"data")
    made = bucket.complete("a", upload_id, [CompletedPart(part.number, part.etag)])
    copied = bucket.copy_object("a", "b", source_if_match=made.etag)
    assert made.etag.endswith("-1")
    assert (copied.data, copied.etag, copied.metadata) == (b"data", md5(b"data"), {"k": "v"})
    assert bucket.copy_object("a", "c", metadata={}).metadata == {}


def test_a_copy_may_be_refused() -> None:
    """For its source, its destination, its size, or for changing nothing."""
    bucket = new_bucket(UploadRules(largest_part=3))
    for key, data in (("a", b"1"), ("b", b"2"), ("large", b"1234")):
        bucket.put(key, data)
    refused("NoSuchKey", lambda: bucket.copy_object("gone", "b"))
    refused("PreconditionFailed", lambda: bucket.copy_object("a", "b", if_none_match="*"))
    refused("PreconditionFailed", lambda: bucket.copy_object("a", "b", if_match=md5(b"1")))
    refused("PreconditionFailed", lambda: bucket.copy_object("a", "c", source_if_match="0"))
    refused("InvalidRequest", lambda: bucket.copy_object("large", "c"))
    refused("InvalidRequest", lambda: bucket.copy_object("a", "a"))
    assert {key: one.data for key, one in bucket.objects.items()} == {
        **{"a": b"1", "b": b"2"},
        "large": b"1234",
    }


def test_keys_have_bounds() -> None:
    """1024 bytes of UTF-8 are a key, one more is none, and neither is nothing."""
    bucket = new_bucket()
    bucket.put("ü" * 512, b"")
    for request in (bucket.head, bucket.delete, bucket.create_upload):
        refused("KeyTooLongError", lambda: request("ü" * 512 + "n"))  # noqa: B023
    refused("InvalidArgument", lambda: bucket.put("", b""))


def test_a_key_of_the_customer_hides_the_content_from_etags() -> None:
    """Two puts of the same content have two etags then, and neither is its MD5."""
    bucket = new_bucket(UploadRules(sse_kms=True))
    one, two = bucket.put("a", b"1"), bucket.put("b", b"1")
    assert len({one.etag, two.etag, md5(b"1")}) == 3
    assert one.encrypted


def test_a_copy_of_a_bucket_goes_its_own_way() -> None:
    """Objects, uploads and parts that come or go in one are not seen in the other."""
    bucket = new_bucket(UploadRules(smallest_part=1))
    bucket.put("a", b"1")
    upload_id = bucket.create_upload("b")
    part = bucket.upload_part("b", upload_id, 1, b"1")
    other = bucket.copy()
    other.upload_part("b", upload_id, 2, b"2")
    other.put("a", b"2")
    bucket.complete("b", upload_id, [CompletedPart(1, part.etag)])
    assert [one.key for one in other.list().objects] == ["a"]
    assert [one.key for one in bucket.list().objects] == ["a", "b"]
    assert bucket.head("a").data == b"1"
    assert other.is_open("b", upload_id)
    assert [sent.number for sent in other.list_parts("b", upload_id).entries] == [1, 2]


def test_a_service_has_buckets_by_name() -> None:
    """They are made, and found; another name is refused."""
    service = S3Service(now=Clock(), new_id=Ids())
    bucket = service.create_bucket("data", UploadRules(page=2))
    assert service.bucket("data") is bucket
    assert (bucket.rules.page, repr(service)) == (2, "Service(data)")
    refused("NoSuchBucket", lambda: service.bucket("other"))


# --- listing ---------------------------------------------------------------------------------

KEYS = st.lists(st.text("ab/", min_size=1, max_size=5), unique=True, max_size=12)


def shown(bucket: S3Bucket, prefix: str, delimiter: str, most: int) -> list[str]:
    """Return what all pages show: keys, and prefixes."""
    found: list[str] = []
    token = ""
    while True:
        page = bucket.list(prefix, delimiter=delimiter, token=token, most=most)
        entries = [one.key for one in page.objects] + page.prefixes
        assert len(entries) <= most
        found += sorted(entries)
        token = page.token
        if not token:
            return found


@given(KEYS, st.lists(st.text("ab/", max_size=5)), st.text("ab/", max_size=3), st.integers(1, 4))
def test_pages_show_everything_once_and_in_order(
    keys: list[str], gone: list[str], prefix: str, most: int
) -> None:
    """With a delimiter and without one, whatever was deleted before and however short pages are."""
    bucket = new_bucket()
    for key in keys:
        bucket.put(key, b"")
    bucket.list()
    for key in gone:
        if key:
            bucket.delete(key)
    left = sorted(key for key in set(keys) - set(gone) if key.startswith(prefix))
    assert shown(bucket, prefix, "", most) == left
    cut = [key if (at := key.find("/", len(prefix))) < 0 else key[: at + 1] for key in left]
    assert shown(bucket, prefix, "/", most) == sorted(set(cut))


def test_a_listing_begins_behind_a_key() -> None:
    """The key itself is not shown, and need not be there."""
    bucket = new_bucket()
    for key in "abd":
        bucket.put(key, b"")
    assert [one.key for one in bucket.list(start_after="a").objects] == ["b", "d"]
    assert [one.key for one in bucket.list(start_after="c").objects] == ["d"]


@pytest.mark.parametrize("token", ["x", "bm9uZQ==", "W10=", "WzFd"])
def test_a_token_of_something_else_is_refused(token: str) -> None:
    """Only what a listing gave goes on with one."""
    refused("InvalidArgument", lambda: new_bucket().list(token=token))

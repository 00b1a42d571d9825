"""Uploads in parts: how they end, what their parts may be, and what comes too late."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

import pytest

from asynccommit.stores.parts import Part, composite_etag
from asynccommit.testing.models.s3.model import (
    CompletedPart,
    S3Bucket,
    S3Object,
    SentPart,
    UploadRules,
)
from tests.testing.models.s3.bench import EPOCH, Clock, new_bucket
from tests.testing.models.s3.test_model import refused

SMALL = UploadRules(smallest_part=4)


def begin(
    bucket: S3Bucket, *datas: bytes, key: str = "f", **options: str
) -> tuple[str, list[SentPart]]:
    """Begin an upload and send parts."""
    upload_id = bucket.create_upload(key, **options)  # type: ignore[arg-type]
    numbered = enumerate(datas, 1)
    return upload_id, [bucket.upload_part(key, upload_id, at, data) for at, data in numbered]


def named(parts: Sequence[SentPart]) -> list[CompletedPart]:
    """Return parts as who completes an upload names them."""
    return [CompletedPart(part.number, part.etag, part.checksum) for part in parts]


def complete(bucket: S3Bucket, *datas: bytes, key: str = "f") -> S3Object:
    """Make an object of parts."""
    upload_id, parts = begin(bucket, *datas, key=key)
    return bucket.complete(key, upload_id, named(parts))


def test_an_object_is_made_of_the_parts() -> None:
    """Its etag is the MD5 of theirs and their number, its time that of the upload's begin."""
    clock = Clock()
    bucket = new_bucket(SMALL, clock)
    upload_id, parts = begin(bucket, b"1234", b"5")
    clock.now += 100
    made = bucket.complete("f", upload_id, named(parts))
    assert made.data == b"12345"
    assert made.etag == composite_etag([Part(part.etag) for part in parts])
    assert made.modified == EPOCH


def test_a_checksum_of_parts_is_that_of_theirs() -> None:
    """It has their number behind it, and who completes the upload has to name theirs."""
    bucket = new_bucket(SMALL)
    upload_id, parts = begin(bucket, b"1234", b"5", algorithm="SHA256")
    refused(
        "InvalidPart",
        lambda: bucket.complete(
            "f", upload_id, [CompletedPart(part.number, part.etag) for part in parts]
        ),
    )
    made = bucket.complete("f", upload_id, named(parts))
    each = b"".join(hashlib.sha256(data).digest() for data in (b"1234", b"5"))
    assert made.checksum == base64.b64encode(hashlib.sha256(each).digest()).decode() + "-2"
    refused("InvalidRequest", lambda: bucket.create_upload("f", algorithm="MD4"))


def test_parts_need_not_be_numbered_without_gaps() -> None:
    """Any numbers do, as long as they ascend."""
    bucket = new_bucket(SMALL)
    upload_id = bucket.create_upload("f")
    parts = [bucket.upload_part("f", upload_id, at, b"%4d" % at) for at in (7, 2, 10_000)]
    refused("InvalidPartOrder", lambda: bucket.complete("f", upload_id, named(parts)))
    refused("InvalidPartOrder", lambda: bucket.complete("f", upload_id, named(parts[:1] * 2)))
    made = bucket.complete("f", upload_id, named(sorted(parts)))
    assert made.data == b"   2   710000"


def test_what_parts_may_not_be() -> None:
    """None at all, others than were sent, too small ones, too large ones, or of such numbers."""
    bucket = new_bucket(SMALL._replace(largest_part=8, most_parts=2))
    upload_id, parts = begin(bucket, b"123", b"4567", b"8")
    listed = named(parts)
    refused("MalformedXML", lambda: bucket.complete("f", upload_id, []))
    refused("MalformedXML", lambda: bucket.complete("f", upload_id, listed))
    refused("EntityTooSmall", lambda: bucket.complete("f", upload_id, listed[:2]))
    refused(
        "InvalidPart", lambda: bucket.complete("f", upload_id, [CompletedPart(4, parts[0].etag)])
    )
    refused(
        "InvalidPart", lambda: bucket.complete("f", upload_id, [CompletedPart(1, parts[1].etag)])
    )
    refused("EntityTooLarge", lambda: bucket.upload_part("f", upload_id, 1, b"123456789"))
    for number in (0, 10_001):
        refused("InvalidArgument", lambda: bucket.upload_part("f", upload_id, number, b""))  # noqa: B023
    assert bucket.complete("f", upload_id, listed[1:]).data == b"45678"


def test_the_same_completion_is_answered_alike_for_a_while() -> None:
    """And does nothing; other parts, another key or a later time find no upload."""
    clock = Clock()
    bucket = new_bucket(SMALL._replace(remembers=60.0), clock)
    upload_id, parts = begin(bucket, b"1234", b"5")
    made = bucket.complete("f", upload_id, named(parts))
    bucket.put("f", b"newer")
    clock.now += 60
    assert bucket.complete("f", upload_id, named(parts)) is made
    refused("NoSuchUpload", lambda: bucket.complete("f", upload_id, named(parts)[:1]))
    refused("NoSuchUpload", lambda: bucket.complete("g", upload_id, named(parts)))
    clock.now += 1
    refused("NoSuchUpload", lambda: bucket.complete("f", upload_id, named(parts)))
    assert bucket.head("f").data == b"newer"


def test_conditions_hold_for_the_object_that_is_made() -> None:
    """The upload stays if they do not; repeated, the object's own presence speaks against it."""
    bucket = new_bucket(SMALL)
    old = bucket.put("f", b"old")
    upload_id, parts = begin(bucket, b"1")
    listed = named(parts)
    refused(
        "PreconditionFailed", lambda: bucket.complete("f", upload_id, listed, if_none_match="*")
    )
    refused("PreconditionFailed", lambda: bucket.complete("f", upload_id, listed, if_match="0"))
    assert bucket.is_open("f", upload_id)
    bucket.complete("f", upload_id, listed, if_match=old.etag)
    refused(
        "PreconditionFailed", lambda: bucket.complete("f", upload_id, listed, if_match=old.etag)
    )
    refused(
        "PreconditionFailed", lambda: bucket.complete("f", upload_id, listed, if_none_match="*")
    )


def test_nothing_has_an_etag() -> None:
    """What is to replace an object that is not there finds none, and the upload stays."""
    bucket = new_bucket(SMALL)
    upload_id, parts = begin(bucket, b"1")
    refused("NoSuchKey", lambda: bucket.complete("f", upload_id, named(parts), if_match="0"))
    assert bucket.is_open("f", upload_id)


def test_a_service_may_pass_conditions_over() -> None:
    """One that does replaces whatever is there, by data and by parts, and says yes."""
    bucket = new_bucket(SMALL._replace(conditional_writes=False))
    bucket.put("f", b"old")
    bucket.put("f", b"new", if_none_match="*")
    upload_id, parts = begin(bucket, b"1")
    bucket.complete("f", upload_id, named(parts), if_none_match="*", if_match="0")
    assert bucket.head("f").data == b"1"


def test_a_service_may_say_yes_to_the_abort_of_what_was_completed() -> None:
    """One that does leaves the object; of an aborted upload it says that there is none."""
    bucket = new_bucket(SMALL._replace(abort_tells=False))
    upload_id, parts = begin(bucket, b"1")
    bucket.complete("f", upload_id, named(parts))
    bucket.abort("f", upload_id)
    assert bucket.head("f").data == b"1"
    other, _ = begin(bucket, b"2")
    bucket.abort("f", other)
    refused("NoSuchUpload", lambda: bucket.abort("f", other))


def test_an_upload_ends_once() -> None:
    """Completed, it cannot be aborted, nor the other way round; neither under another key."""
    bucket = new_bucket(SMALL)
    first, parts = begin(bucket, b"1")
    refused("NoSuchUpload", lambda: bucket.abort("g", first))
    refused("NoSuchUpload", lambda: bucket.upload_part("g", first, 1, b""))
    bucket.complete("f", first, named(parts))
    refused("NoSuchUpload", lambda: bucket.abort("f", first))
    refused("NoSuchUpload", lambda: bucket.upload_part("f", first, 1, b"", begun=True))
    second, parts = begin(bucket, b"2")
    bucket.abort("f", second)
    refused("NoSuchUpload", lambda: bucket.abort("f", second))
    refused("NoSuchUpload", lambda: bucket.complete("f", second, named(parts)))
    refused("NoSuchUpload", lambda: bucket.list_parts("f", second))
    assert bucket.head("f").data == b"1"


def test_a_part_on_its_way_outlives_the_abort() -> None:
    """It is listed, cannot become an object, and is gone when the upload is aborted again."""
    bucket = new_bucket(SMALL)
    upload_id, _ = begin(bucket, b"1234")
    bucket.abort("f", upload_id)
    late = bucket.upload_part("f", upload_id, 2, b"5678", begun=True)
    bucket.upload_part("f", upload_id, 3, b"9", begun=True)
    refused("NoSuchUpload", lambda: bucket.upload_part("f", upload_id, 4, b"new"))
    refused("NoSuchUpload", lambda: bucket.complete("f", upload_id, named([late])))
    assert [one.upload_id for one in bucket.list_uploads().entries] == [upload_id]
    assert [one.number for one in bucket.list_parts("f", upload_id).entries] == [2, 3]
    assert not bucket.is_open("f", upload_id)
    bucket.abort("f", upload_id)
    assert bucket.list_uploads().entries == []


def test_parts_may_end_with_their_upload() -> None:
    """Where none is kept, one that was on its way finds no upload."""
    bucket = new_bucket(SMALL._replace(late_parts=False))
    upload_id, _ = begin(bucket)
    bucket.abort("f", upload_id)
    refused("NoSuchUpload", lambda: bucket.upload_part("f", upload_id, 1, b"", begun=True))


def test_a_key_of_the_customer_leaves_the_number_of_parts() -> None:
    """The etag tells how many parts there were, and is not made of their MD5s."""
    bucket = new_bucket(SMALL._replace(sse_kms=True))
    made = complete(bucket, b"1234", b"5")
    plain = complete(new_bucket(SMALL), b"1234", b"5")
    assert made.etag.endswith("-2")
    assert made.etag != plain.etag


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_uploads_are_listed_by_key_and_then_by_time(most: int) -> None:
    """Every page goes on where the one before ended, even if that upload has ended since."""
    clock = Clock()
    bucket = new_bucket(SMALL, clock)
    keys = ["b", "a/x", "a/y", "a/x", "b", "a/x"]
    begun = []
    for key in keys:
        clock.now += 1
        begun.append((key, bucket.create_upload(key)))
    order = sorted(range(len(keys)), key=lambda at: (keys[at], at))
    found: list[tuple[str, str]] = []
    markers = {"key_marker": "", "upload_id_marker": ""}
    while True:
        page = bucket.list_uploads(most=most, **markers)
        found += [(one.key, one.upload_id) for one in page.entries]
        bucket.abort(page.entries[-1].key, page.entries[-1].upload_id)
        markers = {"key_marker": page.key_marker, "upload_id_marker": page.upload_id_marker}
        if not page.key_marker:
            break
    assert found == [begun[at] for at in order]


def test_uploads_are_listed_by_prefix() -> None:
    """A key that only begins alike is shown; a key for a marker hides all of its own uploads."""
    bucket = new_bucket(SMALL)
    for key in ("a", "a/b", "ab", "b"):
        bucket.create_upload(key)
    assert [one.key for one in bucket.list_uploads("a").entries] == ["a", "a/b", "ab"]
    assert [one.key for one in bucket.list_uploads(key_marker="a/b").entries] == ["ab", "b"]
    refused("InvalidArgument", lambda: bucket.list_uploads(key_marker="a", upload_id_marker="?"))


def test_parts_are_listed_in_pages() -> None:
    """A page begins behind a number."""
    bucket = new_bucket(SMALL)
    upload_id, parts = begin(bucket, *[b"1234"] * 5)
    page = bucket.list_parts("f", upload_id, most=2)
    assert (page.entries, page.marker) == (parts[:2], 2)
    page = bucket.list_parts("f", upload_id, marker=3, most=2)
    assert (page.entries, page.marker) == (parts[3:], 0)

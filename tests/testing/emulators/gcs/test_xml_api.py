"""The part of the XML API that object_store uses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from tests.testing.emulators.gcs.client import Answer, GcsClient

DATA = b"AA,JFK\n"
ABSENT = {"x-goog-if-generation-match": "0"}
MIB = 1 << 20


def _xml(answer: Answer) -> ElementTree.Element:
    assert answer.headers["content-type"].startswith("application/xml")
    return ElementTree.fromstring(answer.body)


def _code(answer: Answer) -> tuple[int, str | None]:
    """Return status and code of an error."""
    return answer.status, _xml(answer).findtext("Code")


def _keys(answer: Answer) -> tuple[list[str | None], list[str | None]]:
    """Return the keys and prefixes of a listing."""
    root = _xml(answer)
    return (
        [found.findtext("{*}Key") for found in root.iterfind("{*}Contents")],
        [found.findtext("{*}Prefix") for found in root.iterfind("{*}CommonPrefixes")],
    )


async def test_object_is_that_of_the_json_api(gcs: GcsClient) -> None:
    """What one API writes the other reads, with metadata and generation."""
    headers = {"Content-Type": "text/csv", "x-goog-meta-by": "me"}
    made = await gcs.send("PUT", "/data/d/a%20b.csv", DATA, headers)
    shown = (await gcs.ask("GET", "o/d%2Fa%20b.csv")).json
    read = await gcs.send("GET", "/data/d/a%20b.csv")
    looked = await gcs.send("HEAD", "/data/d/a%20b.csv")

    assert made.headers["etag"] == f'"{hashlib.md5(DATA).hexdigest()}"'
    assert made.headers["x-goog-generation"] == shown["generation"]
    assert (shown["contentType"], shown["metadata"]) == ("text/csv", {"by": "me"})
    assert (read.body, looked.body) == (DATA, b"")
    assert looked.headers["content-length"] == str(len(DATA))
    assert {read.headers["x-goog-meta-by"], looked.headers["x-goog-meta-by"]} == {"me"}
    assert read.headers["etag"] == made.headers["etag"]


async def test_range_is_read(gcs: GcsClient) -> None:
    """Bytes in the middle, the last ones, and none beyond the end."""
    await gcs.send("PUT", "/data/a", DATA)
    wanted = {"bytes=1-3": DATA[1:4], "bytes=-3": DATA[-3:]}

    for given, expected in wanted.items():
        answer = await gcs.send("GET", "/data/a", headers={"Range": given})
        assert (answer.status, answer.body) == (206, expected)
    beyond = await gcs.send("GET", "/data/a", headers={"Range": "bytes=99-"})
    assert _code(beyond) == (416, "InvalidRange")


async def test_preconditions_are_in_headers(gcs: GcsClient) -> None:
    """A new object only if there is none, and a change only of the generation that was seen."""
    made = await gcs.send("PUT", "/data/a", DATA, ABSENT)
    seen = {"x-goog-if-generation-match": made.headers["x-goog-generation"]}

    assert _code(await gcs.send("PUT", "/data/a", DATA, ABSENT)) == (412, "PreconditionFailed")
    assert (await gcs.send("PUT", "/data/a", b"2", seen)).status == 200
    assert _code(await gcs.send("DELETE", "/data/a", headers=seen)) == (412, "PreconditionFailed")
    assert (await gcs.send("DELETE", "/data/a")).status == 204
    assert _code(await gcs.send("GET", "/data/a")) == (404, "NoSuchKey")


@pytest.mark.parametrize(
    "name,kept,status",
    [
        ("If-Match", True, 200),
        ("If-Match", False, 412),
        ("If-None-Match", True, 304),
        ("If-None-Match", False, 200),
    ],
)
async def test_conditions_on_the_etag(gcs: GcsClient, name: str, kept: bool, status: int) -> None:
    """They are those of HTTP."""
    made = await gcs.send("PUT", "/data/a", DATA)
    etag = made.headers["etag"] if kept else '"other"'

    assert (await gcs.send("GET", "/data/a", headers={name: etag})).status == status


@pytest.mark.parametrize(
    "name,year,status",
    [
        ("If-Modified-Since", 2001, 200),
        ("If-Modified-Since", 2100, 304),
        ("If-Unmodified-Since", 2001, 412),
        ("If-Unmodified-Since", 2100, 200),
    ],
)
async def test_conditions_on_the_time(gcs: GcsClient, name: str, year: int, status: int) -> None:
    """They are those of HTTP."""
    await gcs.send("PUT", "/data/a", DATA)
    given = {name: f"Fri, 01 Jan {year} 00:00:00 GMT"}

    assert (await gcs.send("GET", "/data/a", headers=given)).status == status


async def test_listing(gcs: GcsClient) -> None:
    """By prefix, by directory, from a name on, in pages."""
    for name in ("a", "d/1<", "d/2", "e"):
        await gcs.send("PUT", f"/data/{name}", DATA)
    target = "/data?list-type=2"

    assert _keys(await gcs.send("GET", target)) == (["a", "d/1<", "d/2", "e"], [])
    assert _keys(await gcs.send("GET", f"{target}&delimiter=/")) == (["a", "e"], ["d/"])
    assert _keys(await gcs.send("GET", f"{target}&prefix=d/")) == (["d/1<", "d/2"], [])
    assert _keys(await gcs.send("GET", f"{target}&start-after=d/2")) == (["e"], [])
    first = await gcs.send("GET", f"{target}&max-keys=3")
    token = _xml(first).findtext("{*}NextContinuationToken")
    rest = await gcs.send("GET", f"{target}&max-keys=3&continuation-token={token}")
    assert [len(_keys(answer)[0]) for answer in (first, rest)] == [3, 1]
    assert _xml(rest).findtext("{*}IsTruncated") == "false"


async def test_copy(gcs: GcsClient) -> None:
    """The name of the source is encoded; a copy may be forbidden to replace."""
    await gcs.send("PUT", "/data/a%20b", DATA)
    source = {"x-goog-copy-source": "data/a%20b"}

    done = await gcs.send("PUT", "/data/c", headers={**source, **ABSENT})
    again = await gcs.send("PUT", "/data/c", headers={**source, **ABSENT})

    assert _xml(done).findtext("{*}ETag") == done.headers["etag"]
    assert _code(again) == (412, "PreconditionFailed")
    assert (await gcs.send("GET", "/data/c")).body == DATA


async def _start(gcs: GcsClient) -> str:
    answer = await gcs.send("POST", "/data/a?uploads", headers={"Content-Type": "text/csv"})
    identity = _xml(answer).findtext("{*}UploadId")
    assert identity
    return identity


async def _put_parts(gcs: GcsClient, identity: str, parts: Sequence[bytes]) -> list[str]:
    found = []
    for position, part in enumerate(parts, 1):
        target = f"/data/a?partNumber={position}&uploadId={identity}"
        found.append((await gcs.send("PUT", target, part)).headers["etag"])
    return found


def _list_of(etags: Sequence[str], first: int = 1) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{position}</PartNumber><ETag>{etag}</ETag></Part>"
        for position, etag in enumerate(etags, first)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


async def test_upload_in_parts(gcs: GcsClient) -> None:
    """The object is there when the upload is completed, and not before; the upload is gone."""
    parts = [b"1" * (5 * MIB), b"2"]
    identity = await _start(gcs)
    etags = await _put_parts(gcs, identity, parts)
    target = f"/data/a?uploadId={identity}"

    before = await gcs.send("HEAD", "/data/a")
    done = await gcs.send("POST", target, _list_of(etags), ABSENT)
    again = await gcs.send("POST", target, _list_of(etags))

    assert (before.status, done.status) == (404, 200)
    assert _code(again) == (404, "NoSuchUpload")
    read = await gcs.send("GET", "/data/a")
    assert (read.body, read.headers["content-type"]) == (b"".join(parts), "text/csv")


async def test_upload_in_parts_that_are_not_right(gcs: GcsClient) -> None:
    """A list is checked before anything is made; the upload stays, and may be aborted."""
    identity = await _start(gcs)
    etags = await _put_parts(gcs, identity, [b"1", b"2"])
    target = f"/data/a?uploadId={identity}"
    bad = {
        _list_of(etags): "EntityTooSmall",
        _list_of(etags[:1], 7): "InvalidPart",
        _list_of(['"00"']): "InvalidPart",
        _list_of(etags[1:], 2) + b"<": "MalformedCompleteMultipartUploadRequest",
        b"<!DOCTYPE a><a/>": "MalformedCompleteMultipartUploadRequest",
        _list_of([]): "InvalidArgument",
    }

    for body, code in bad.items():
        assert _code(await gcs.send("POST", target, body)) == (400, code)
    assert (await gcs.send("DELETE", target)).status == 204
    assert _code(await gcs.send("DELETE", target)) == (404, "NoSuchUpload")
    assert (await gcs.send("HEAD", "/data/a")).status == 404


@pytest.mark.parametrize(
    "method,target",
    [("GET", "/data"), ("GET", "/data?list-type=2&acl"), ("PUT", "/data"), ("PUT", "/data/a?acl")],
)
async def test_what_is_not_implemented_is_refused(gcs: GcsClient, method: str, target: str) -> None:
    """Nothing is taken for something else."""
    assert (await gcs.send(method, target)).brief == (501, "notImplemented")


async def test_missing_bucket(gcs: GcsClient) -> None:
    """The code says that the bucket is missing."""
    assert _code(await gcs.send("GET", "/other?list-type=2")) == (404, "NoSuchBucket")


async def test_faults_strike(gcs: GcsClient) -> None:
    """The operations of the weather are those of the JSON API."""
    await gcs.send("PUT", "/data/a", DATA)
    await gcs.send("GET", "/data/a")
    await gcs.send("GET", "/data?list-type=2")

    requests = gcs.emulator.weather.requests
    assert {op: requests[op] for op in ("insert", "read", "list")} == {
        "insert": 1,
        "read": 1,
        "list": 1,
    }


async def test_part_is_answered_as_the_client_of_google_expects(gcs: GcsClient) -> None:
    """The document has the namespace that it looks for, and the part its checksums."""
    started = await gcs.send("POST", "/data/a?uploads")
    root = ElementTree.fromstring(started.body)
    identity = root.findtext("{http://s3.amazonaws.com/doc/2006-03-01/}UploadId")
    part = await gcs.send("PUT", f"/data/a?partNumber=1&uploadId={identity}", b"123456789")

    assert part.status == 200
    assert part.headers["x-goog-hash"].split(",")[0] == "crc32c=4waSgw=="


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"x-goog-hash": "crc32c=AAAAAA=="}, "BadDigest"),
        ({"x-goog-hash": "crc32c=x"}, "InvalidDigest"),
        ({"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, "BadDigest"),
    ],
)
async def test_body_with_another_checksum_is_refused(
    gcs: GcsClient, headers: dict[str, str], code: str
) -> None:
    """As an object and as a part; the error has the element that Google's client reads."""
    identity = await _start(gcs)
    for target in ("/data/b", f"/data/a?partNumber=1&uploadId={identity}"):
        answer = await gcs.send("PUT", target, b"1", headers)
        assert _code(answer) == (400, code)
        assert ElementTree.fromstring(answer.body).findtext("Details")
    assert (await gcs.send("HEAD", "/data/b")).status == 404

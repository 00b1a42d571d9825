"""Uploads over the JSON API: in one request, and in sessions of several."""

from __future__ import annotations

import base64
import gzip
import hashlib
from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.uploads import QUANTUM
from asynccommit.testing.models.gcs.checksums import crc32c, encode_crc32c
from tests.testing.emulators.gcs.client import BUCKET, MULTIPART, Answer, GcsClient, multipart

NAMES = [
    "a",
    "a/b/c.txt",
    "a//b",
    "with space+plus%25&amp;=?#",
    "ümläut/日本/🎉",
    "tab\there",
    "back\\slash",
    "'quotes\"",
    "semi;colon:at@",
]


# --- in one request --------------------------------------------------------------------------


async def test_an_object_is_told_as_the_service_tells_it(gcs: GcsClient) -> None:
    """64-bit numbers are strings, checksums base64, times RFC 3339 to the millisecond."""
    answer = await gcs.put("d/x.txt", b"hello")
    shown = answer.json
    generation, created = shown["generation"], shown["timeCreated"]
    origin = f"http://127.0.0.1:{gcs.emulator.port}"

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert answer.headers["x-guploader-uploadid"]
    assert shown == {
        "kind": "storage#object",
        "id": f"data/d/x.txt/{generation}",
        "selfLink": f"{origin}/storage/v1/b/data/o/d%2Fx.txt",
        "mediaLink": f"{origin}/download/storage/v1/b/data/o/d%2Fx.txt"
        f"?generation={generation}&alt=media",
        "name": "d/x.txt",
        "bucket": "data",
        "generation": generation,
        "metageneration": "1",
        "contentType": "text/plain",
        "storageClass": "STANDARD",
        "size": "5",
        "md5Hash": base64.b64encode(hashlib.md5(b"hello").digest()).decode(),
        "crc32c": base64.b64encode(crc32c(b"hello").to_bytes(4, "big")).decode(),
        "etag": shown["etag"],
        "timeCreated": created,
        "updated": created,
        "timeStorageClassUpdated": created,
        "timeFinalized": created,
    }
    assert len(generation) == 16
    assert len(created) == len("2024-03-05T17:09:08.123Z")


@pytest.mark.parametrize("name", NAMES)
async def test_names_are_kept_as_they_are(gcs: GcsClient, name: str) -> None:
    """Whatever characters they have, in URLs, queries, descriptions and listings."""
    first = await gcs.put(name, b"1")
    second = await gcs.upload({"name": name}, b"2")
    read = await gcs.media(name)
    moved = await gcs.move(name, f"moved/{name}")

    assert first.json["name"] == second.json["name"] == name
    assert read.body == b"2"
    assert moved.json["name"] == f"moved/{name}"
    assert await gcs.names() == [f"moved/{name}"]


@pytest.mark.parametrize("name", ["a\nb", "a\rb", ".", "..", "x" * 1025, "ü" * 513])
async def test_names_that_are_none_are_refused(gcs: GcsClient, name: str) -> None:
    """Line ends, dots alone, and more than 1,024 bytes."""
    assert (await gcs.put(name)).brief == (400, "invalid")
    assert (await gcs.upload({"name": name}, b"")).brief == (400, "invalid")


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\r\n", b"--c", b"\r\n--bc\r\n", b"\r", b"line\r\n--c\r\n", b"x\r"]
)
async def test_multipart_upload_keeps_every_byte(gcs: GcsClient, data: bytes, end: str) -> None:
    """Also those that look like ends of lines, with either kind of line end around them."""
    given = {"name": "a", "metadata": {"k": "v"}, "contentType": "image/png"}
    answer = await gcs.upload(given, data, end=end)

    assert answer.status == 200
    assert (await gcs.media("a")).body == data
    assert answer.json["metadata"] == {"k": "v"}
    assert answer.json["contentType"] == "image/png"


@pytest.mark.parametrize(
    "header", ['multipart/related; boundary="b"', "multipart/related; boundary='b'; x=y"]
)
async def test_boundary_may_be_quoted(gcs: GcsClient, header: str) -> None:
    """As clients write it."""
    target = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart"
    body = multipart({"name": "a"}, b"x")

    assert (await gcs.send("POST", target, body, {"Content-Type": header})).status == 200


async def test_multipart_upload_may_come_compressed(gcs: GcsClient) -> None:
    """Google's client for Java sends it so; the object is stored as it was before."""
    target = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart"
    body = gzip.compress(multipart({"name": "a"}, b"AA,JFK"))
    headers = {**MULTIPART, "Content-Encoding": "gzip"}

    answer = await gcs.send("POST", target, body, headers)
    broken = await gcs.send("POST", target, body[:-1], headers)

    assert answer.status == 200
    assert "contentEncoding" not in answer.json
    assert (await gcs.media("a")).body == b"AA,JFK"
    assert broken.status == 400


async def test_description_wins_over_the_part_s_type(gcs: GcsClient) -> None:
    """Without one the type of the bytes counts."""
    plain = await gcs.upload({"name": "a"}, b"x", kind="text/x-y")
    said = await gcs.upload({"name": "a", "contentType": "a/b"}, b"x", kind="text/x-y")

    assert (plain.json["contentType"], said.json["contentType"]) == ("text/x-y", "a/b")


@pytest.mark.parametrize(
    "target, body, headers, status",
    [
        ("?uploadType=multipart", b"", MULTIPART, 400),
        ("?uploadType=multipart", b"--b\r\n\r\n{}\r\n--b--", MULTIPART, 400),
        ("?uploadType=multipart", multipart({"name": "a"}, b""), {}, 400),
        ("?uploadType=multipart", multipart({}, b""), MULTIPART, 400),
        ("?uploadType=multipart", multipart([], b""), MULTIPART, 400),
        ("?uploadType=multipart", multipart({"name": "a"}, b"")[:-8], MULTIPART, 400),
        ("?uploadType=multipart", multipart({"name": "a", "crc32c": "x"}, b""), MULTIPART, 400),
        ("?uploadType=multipart", multipart({"name": "a", "metadata": 5}, b""), MULTIPART, 400),
        ("?uploadType=media", b"", {}, 400),
        ("?uploadType=other&name=a", b"", {}, 400),
        ("?name=a", b"", {}, 400),
        ("?uploadType=media&name=%FF", b"", {}, 200),
    ],
)
async def test_uploads_that_cannot_be_read(
    gcs: GcsClient, target: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    """They are refused with 400, and nothing is stored."""
    answer = await gcs.send("POST", f"/upload/storage/v1/b/{BUCKET}/o{target}", body, headers)

    assert answer.status == status
    assert status == 200 or (answer.reason and await gcs.names() == [])


@pytest.mark.parametrize(
    "given, words",
    [
        ({"crc32c": "AAAAAA=="}, "Provided CRC32C"),
        ({"md5Hash": "AAAAAAAAAAAAAAAAAAAAAA=="}, "Provided MD5"),
    ],
)
async def test_checksums_are_verified(gcs: GcsClient, given: dict[str, str], words: str) -> None:
    """An upload that does not have the checksum it says is refused."""
    answer = await gcs.upload({"name": "a", **given}, b"hello")

    assert answer.status == 400
    assert answer.json["error"]["message"].startswith(words)
    assert await gcs.names() == []


async def test_zonal_bucket_takes_no_upload(gcs: GcsClient) -> None:
    """Neither in one request nor in a session: only gRPC writes appendable objects."""
    made = {"name": "zonal", "storageClass": "RAPID", "hierarchicalNamespace": {"enabled": True}}
    assert (await gcs.send_json("POST", "/storage/v1/b?project=p", made)).status == 200
    layout = (await gcs.send("GET", "/storage/v1/b/zonal/storageLayout")).json
    whole = await gcs.send("POST", "/upload/storage/v1/b/zonal/o?uploadType=media&name=a", b"x")
    parts = await gcs.send("POST", "/upload/storage/v1/b/zonal/o?uploadType=resumable&name=a")

    assert (layout["locationType"], whole.status, parts.status) == ("zone", 400, 400)
    assert b"requires appendable objects" in whole.body
    assert b"do not support resumable upload" in parts.body


async def test_bucket_that_is_not_there(gcs: GcsClient) -> None:
    """404 that names the bucket."""
    gcs.bucket = "none"

    answers = [await gcs.put("a"), await gcs.get("a"), await gcs.page(), await gcs.delete("a")]

    assert {answer.brief for answer in answers} == {(404, "notFound")}
    assert "bucket does not exist" in answers[0].json["error"]["message"]


# --- sessions --------------------------------------------------------------------------------


async def _start(gcs: GcsClient, name: str = "a", query: str = "", **given: Any) -> str:
    """Begin a session, and return its URL without the origin."""
    target = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name={name}{query}"
    answer = await gcs.send_json("POST", target, given)
    assert (answer.status, answer.body) == (200, b"")
    origin = f"http://127.0.0.1:{gcs.emulator.port}"
    assert answer.headers["location"].startswith(origin)
    return answer.headers["location"].removeprefix(origin)


async def _chunk(
    gcs: GcsClient, url: str, data: bytes, where: str, method: str = "PUT", **headers: str
) -> Answer:
    return await gcs.send(method, url, data, {"Content-Range": f"bytes {where}", **headers})


async def test_session_takes_chunks(gcs: GcsClient) -> None:
    """308 with what is kept until the last; then the object's resource."""
    data = bytes(range(256)) * 1024 * 2
    url = await _start(gcs, metadata={"k": "v"}, contentType="a/b")
    empty = await _chunk(gcs, url, b"", "*/*")
    first = await _chunk(gcs, url, data[:QUANTUM], f"0-{QUANTUM - 1}/*")
    asked = await _chunk(gcs, url, b"", "*/*")
    last = await _chunk(gcs, url, data[QUANTUM:], f"{QUANTUM}-{len(data) - 1}/{len(data)}")
    again = await _chunk(gcs, url, b"", f"*/{len(data)}")

    assert (empty.status, empty.headers.get("range")) == (308, None)
    assert (first.status, first.headers["range"]) == (308, f"bytes=0-{QUANTUM - 1}")
    assert "location" not in first.headers
    assert asked.headers["range"] == first.headers["range"]
    assert (last.status, last.json["size"]) == (200, str(len(data)))
    assert (last.json["metadata"], last.json["contentType"]) == ({"k": "v"}, "a/b")
    assert again.json == last.json
    assert (await gcs.media("a")).body == data


async def test_session_takes_all_at_once(gcs: GcsClient) -> None:
    """Without a range the body is the whole; POST does as PUT."""
    one, two = await _start(gcs, "a"), await _start(gcs, "b")
    put = await gcs.send("PUT", one, b"hello")
    post = await _chunk(gcs, two, b"hello", "0-4/5", "POST")

    assert (put.status, post.status) == (200, 200)
    assert (await gcs.media("a")).body == (await gcs.media("b")).body == b"hello"


async def test_session_is_ended_by_its_length(gcs: GcsClient) -> None:
    """A client that did not know the length says it in the end; nothing may be all."""
    one, two = await _start(gcs, "a"), await _start(gcs, "b")
    await _chunk(gcs, one, bytes(QUANTUM), f"0-{QUANTUM - 1}/*")
    full = await _chunk(gcs, one, b"", f"*/{QUANTUM}")
    empty = await _chunk(gcs, two, b"", "*/0")

    assert (full.status, full.json["size"]) == (200, str(QUANTUM))
    assert (empty.status, empty.json["size"]) == (200, "0")


async def test_announced_length_ends_the_session(gcs: GcsClient) -> None:
    """Nothing has to tell the length again, and a query of the status ends nothing."""
    url = await _announce(gcs, QUANTUM + 5)
    first = await _chunk(gcs, url, bytes(QUANTUM), f"0-{QUANTUM - 1}/*")
    asked = await _chunk(gcs, url, b"", "*/*")
    last = await _chunk(gcs, url, b"12345", f"{QUANTUM}-*/*")
    nothing = await _chunk(gcs, await _announce(gcs, 0, "b"), b"", "*/*")

    assert (first.status, asked.headers["range"]) == (308, f"bytes=0-{QUANTUM - 1}")
    assert (last.status, last.json["size"]) == (200, str(QUANTUM + 5))
    assert nothing.status == 308


@pytest.mark.parametrize(
    "data, where",
    [
        (b"hello", "0-4/5"),
        (b"", "*/5"),
        (b"hello", None),
        (b"hello world", "0-10/*"),
        (b"hello world", "0-*/*"),
        (b"hello world", "0-10/6"),
    ],
)
async def test_other_length_than_announced(gcs: GcsClient, data: bytes, where: str | None) -> None:
    """The upload is refused before a byte is kept; the right one may follow."""
    url = await _announce(gcs, 6)
    headers = {} if where is None else {"Content-Range": f"bytes {where}"}
    wrong = await gcs.send("PUT", url, data, headers)
    right = await _chunk(gcs, url, b"world!", "0-5/6")

    assert wrong.brief == (400, "badRequest")
    assert (right.status, (await gcs.media("a")).body) == (200, b"world!")


async def _announce(gcs: GcsClient, size: int, name: str = "a") -> str:
    """Start a session of an announced length, and return its target."""
    target = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name={name}"
    started = await gcs.send("POST", target, b"", {"X-Upload-Content-Length": str(size)})
    assert started.status == 200, started
    return "/" + started.headers["location"].split("/", 3)[3]


async def test_put_without_a_session(gcs: GcsClient) -> None:
    """The parameter that is missing is named."""
    answer = await gcs.send("PUT", f"/upload/storage/v1/b/{BUCKET}/o?name=a", b"x")

    assert answer.brief == (400, "required")
    assert answer.json["error"]["errors"][0]["location"] == "upload_id"


async def test_chunk_amid_others_is_kept_in_quanta(gcs: GcsClient) -> None:
    """What is beyond a multiple of 256 KiB has to be sent again."""
    url = await _start(gcs)
    size = QUANTUM + 1000
    partly = await _chunk(gcs, url, bytes(size), f"0-{size - 1}/*")
    little = await _chunk(gcs, await _start(gcs, "b"), b"x", "0-0/*")
    rest = await _chunk(gcs, url, b"x" * 1000, f"{QUANTUM}-{size - 1}/{size}")

    assert partly.headers["range"] == f"bytes=0-{QUANTUM - 1}"
    assert (little.status, little.headers.get("range")) == (308, None)
    assert (rest.status, rest.json["size"]) == (200, str(size))


async def test_chunk_that_is_sent_again_counts_once(gcs: GcsClient) -> None:
    """Bytes that are there are passed over, also where a chunk overlaps them."""
    url = await _start(gcs)
    data = bytes(range(256)) * 1024 * 2
    for _ in range(2):
        await _chunk(gcs, url, data[:QUANTUM], f"0-{QUANTUM - 1}/*")
    done = await _chunk(gcs, url, data, f"0-{len(data) - 1}/{len(data)}")

    assert done.status == 200
    assert (await gcs.media("a")).body == data


async def test_chunk_beyond_a_gap_is_refused(gcs: GcsClient) -> None:
    """The message tells both places; the session goes on."""
    url = await _start(gcs)
    answer = await _chunk(gcs, url, bytes(QUANTUM), f"{QUANTUM}-{2 * QUANTUM - 1}/*")

    assert answer.status == 503
    assert "exceeds already uploaded size of 0 byte(s)" in answer.json["error"]["message"]
    assert (await _chunk(gcs, url, b"x", "0-0/1")).status == 200


@pytest.mark.parametrize("where", ["0-5/6", "x", "5-1/6", "0-0/0", "-/-"])
async def test_ranges_that_are_none(gcs: GcsClient, where: str) -> None:
    """Of another length than the body, or not to be read."""
    url = await _start(gcs)

    assert (await _chunk(gcs, url, b"x", where)).brief == (400, "badRequest")


async def test_session_that_was_called_off(gcs: GcsClient) -> None:
    """499, then and ever after; nothing is stored."""
    url = await _start(gcs)
    cancelled = await gcs.send("DELETE", url)
    later = await gcs.send("PUT", url, b"x")

    assert (cancelled.status, later.status) == (499, 499)
    assert await gcs.names() == []


async def test_session_that_is_not_known(gcs: GcsClient) -> None:
    """404; so is one of another bucket."""
    gcs.emulator.service.create_bucket("other")
    url = (await _start(gcs)).replace("/b/data/", "/b/other/")

    assert (await gcs.send("PUT", url, b"x")).brief == (404, "notFound")
    target = f"/upload/storage/v1/b/{BUCKET}/o?upload_id=none"
    assert (await gcs.send("PUT", target, b"x")).brief == (404, "notFound")


async def test_conditions_of_a_session_hold_at_both_ends(gcs: GcsClient) -> None:
    """At the start if the response is known then, and at the end if another was quicker."""
    url = await _start(gcs, query="&ifGenerationMatch=0")
    await gcs.make("a", b"quicker")
    late = await gcs.send("PUT", url, b"x")
    target = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name=a&ifGenerationMatch=0"
    early = await gcs.send("POST", target)

    assert late.brief == early.brief == (412, "conditionNotMet")
    assert (await gcs.media("a")).body == b"quicker"


async def test_checksum_of_a_session_is_verified(gcs: GcsClient) -> None:
    """With the last chunk comes what it all should be."""
    good, bad = await _start(gcs, "a"), await _start(gcs, "b")
    hashed = f"crc32c={encode_crc32c(crc32c(b'hello'))}"

    answers = [
        await _chunk(gcs, url, data, "0-4/5", **{"x-goog-hash": hashed})
        for url, data in ((good, b"hello"), (bad, b"HELLO"))
    ]

    assert [answer.status for answer in answers] == [200, 400]


async def test_sessions_into_no_bucket(gcs: GcsClient) -> None:
    """They do not begin."""
    target = "/upload/storage/v1/b/none/o?uploadType=resumable&name=a"

    assert (await gcs.send("POST", target)).brief == (404, "notFound")

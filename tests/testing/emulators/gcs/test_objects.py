"""Objects over the JSON API: downloads, listings, changes, copies, moves, preconditions."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from asynccommit.testing.models.gcs.model import BucketOptions, GcsLimits
from tests.testing.emulators.gcs.client import BUCKET, Answer, GcsClient, segment

UNMET = "At least one of the pre-conditions you specified did not hold."

# --- reading ---------------------------------------------------------------------------------


async def test_download_tells_what_it_is_of(gcs: GcsClient) -> None:
    """Generation, checksums, type and times are headers."""
    generation = await gcs.make("a", b"hello")
    shown = (await gcs.get("a")).json
    answer = await gcs.media("a")
    headers = answer.headers

    assert (answer.status, answer.body) == (200, b"hello")
    assert headers["content-type"] == "text/plain"
    assert headers["x-goog-generation"] == str(generation)
    assert headers["x-goog-metageneration"] == "1"
    assert headers["x-goog-hash"] == f"crc32c={shown['crc32c']},md5={shown['md5Hash']}"
    assert headers["x-goog-stored-content-length"] == "5"
    assert headers["etag"] == shown["etag"]
    assert headers["last-modified"].endswith(" GMT")


@pytest.mark.parametrize(
    "value, status, body, told",
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-30", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=8-50", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-", 200, b"0123456789", None),
        ("bytes=3-1", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
    ],
)
async def test_ranges(gcs: GcsClient, value: str, status: int, body: bytes, told: Any) -> None:
    """A part is answered 206 with its place; what is no range is the whole."""
    await gcs.make("a", b"0123456789")

    answer = await gcs.media("a", headers={"Range": value})

    assert (answer.status, answer.body) == (status, body)
    assert answer.headers.get("content-range") == told


async def test_range_behind_the_end_is_refused(gcs: GcsClient) -> None:
    """416, in the words that clients look for."""
    await gcs.make("a", b"0123456789")

    answer = await gcs.media("a", headers={"Range": "bytes=10-"})

    assert (answer.status, answer.body) == (416, b"Request range not satisfiable")


async def test_refused_download_is_plain_text(gcs: GcsClient) -> None:
    """As the service does; metadata is refused in JSON."""
    media, shown = await gcs.media("none"), await gcs.get("none")

    assert (media.status, media.body) == (404, b"No such object: data/none")
    assert media.headers["content-type"].startswith("text/html")
    assert shown.json["error"] == {
        "code": 404,
        "message": "No such object: data/none",
        "errors": [
            {"message": "No such object: data/none", "domain": "global", "reason": "notFound"}
        ],
    }


async def test_download_service_and_head(gcs: GcsClient) -> None:
    """``/download`` means the bytes; HEAD tells their length."""
    await gcs.make("a/b", b"hello")
    down = await gcs.send("GET", "/download/storage/v1/b/data/o/a%2Fb?alt=media")
    bare = await gcs.send("GET", "/download/storage/v1/b/data/o/a%2Fb")
    head = await gcs.send("HEAD", "/storage/v1/b/data/o/a%2Fb?alt=media")

    assert down.body == bare.body == b"hello"
    assert (head.status, head.headers["content-length"]) == (200, "5")


async def test_fields_are_what_is_answered(gcs: GcsClient) -> None:
    """Of an object, of a listing, of a move."""
    await gcs.put("a", b"x")
    got = await gcs.get("a", fields="name,size,metadata")
    nested = await gcs.get("a", fields="name,kind,mediaLink")
    listed = await gcs.page(fields="items(name,crc32c),nextPageToken", maxResults=1)
    slashed = await gcs.page(fields="items/name")
    none = await gcs.page(fields="prefixes")
    moved = await gcs.move("a", "b", fields="name")

    assert got.json == {"name": "a", "size": "1"}
    assert set(nested.json) == {"name", "kind", "mediaLink"}
    assert set(listed.json["items"][0]) == {"name", "crc32c"}
    assert slashed.json == {"items": [{"name": "a"}]}
    assert none.json == {}
    assert moved.json == {"name": "b"}


async def test_fields_that_cannot_be_read(gcs: GcsClient) -> None:
    """400 that names the parameter."""
    await gcs.make("a")

    for fields in ("(", "a(", "a)", "a//b", "a,,b", "a(b"):
        answer = await gcs.get("a", fields=fields)
        assert answer.brief == (400, "invalidParameter"), fields


async def test_wrong_parameters_are_named(gcs: GcsClient) -> None:
    """Numbers and truths that are none."""
    await gcs.make("a")
    answers = [
        await gcs.get("a", generation="x"),
        await gcs.get("a", ifGenerationMatch="9" * 30),
        await gcs.page(versions="perhaps"),
        await gcs.page(maxResults="many"),
    ]

    assert {answer.brief for answer in answers} == {(400, "invalidParameter")}
    assert answers[0].json["error"]["errors"][0]["location"] == "generation"


# --- listing ---------------------------------------------------------------------------------


async def test_listing_pages_and_groups(gcs: GcsClient) -> None:
    """By prefix and delimiter, in pages, between offsets."""
    for name in ("a/1", "a/2", "a/b/3", "c", "d/"):
        await gcs.put(name)
    top = (await gcs.page(delimiter="/")).json
    below = (await gcs.page(prefix="a/", delimiter="/")).json
    first = (await gcs.page(maxResults=2)).json

    assert top["kind"] == "storage#objects"
    assert [item["name"] for item in top["items"]] == ["c"]
    assert top["prefixes"] == ["a/", "d/"]
    assert [item["name"] for item in below["items"]] == ["a/1", "a/2"]
    assert below["prefixes"] == ["a/b/"]
    assert len(first["items"]) == 2
    assert await gcs.names(maxResults=2) == ["a/1", "a/2", "a/b/3", "c", "d/"]
    assert await gcs.names(startOffset="a/2", endOffset="d") == ["a/2", "a/b/3", "c"]


async def test_listing_of_nothing(gcs: GcsClient) -> None:
    """It has neither items nor prefixes nor a token."""
    assert (await gcs.page(prefix="x")).json == {"kind": "storage#objects"}


async def test_noncurrent_and_soft_deleted_objects(gcs: GcsClient) -> None:
    """They are listed and read when asked for, told by their times, and restored."""
    options = {"versioning": True}
    gcs.emulator.service.patch_bucket(BUCKET, options)
    old, new = await gcs.make("a", b"1"), await gcs.make("a", b"2")
    versions = (await gcs.page(versions=True)).json["items"]
    gcs.emulator.service.patch_bucket(BUCKET, {"versioning": False, "soft_delete": 60.0})
    await gcs.delete("a")
    deleted = (await gcs.page(softDeleted=True)).json["items"]
    soft = await gcs.get("a", softDeleted=True, generation=new)
    back = await gcs.ask("POST", "o/a/restore", generation=new)

    assert [item["generation"] for item in versions] == [str(old), str(new)]
    assert "timeDeleted" in versions[0]
    assert "timeDeleted" not in versions[1]
    assert {"softDeleteTime", "hardDeleteTime"} < deleted[0].keys()
    assert soft.json["generation"] == str(new)
    assert (back.status, (await gcs.media("a")).body) == (200, b"2")
    assert (await gcs.media("a", generation=old)).body == b"1"
    assert (await gcs.ask("POST", "o/a/restore")).brief == (400, "required")


# --- preconditions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query, status",
    [
        ({"ifGenerationMatch": "this"}, 200),
        ({"ifGenerationMatch": 1}, 412),
        ({"ifGenerationMatch": 0}, 412),
        ({"ifGenerationNotMatch": "this"}, 304),
        ({"ifGenerationNotMatch": 1}, 200),
        ({"ifMetagenerationMatch": 1}, 200),
        ({"ifMetagenerationMatch": 2}, 412),
        ({"ifMetagenerationNotMatch": 1}, 304),
        ({"ifMetagenerationNotMatch": 2}, 200),
        ({"generation": "this", "ifMetagenerationMatch": 1}, 200),
        ({"generation": 1}, 404),
    ],
)
@pytest.mark.parametrize("media", [False, True])
async def test_preconditions_of_reads(
    gcs: GcsClient, query: dict[str, Any], status: int, media: bool
) -> None:
    """412 if another was expected, 304 without a body if it is known already."""
    generation = await gcs.make("a", b"x")
    given = {key: generation if value == "this" else value for key, value in query.items()}

    answer = await (gcs.media if media else gcs.get)("a", **given)

    assert answer.status == status
    if status == 304:
        assert answer.body == b""
        assert "content-length" not in answer.headers
    if status == 412:
        assert (answer.body.decode() if media else answer.json["error"]["message"]) == UNMET


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "insert", "move", "rewrite"])
@pytest.mark.parametrize(
    "query, holds",
    [
        ({"ifGenerationMatch": "this"}, True),
        ({"ifGenerationMatch": 1}, False),
        ({"ifGenerationMatch": 0}, False),
        ({"ifGenerationNotMatch": "this"}, False),
        ({"ifGenerationNotMatch": 1}, True),
        ({"ifMetagenerationMatch": 1}, True),
        ({"ifMetagenerationMatch": 2}, False),
        ({"ifMetagenerationNotMatch": 1}, False),
        ({"ifMetagenerationNotMatch": 2}, True),
    ],
)
async def test_preconditions_of_writes(
    gcs: GcsClient, method: str, query: dict[str, Any], holds: bool
) -> None:
    """412 on every verb, in one form; and then nothing has happened."""
    generation = await gcs.make("a", b"x")
    await gcs.make("s", b"y")
    given = {key: generation if value == "this" else value for key, value in query.items()}

    answer = await _write(gcs, method, given)

    assert answer.status in ((200, 204) if holds else (412,))
    if not holds:
        assert answer.brief == (412, "conditionNotMet")
        assert answer.json["error"]["message"] == UNMET
        assert (await gcs.get("a")).json["generation"] == str(generation)
        assert (await gcs.get("s")).status == 200


async def _write(gcs: GcsClient, method: str, query: dict[str, Any]) -> Answer:
    if method == "insert":
        return await gcs.put("a", b"z", **query)
    if method == "move":
        return await gcs.move("s", "a", **query)
    if method == "rewrite":
        return await gcs.ask("POST", "o/s/rewriteTo/b/data/o/a", **query)
    return await gcs.ask(method, "o/a", None if method == "DELETE" else {}, **query)


@pytest.mark.parametrize("verb", ["moveTo/o/b", "rewriteTo/b/data/o/b", "copyTo/b/data/o/b"])
async def test_preconditions_of_sources(gcs: GcsClient, verb: str) -> None:
    """What is moved or copied may be demanded to be this generation."""
    generation = await gcs.make("a", b"x")

    no = await gcs.ask("POST", f"o/a/{verb}", ifSourceGenerationMatch=generation + 1)
    nor = await gcs.ask("POST", f"o/a/{verb}", ifSourceMetagenerationMatch=2)
    yes = await gcs.ask("POST", f"o/a/{verb}", ifSourceGenerationMatch=generation)

    assert no.brief == nor.brief == (412, "conditionNotMet")
    assert yes.status == 200


async def test_an_object_is_made_once(gcs: GcsClient) -> None:
    """``ifGenerationMatch=0`` is nothing there: the second is refused."""
    statuses = [(await gcs.put("a", b"x", ifGenerationMatch=0)).status for _ in range(2)]

    assert statuses == [200, 412]


async def test_etags_in_headers(gcs: GcsClient) -> None:
    """Reads heed If-Match and If-None-Match."""
    await gcs.make("a", b"x")
    etag = (await gcs.get("a")).json["etag"]

    same = await gcs.media("a", headers={"If-None-Match": f'"{etag}"'})
    other = await gcs.media("a", headers={"If-Match": '"x"'})
    known = await gcs.media("a", headers={"If-Match": f'"x", "{etag}"'})

    assert (same.status, other.status, known.status) == (304, 412, 200)


# --- changing --------------------------------------------------------------------------------


async def test_patch_merges_and_update_replaces(gcs: GcsClient) -> None:
    """The metageneration counts both; the generation stays."""
    made = await gcs.upload({"name": "a", "metadata": {"a": "1", "b": "2"}}, b"x")
    changes = {"metadata": {"a": None, "c": 3}, "cacheControl": "no-store", "temporaryHold": True}
    patched = (await gcs.ask("PATCH", "o/a", changes)).json
    held = await gcs.delete("a")
    updated = (await gcs.ask("PUT", "o/a", {"metadata": {"z": "1"}})).json

    assert patched["metadata"] == {"b": "2", "c": "3"}
    assert (patched["cacheControl"], patched["temporaryHold"]) == ("no-store", True)
    assert held.brief == (403, "objectUnderActiveHold")
    assert updated["metadata"] == {"z": "1"}
    assert "cacheControl" not in updated
    assert updated["metageneration"] == "3"
    assert updated["generation"] == made.json["generation"]


async def test_everything_that_is_said_of_an_object_is_told(gcs: GcsClient) -> None:
    """In its resource, and where it has a header in a download."""
    given = {
        "name": "a",
        "contentType": "text/x",
        "cacheControl": "no-cache",
        "contentDisposition": "inline",
        "contentEncoding": "identity",
        "contentLanguage": "de",
        "storageClass": "NEARLINE",
        "customTime": "2024-03-05T17:09:08.500Z",
        "eventBasedHold": True,
        "retention": {"mode": "Unlocked", "retainUntilTime": "2124-03-05T17:09:08Z"},
        "kmsKeyName": "projects/p/k",
    }
    shown = (await gcs.upload(given, b"x")).json
    headers = (await gcs.media("a")).headers

    until = {"mode": "Unlocked", "retainUntilTime": "2124-03-05T17:09:08.000Z"}
    assert {key: shown[key] for key in given} == {**given, "retention": until}
    assert headers["cache-control"] == "no-cache"
    assert headers["content-disposition"] == "inline"
    assert headers["content-language"] == "de"
    assert headers["x-goog-storage-class"] == "NEARLINE"


async def test_retention_is_told(gcs: GcsClient) -> None:
    """Of the bucket's policy or the object's own; to whoever may see the bucket."""
    await gcs.make("a")
    plain = (await gcs.get("a")).json
    gcs.emulator.service.patch_bucket(BUCKET, {"retention": 3600.0})
    kept = (await gcs.get("a")).json
    alone = (await gcs.get("a", fields="retentionExpirationTime")).json
    listed = (await gcs.page(fields="items(name,retentionExpirationTime)")).json["items"]
    whole = (await gcs.page()).json["items"]
    refused = await gcs.delete("a")
    gcs.emulator.service.denied = {"storage.buckets.get"}

    assert "retentionExpirationTime" not in plain
    assert kept["retentionExpirationTime"] > plain["timeCreated"]
    assert alone == {"retentionExpirationTime": kept["retentionExpirationTime"]}
    assert listed == [{"name": "a", **alone}]
    assert whole == [kept]
    assert refused.brief == (403, "retentionPolicyNotMet")
    assert (await gcs.get("a")).json == plain


async def test_holds_are_listed(gcs: GcsClient) -> None:
    """With what else is asked for; nobody knows when a retention ends under an event-based one."""
    gcs.emulator.service.patch_bucket(BUCKET, {"retention": 3600.0})
    for name, hold in (("a", "temporary_hold"), ("b", "event_based_hold")):
        await gcs.make(name)
        gcs.emulator.service.patch(BUCKET, name, {hold: True})
    fields = "items(name,temporaryHold,eventBasedHold,retentionExpirationTime)"
    a, b = (await gcs.page(fields=fields)).json["items"]

    assert a.pop("retentionExpirationTime")
    assert (a, b) == (
        {"name": "a", "temporaryHold": True},
        {"name": "b", "eventBasedHold": True},
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": "x"},
        {"temporaryHold": "yes"},
        {"customTime": "yesterday"},
        {"retention": {"mode": "Free"}},
        {"retention": 5},
        {"cacheControl": 7},
    ],
)
async def test_changes_that_are_none(gcs: GcsClient, changes: dict[str, Any]) -> None:
    """400, and nothing is changed."""
    await gcs.make("a")

    assert (await gcs.ask("PATCH", "o/a", changes)).brief == (400, "invalid")
    assert (await gcs.get("a")).json["metageneration"] == "1"


async def test_body_that_is_no_json(gcs: GcsClient) -> None:
    """400 ``parseError``."""
    answer = await gcs.send("PATCH", "/storage/v1/b/data/o/a", b"{")

    assert answer.brief == (400, "parseError")


async def test_null_is_an_empty_resource(gcs: GcsClient) -> None:
    """A rewrite whose resource is ``null`` copies the object as it is."""
    await gcs.make("a")

    answer = await gcs.send("POST", "/storage/v1/b/data/o/a/rewriteTo/b/data/o/b", b"null")

    assert answer.json["done"] is True
    assert (await gcs.get("b")).status == 200


async def test_delete_has_no_body(gcs: GcsClient) -> None:
    """204; and again 404."""
    await gcs.make("a")
    answer = await gcs.delete("a")

    assert (answer.status, answer.body) == (204, b"")
    assert (await gcs.delete("a")).brief == (404, "notFound")


# --- moving and copying ----------------------------------------------------------------------


async def test_move_keeps_content_and_makes_a_new_generation(gcs: GcsClient) -> None:
    """Checksums and metadata stay; generation, metageneration and times are new."""
    old = (await gcs.upload({"name": "a/b", "metadata": {"k": "v"}}, b"x")).json
    moved = (await gcs.move("a/b", "c", ifGenerationMatch=0)).json

    assert moved["name"] == "c"
    assert int(moved["generation"]) > int(old["generation"])
    assert moved["metageneration"] == "1"
    for key in ("crc32c", "md5Hash", "metadata", "size", "contentType"):
        assert moved[key] == old[key]
    assert await gcs.names() == ["c"]


async def test_moves_that_cannot_be(gcs: GcsClient) -> None:
    """From nothing, onto itself, onto what must not be there; nothing has moved then."""
    await gcs.make("a", b"a")
    await gcs.make("b", b"b")

    assert (await gcs.move("none", "c")).brief == (404, "notFound")
    assert (await gcs.move("a", "a")).brief == (400, "invalid")
    assert (await gcs.move("a", "b", ifGenerationMatch=0)).brief == (412, "conditionNotMet")
    assert await gcs.names() == ["a", "b"]


async def test_server_without_moves(gcs: GcsClient) -> None:
    """An older one answers 404 that names no object."""
    gcs.emulator.service.create_bucket("old", BucketOptions(moves=False))
    gcs.bucket = "old"
    await gcs.make("a")

    answer = await gcs.move("a", "b")

    assert answer.brief == (404, "notFound")
    assert "object" not in answer.json["error"]["message"]


async def test_rewrite_in_one_call(gcs: GcsClient) -> None:
    """What is said of the copy replaces what was said of the source."""
    await gcs.upload({"name": "a", "metadata": {"k": "v"}}, b"x")
    plain = (await gcs.ask("POST", "o/a/rewriteTo/b/data/o/b")).json
    said = (await gcs.ask("POST", "o/a/rewriteTo/b/data/o/c", {"metadata": {"n": "w"}})).json
    key = (await gcs.ask("POST", "o/a/rewriteTo/b/data/o/d", destinationKmsKeyName="K")).json

    assert plain["kind"] == "storage#rewriteResponse"
    assert (plain["done"], plain["objectSize"], plain["totalBytesRewritten"]) == (True, "1", "1")
    assert "rewriteToken" not in plain
    assert plain["resource"]["metadata"] == {"k": "v"}
    assert said["resource"]["metadata"] == {"n": "w"}
    assert (key["resource"]["kmsKeyName"], key["resource"]["metadata"]) == ("K", {"k": "v"})


async def test_rewrite_in_several_calls(gcs: GcsClient) -> None:
    """Each call tells how far it is and the token of the next; the last has the object."""
    gcs.emulator.service.limits = GcsLimits(rewrite_bytes=1 << 20)
    await gcs.make("a", bytes(2_500_000))
    query: dict[str, Any] = {}
    seen = []
    while True:
        shown = (await gcs.ask("POST", "o/a/rewriteTo/b/data/o/b", **query)).json
        seen.append(shown["totalBytesRewritten"])
        if shown["done"]:
            break
        assert await gcs.names() == ["a"]
        query = {"rewriteToken": shown["rewriteToken"]}
    other = await gcs.ask("POST", "o/a/rewriteTo/b/data/o/c", rewriteToken="x")

    assert seen == ["1048576", "2097152", "2500000"]
    assert shown["resource"]["size"] == "2500000"
    assert other.brief == (400, "invalid")


async def test_copy_to_another_bucket(gcs: GcsClient) -> None:
    """Both ways of copying."""
    gcs.emulator.service.create_bucket("other")
    await gcs.make("a", b"x")
    rewritten = await gcs.ask("POST", "o/a/rewriteTo/b/other/o/b")
    copied = await gcs.ask("POST", "o/a/copyTo/b/other/o/c")
    gcs.bucket = "other"

    assert rewritten.json["resource"]["bucket"] == "other"
    assert copied.json["name"] == "c"
    assert await gcs.names() == ["b", "c"]


async def test_compose(gcs: GcsClient) -> None:
    """One behind the other; the whole has no MD5, and says of how many it is."""
    generation = await gcs.make("a", b"1")
    await gcs.make("b", b"2")
    wanted = {"ifGenerationMatch": str(generation)}
    sources = [{"name": "a", "objectPreconditions": wanted}, {"name": "b"}]
    said = {"sourceObjects": sources, "destination": {"contentType": "x/y"}}
    made = (await gcs.ask("POST", "o/c/compose", said)).json
    stale = [{"name": "a", "generation": str(generation + 1)}]

    assert (made["size"], made["componentCount"], made["contentType"]) == ("2", 2, "x/y")
    assert "md5Hash" not in made
    assert "md5" not in (await gcs.media("c")).headers["x-goog-hash"]
    assert (await gcs.media("c")).body == b"12"
    assert (await gcs.ask("POST", "o/c/compose", {"sourceObjects": stale})).status == 404
    for wrong in (
        {},
        {"sourceObjects": [5]},
        {"sourceObjects": [{"name": "a", "generation": "x"}]},
        {"sourceObjects": [{"name": "a"}], "deleteSourceObjects": "yes"},
    ):
        assert (await gcs.ask("POST", "o/c/compose", wrong)).status == 400


COMPOSED = b'{"sourceObjects": [{"name": "a"}, {"name": "a"}]}'


@pytest.mark.parametrize(
    "body, expected",
    [
        pytest.param(gzip.compress(COMPOSED), (200, ""), id="whole"),
        pytest.param(gzip.compress(COMPOSED)[:-1], (400, "parseError"), id="cut"),
        pytest.param(gzip.compress(b"{"), (400, "parseError"), id="no JSON"),
        pytest.param(gzip.compress(b" " * 10_000_000 + COMPOSED), (400, "parseError"), id="long"),
        pytest.param(COMPOSED, (400, "parseError"), id="plain"),
    ],
)
async def test_compressed_json(gcs: GcsClient, body: bytes, expected: tuple[int, str]) -> None:
    """JSON may come compressed; what is not, or is endless, is refused like any that is wrong."""
    await gcs.make("a", b"1")
    target = f"/storage/v1/b/{BUCKET}/o/c/compose"
    answer = await gcs.send("POST", target, body, {"Content-Encoding": "gzip"})

    assert answer.brief == expected
    assert await gcs.names() == (["a", "c"] if expected[0] == 200 else ["a"])


# --- URLs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method, target, status",
    [
        ("GET", "/", 404),
        ("GET", "/storage/v1", 404),
        ("GET", "/storage/v1/x", 404),
        ("GET", "/storage/v2/b/data/o", 404),
        ("GET", "/storage/v1/b/data/o/a/b", 404),
        ("GET", "/storage/v1/b/data/o/%FF", 400),
        ("POST", "/storage/v1/b/data/o", 405),
        ("POST", "/storage/v1/b/data/o/a", 405),
        ("POST", "/storage/v1/b/data/o/a/moveTo/x/b", 404),
        ("POST", "/storage/v1/b/data/o/a/rewriteTo/b/data/x/b", 404),
        ("GET", "/upload/storage/v1/b/data/o", 405),
        ("POST", "/upload/storage/v1/b/data", 404),
        ("GET", "/batch/storage/v1", 404),
    ],
)
async def test_urls_that_are_none(gcs: GcsClient, method: str, target: str, status: int) -> None:
    """An unencoded slash in a name makes another URL, which there is not."""
    assert (await gcs.send(method, target)).status == status


async def test_verb_in_a_header(gcs: GcsClient) -> None:
    """POST can stand for PATCH where PATCH cannot be sent."""
    await gcs.make("a")
    headers = {"X-HTTP-Method-Override": "PATCH"}
    place = f"/storage/v1/b/data/o/{segment('a')}"

    assert (await gcs.send("POST", place, b'{"contentType":"a/b"}', headers)).status == 200
    assert (await gcs.get("a")).json["contentType"] == "a/b"


async def test_acls_are_refused(gcs: GcsClient) -> None:
    """Access to a bucket is uniform, as its resource says: an ACL is refused, and not ignored."""
    await gcs.make("a")
    given = {"acl": [{"entity": "allUsers", "role": "READER"}]}

    answers = [
        await gcs.ask("GET", "acl"),
        await gcs.ask("POST", "defaultObjectAcl", given["acl"][0]),
        await gcs.ask("GET", "o/a/acl"),
        await gcs.ask("PATCH", "o/a", given),
        await gcs.put("b", predefinedAcl="publicRead"),
    ]

    assert {answer.brief for answer in answers} == {(400, "invalid")}
    assert "uniform bucket-level access" in answers[0].json["error"]["message"]
    assert (await gcs.get("b")).status == 404

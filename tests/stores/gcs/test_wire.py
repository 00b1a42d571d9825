"""Names, etags, listings and uploads as they are on the wire."""

from __future__ import annotations

import base64
import json
import math
from contextlib import suppress
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.gcs.wire import (
    TOKEN,
    encode,
    folder_query,
    folders_listed,
    generation_of,
    info_of,
    json_of,
    list_query,
    listed,
    metadata_of,
    multipart,
    parse_date,
)
from asynccommit.testing.models.gcs.model import GcsService
from tests.support.contract import NAMES

GENERATION = "1709658548123456"
CRC = base64.b64encode(bytes.fromhex("0a1b2c3d")).decode()
ITEM = {
    "name": "t/f",
    "size": "4",
    "generation": GENERATION,
    "crc32c": CRC,
    "updated": "2024-03-05T17:09:08.250Z",
}

segments = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\r\n\x00"), min_size=1, max_size=9
).filter(lambda name: name not in (".", ".."))


def page(*items: Any, prefixes: Any = (), **more: Any) -> bytes:
    """Return a page of a listing."""
    found = {"kind": "storage#objects", "items": items, "prefixes": prefixes, **more}
    return json.dumps(found).encode()


def item(name: str, **more: Any) -> dict[str, Any]:
    """Return an object of a listing."""
    return {**ITEM, "name": name, **more}


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, name",
    [
        ("/f", "f"),
        ("/a/b.c/part-0_1~.parquet", "a%2Fb.c%2Fpart-0_1~.parquet"),
        ("/a b/100%", "a%20b%2F100%25"),
        ("/day=1/é?#", "day%3D1%2F%C3%A9%3F%23"),
        ("/.../..a", "...%2F..a"),
        ("/a+b&c", "a%2Bb%26c"),
    ],
)
def test_a_path_is_a_name_in_one_segment(path: str, name: str) -> None:
    """Slashes are encoded as well: the name is one segment of the URL."""
    assert encode(path) == name


@given(st.lists(segments, min_size=1, max_size=4))
def test_every_name_decodes_to_itself(names: list[str]) -> None:
    """Whatever characters it has; nothing is left that a URL could misread."""
    encoded = encode("/" + "/".join(names))
    assert unquote(encoded) == "/".join(names)
    assert not set(encoded) & set("/?#&= ")


@pytest.mark.parametrize("name", [name for name in NAMES if "\n" not in name])
def test_hostile_names_are_names(name: str) -> None:
    """All that the contract asks for, but for the one with a line's end."""
    assert unquote(encode(f"/d/{name}")) == f"d/{name}"


@pytest.mark.parametrize(
    "path, said",
    [
        ("/a\nb", "which is not allowed in an object name"),
        ("/a\r/b", "which is not allowed in an object name"),
        ("/a\0", "which is not allowed in an object name"),
        ("/.", "is not a valid file name"),
        ("/a/../b", "is not a valid file name"),
        ("/a//b", "is not a valid file name"),
        ("/a/", "is not a valid file name"),
        ("/", "is not a valid file name"),
        ("/a\udcff", "is not Unicode text"),
        ("/.well-known/acme-challenge/x", "is reserved"),
        ("/" + "n" * 1025, "has more than 1024 bytes"),
        ("/d/" + "é" * 512, "has more than 1024 bytes"),
    ],
)
def test_a_name_that_cannot_be_is_refused(path: str, said: str) -> None:
    """With what is wrong about it."""
    with pytest.raises(ValueError, match=said):
        encode(path)


@pytest.mark.parametrize("path", ["/" + "n" * 1024, "/" + "é" * 512, "/d/" + " " * 1022])
def test_a_name_of_the_longest_kind_is_one(path: str) -> None:
    """1,024 bytes of UTF-8, however long that is in a URL."""
    assert unquote(encode(path)) == path[1:]


# --- etags -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "etag", [GENERATION, f"{GENERATION}-0a1b2c3d", f'"{GENERATION}-0a1b2c3d"', f'"{GENERATION}"']
)
def test_our_etags_name_a_generation(etag: str) -> None:
    """With a checksum or without, with quotes or without."""
    assert generation_of(etag) == GENERATION


@given(st.integers(1, (1 << 63) - 1))
def test_the_etag_of_the_service_names_it_too(generation: int) -> None:
    """Other clients write that one into their manifests."""

    def varint(value: int) -> bytes:
        groups = bytes(value >> 7 * at & 127 | 128 for at in range((value.bit_length() + 6) // 7))
        return groups[:-1] + bytes([groups[-1] & 127])

    data = b"\x08" + varint(generation) + b"\x10" + varint(3)
    assert generation_of(base64.b64encode(data).decode()) == str(generation)


def test_the_etags_of_the_model_are_read() -> None:
    """As the emulator gives them."""
    service = GcsService(now=lambda: 1.7e9, new_id=lambda: "1")
    service.create_bucket("data")
    made = service.insert("data", "f", b"x")
    assert generation_of(made.etag) == str(made.generation)


@pytest.mark.parametrize(
    "etag",
    [
        *("", "0", "-1", "0-0a1b2c3d", "12-xyz", "0x8DABC", "a\nb", "é", "9" * 20, " 12", "12 "),
        *("\u0661\u0662", "CAE=", "CAEQARgB", "CP///////////wEQAQ==", "CAAQAQ=="),
    ],
)
def test_what_is_no_etag_is_refused(etag: str) -> None:
    """It names no generation; a manifest of another store may have it."""
    with pytest.raises(ValueError, match="is not an etag of Google Cloud Storage"):
        generation_of(etag)


@given(st.text(max_size=40))
def test_any_text_is_an_etag_or_refused(text: str) -> None:
    """Nothing else comes of it, and what comes can be part of a URL."""
    with suppress(ValueError):
        assert generation_of(text).isdecimal()


# --- objects ---------------------------------------------------------------------------------


def test_metadata_are_what_is_at_a_path() -> None:
    """Size, etag, time, and the token that a put left."""
    body = json.dumps({**ITEM, "metadata": {TOKEN: "1-2-3", "other": "x"}}).encode()
    etag = f"{GENERATION}-0a1b2c3d"

    expected = Info("/t/f", Kind.FILE, 4, etag, 1709658548.25, token="1-2-3")
    assert info_of("/t/f", body) == expected


@pytest.mark.parametrize(
    "said, held",
    [
        ({}, 0.0),
        ({"temporaryHold": False, "eventBasedHold": False}, 0.0),
        ({"temporaryHold": True}, math.inf),
        ({"eventBasedHold": True, "retentionExpirationTime": "2024-03-05T17:09:08Z"}, math.inf),
        ({"retentionExpirationTime": "2024-03-05T17:09:08.250Z"}, 1709658548.25),
    ],
)
def test_an_object_says_until_when_it_is_held(said: dict[str, Any], held: float) -> None:
    """In listings too, which ask for it."""
    page = json.dumps({"kind": "storage#objects", "items": [{**ITEM, **said}]}).encode()
    assert info_of("/t/f", json.dumps({**ITEM, **said}).encode()).held == held
    assert [info.held for info in listed(page, "/t").entries] == [held]
    for name in ("temporaryHold", "eventBasedHold", "retentionExpirationTime"):
        assert name in list_query("/t", 10, None, tree=True, hierarchical=False)


def test_an_empty_object_may_leave_its_size_out() -> None:
    """A server that says nothing of the size says by the checksum that there is no byte."""
    said = {name: value for name, value in ITEM.items() if name != "size"}
    empty = info_of("/t/f", json.dumps({**said, "crc32c": "AAAAAA=="}).encode())

    assert (empty.kind, empty.size) == (Kind.FILE, 0)
    with pytest.raises(ValueError, match="not an object"):
        info_of("/t/f", json.dumps(said).encode())


def test_an_object_without_checksum_has_its_generation_for_an_etag() -> None:
    """As one that is encrypted with a key of the caller's."""
    bare = {key: value for key, value in ITEM.items() if key != "crc32c"}
    assert info_of("/t/f", json.dumps(bare).encode()).etag == GENERATION


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        json.dumps({**ITEM, "name": "other"}).encode(),
        json.dumps({**ITEM, "name": 7}).encode(),
        json.dumps({**ITEM, "size": "-4"}).encode(),
        json.dumps({**ITEM, "size": "many"}).encode(),
        json.dumps({**ITEM, "size": None}).encode(),
        json.dumps({**ITEM, "generation": 17}).encode(),
        json.dumps({**ITEM, "generation": "x"}).encode(),
        json.dumps({**ITEM, "crc32c": "é"}).encode(),
        json.dumps({**ITEM, "crc32c": 5}).encode(),
    ],
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    """A portal's page, or another server's idea of an object."""
    with pytest.raises(ValueError, match="the response is"):
        info_of("/t/f", body)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("2024-03-05T17:09:08.250Z", 1709658548.25),
        ("2024-03-05T17:09:08Z", 1709658548.0),
        ("2024-03-05T17:09:08.123456789Z", 1709658548.123456),
        ("2024-03-05T18:09:08+01:00", 1709658548.0),
        ("soon", 0.0),
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_a_date_is_seconds(text: str | None, seconds: float) -> None:
    """And 0.0 where it is none: nobody fails for it."""
    assert parse_date(text) == seconds


@pytest.mark.parametrize("metadata", [None, "x", [], {TOKEN: 5}, {"other": "1"}])
def test_a_token_is_text_or_none(metadata: object) -> None:
    """Whatever else a server has there."""
    body = json.dumps({**ITEM, "metadata": metadata}).encode()
    assert info_of("/t/f", body).token is None


# --- listings --------------------------------------------------------------------------------


def test_a_page_has_files_and_directories() -> None:
    """Prefixes are directories; the directory's own placeholder is left out, and told of."""
    body = page(item("t/"), item("t/f"), item("t/g"), prefixes=["t/d/", "t/e/"], nextPageToken="n")
    found = listed(body, "/t")

    assert [(info.path, info.kind) for info in found.entries] == [
        ("/t/f", Kind.FILE),
        ("/t/g", Kind.FILE),
        ("/t/d", Kind.DIRECTORY),
        ("/t/e", Kind.DIRECTORY),
    ]
    assert (found.itself, found.token) == (True, "n")
    assert found.entries[0] == info_of("/t/f", json.dumps(ITEM).encode())


def test_an_empty_page_has_nothing() -> None:
    """No keys at all, as the service writes it."""
    assert listed(b'{"kind":"storage#objects"}', "/t") == ([], False, None)


def test_a_file_and_a_directory_of_one_name_are_both_listed() -> None:
    """The service has them side by side."""
    found = listed(page(item("t/a"), prefixes=["t/a/"]), "/t").entries
    assert [(info.path, info.is_dir) for info in found] == [("/t/a", False), ("/t/a", True)]


def test_what_no_path_can_name_is_of_no_kind() -> None:
    """Empty names and dots, which clients would resolve."""
    names = (item("t/."), item("t/.."), item("t/..."))
    found = listed(page(*names, prefixes=["t//", "t/./", "t/../", "t/ok/"]), "/t")
    named = [info for info in found.entries if info.kind is not Kind.OTHER]
    assert [info.path for info in named] == ["/t/...", "/t/ok"]
    assert len(found.entries) > len(named)


def test_a_tree_has_what_can_be_deleted() -> None:
    """Files of any name; placeholders as directories that have an etag, if a path can name them."""
    names = ("t/", "t/a/", "t/a/f", "t//x", "t/../y", "t/../", "t/b//")
    found = listed(page(*map(item, names)), "/t", tree=True)
    assert [(info.path, info.is_dir) for info in found.entries] == [
        ("/t/a", True),
        ("/t/a/f", False),
        ("/t//x", False),
        ("/t/../y", False),
        ("/t/../", False),
        ("/t/b//", False),
    ]
    assert all(info.etag for info in found.entries)


def test_the_root_is_listed() -> None:
    """All names begin with nothing."""
    found = listed(page(item("f"), prefixes=["d/"]), "/")
    assert [info.path for info in found.entries] == ["/f", "/d"]


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        page({}),
        page(7),
        page(item("other/f")),
        page(item("t")),
        page(prefixes=["other/"]),
        page(prefixes=["t/no-slash"]),
        page(prefixes=[7]),
        page(item("t/f", size="-1")),
        page(nextPageToken=7),
        json.dumps({"kind": "storage#objects", "items": 5}).encode(),
        json.dumps({"kind": "storage#buckets"}).encode(),
    ],
)
def test_what_is_no_listing_is_refused(body: bytes) -> None:
    """Or one of another directory: what it names might be deleted."""
    with pytest.raises(ValueError, match="the response is not"):
        listed(body, "/t")


def test_folders_are_directories() -> None:
    """The listed one is told of and left out."""
    names = [{"name": "t/"}, {"name": "t/a/"}, {"name": "t/a/b/"}]
    found = folders_listed(json.dumps({"items": names, "nextPageToken": "n"}).encode(), "/t")
    assert found == ([Info("/t/a", Kind.DIRECTORY), Info("/t/a/b", Kind.DIRECTORY)], True, "n")


@pytest.mark.parametrize("items", [5, [5], [{}], [{"name": "other/"}], [{"name": "t/f"}]])
def test_what_are_no_folders_is_refused(items: object) -> None:
    """Or those of another one."""
    with pytest.raises(ValueError, match="the response is not a listing"):
        folders_listed(json.dumps({"items": items}).encode(), "/t")


def test_a_listing_is_asked_for_by_prefix() -> None:
    """One level by a delimiter, a tree without, folders where there are any."""
    asked = parse_qs(list_query("/a b/ü&", 7, "t+/=", tree=False, hierarchical=True))
    assert asked["prefix"] == ["a b/ü&/"]
    assert asked["delimiter"] == ["/"]
    assert asked["maxResults"] == ["7"]
    assert asked["pageToken"] == ["t+/="]
    assert asked["includeFoldersAsPrefixes"] == ["true"]

    asked = parse_qs(list_query("/", 7, None, tree=True, hierarchical=True))
    assert not {"delimiter", "pageToken", "includeFoldersAsPrefixes", "prefix"} & asked.keys()
    asked = parse_qs(folder_query("/t", 9, "n"))
    assert (asked["prefix"], asked["pageSize"], asked["pageToken"]) == (["t/"], ["9"], ["n"])


@given(st.binary(max_size=200))
def test_any_answer_is_read_or_refused(body: bytes) -> None:
    """Nothing but a ValueError comes of one that is none."""
    with suppress(ValueError):
        assert isinstance(json_of(body), dict)
    for read in (listed, folders_listed):
        with suppress(ValueError):
            read(body, "/t")
    with pytest.raises(ValueError, match="the response is"):
        info_of("/t", body)


# --- uploads ---------------------------------------------------------------------------------


@given(st.binary(max_size=60), st.sampled_from([b"", b"--=asynccommit=", b"\r\n--=asynccommit=1="]))
def test_an_upload_is_two_parts(data: bytes, hostile: bytes) -> None:
    """Metadata and content, whatever the content looks like."""
    data = hostile + data + hostile
    kind, body = multipart(metadata_of("a/ü", "1-2-3"), data)
    message = BytesParser(policy=HTTP).parsebytes(b"content-type: " + kind.encode() + b"\n\n")
    boundary = b"--" + str(message.get_boundary()).encode()

    assert body.count(boundary) == 3
    start, first, second, end = body.split(boundary)
    assert (start, end) == (b"", b"--\r\n")
    assert json.loads(first.partition(b"\r\n\r\n")[2])["metadata"] == {TOKEN: "1-2-3"}
    assert json.loads(first.partition(b"\r\n\r\n")[2])["name"] == "a/ü"
    assert second.partition(b"\r\n\r\n")[2] == data + b"\r\n"


def test_an_upload_without_a_token_has_no_metadata_of_ours() -> None:
    """Only name and type."""
    assert json.loads(metadata_of("f", None)).keys() == {"name", "contentType"}

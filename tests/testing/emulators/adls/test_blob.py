"""The blob endpoint over the same files, as SDKs and adlfs ask it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from azure.storage.blob.aio import BlobServiceClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.testing.emulators.adls.client import Answer, WireClient

BLOB = {"x_ms_blob_type": "BlockBlob"}
AGENT = {"user_agent": "azsdk-python-storage-blob/12.0"}


def _xml(answer: Answer) -> ElementTree.Element:
    return ElementTree.fromstring(answer.body.decode("utf-8-sig"))


def _names(answer: Answer, tag: str = "Blob") -> list[str | None]:
    return [_.findtext("Name") for _ in _xml(answer).iter(tag)]


async def test_container_from_create_to_delete(wire: WireClient) -> None:
    """It is a filesystem under another name."""
    wire.filesystem = "other"

    made = await wire.ask("PUT", "", "restype=container", x_ms_meta_k="v")
    again = await wire.ask("PUT", "", "restype=container")
    told = await wire.ask("GET", "", "restype=container")
    set_again = await wire.ask("PUT", "", "restype=container&comp=metadata", x_ms_meta_l="w")
    deleted = await wire.ask("DELETE", "", "restype=container")
    gone = await wire.ask("GET", "", "restype=container")

    assert made.status == 201
    assert again.brief == (409, "ContainerAlreadyExists")
    assert (told.status, told.headers["x-ms-meta-k"]) == (200, "v")
    assert set_again.status == 200
    assert deleted.status == 202
    assert gone.brief == (404, "ContainerNotFound")
    assert _xml(gone).findtext("Code") == "ContainerNotFound"


async def test_containers_are_listed(wire: WireClient) -> None:
    """In XML, with their metadata if wanted."""
    wire.emulator.model.create_filesystem("other", {"k": "<v>"})

    answer = await wire.ask("GET", None, "comp=list&include=metadata&maxresults=1&prefix=")
    marker = _xml(answer).findtext("NextMarker") or ""
    rest = await wire.ask(
        "GET", None, f"comp=list&include=metadata&marker={quote(marker, safe='')}"
    )

    assert _names(answer, "Container") == ["data"]
    assert _names(rest, "Container") == ["other"]
    assert _xml(rest).findtext(".//Metadata/k") == "<v>"


async def test_account_tells_its_kind(wire: WireClient) -> None:
    """Whether there are directories can be asked before anything is there."""
    answer = await wire.ask("GET", None, "restype=account&comp=properties")

    assert answer.headers["x-ms-is-hns-enabled"] == "true"


async def test_put_blob_writes_a_whole_file(wire: WireClient) -> None:
    """Content, metadata and headers in one request; the parents are made."""
    answer = await wire.ask(
        "PUT", "d/a", body=b"data", x_ms_meta_k="v", x_ms_blob_content_type="text/csv", more=BLOB
    )

    told = await wire.ask("HEAD", "d/a", more=AGENT)
    assert answer.status == 201
    assert told.etag == answer.etag
    assert told.headers["x-ms-meta-k"] == "v"
    assert told.headers["content-type"] == "text/csv"
    assert told.headers["content-length"] == "4"
    assert told.headers["x-ms-blob-type"] == "BlockBlob"
    assert (await wire.ask("GET", "d/a")).body == b"data"


@pytest.mark.parametrize(
    "path, headers, expected",
    [
        ("a", {"if_none_match": "*"}, (409, "BlobAlreadyExists")),
        ("a", {"if_match": '"0x1"'}, (412, "ConditionNotMet")),
        ("a", {"x_ms_blob_type": "PageBlob"}, (400, "InvalidHeaderValue")),
        ("a", {"content_md5": "AAAA"}, (400, "Md5Mismatch")),
        ("a", {"x_ms_lease_id": "5"}, (412, "LeaseNotPresentWithBlobOperation")),
    ],
)
async def test_put_blob_that_is_refused(
    wire: WireClient, path: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """Nothing is changed, and the codes are the blob endpoint's."""
    await wire.make("a", b"one")

    answer = await wire.ask("PUT", path, body=b"two", more={**BLOB, **headers})

    assert answer.brief == expected
    assert (await wire.ask("GET", "a")).body == b"one"


async def test_directory_is_a_blob_with_a_mark(wire: WireClient) -> None:
    """Its metadata say that it is a folder."""
    await wire.mkdir("d")

    told = await wire.ask("HEAD", "d", more=AGENT)

    assert told.headers["x-ms-meta-hdi_isfolder"] == "true"
    assert told.headers["content-length"] == "0"


async def test_missing_blob_has_the_blob_s_code(wire: WireClient) -> None:
    """By User-Agent where nothing else tells the endpoints apart."""
    blob = await wire.ask("HEAD", "none", more=AGENT)
    lake = await wire.ask("HEAD", "none", user_agent="azsdk-python-storage-dfs/12.0")
    plain = await wire.ask("HEAD", "none")

    assert blob.brief == lake.brief == (404, "BlobNotFound")
    assert plain.brief == (404, "PathNotFound")


@pytest.mark.parametrize("agent", ["azsdk-go-azblob/v1.8.3", AGENT["user_agent"]])
async def test_delete_of_a_client_that_says_blob(wire: WireClient, agent: str) -> None:
    """It is answered with 202, the only status that these clients take."""
    await wire.make("a")

    answer = await wire.ask("DELETE", "a", user_agent=agent)

    assert answer.status == 202


async def test_host_name_tells_the_endpoint(wire: WireClient) -> None:
    """As it does with the real service."""
    host = {"Host": f"{wire.emulator.account}.blob.core.windows.net"}

    answer = await wire.send("HEAD", "/data/none", headers=host)

    assert answer.brief == (404, "BlobNotFound")


async def test_blobs_are_listed_by_directory(wire: WireClient) -> None:
    """With a delimiter directories are prefixes; a prefix may end anywhere in a name."""
    for name in ("d/a", "d/b", "d/e/c", "da", "x"):
        await wire.make(name)
    base = "restype=container&comp=list&delimiter=%2F"

    root = await wire.ask("GET", "", base)
    start = await wire.ask("GET", "", f"{base}&prefix=d")
    inside = await wire.ask("GET", "", f"{base}&prefix=d%2F")
    missing = await wire.ask("GET", "", f"{base}&prefix=none%2Fa")

    assert (_names(root), _names(root, "BlobPrefix")) == (["da", "x"], ["d/"])
    assert (_names(start), _names(start, "BlobPrefix")) == (["da"], ["d/"])
    assert (_names(inside), _names(inside, "BlobPrefix")) == (["d/a", "d/b"], ["d/e/"])
    assert _names(missing) == []


async def test_blobs_are_listed_with_all_below(wire: WireClient) -> None:
    """Without a delimiter directories are blobs that metadata mark."""
    await wire.make("d/a", b"data")

    answer = await wire.ask("GET", "", "restype=container&comp=list&include=metadata&prefix=d")

    directory, file = _xml(answer).iter("Blob")
    assert _names(answer) == ["d", "d/a"]
    assert directory.findtext(".//hdi_isfolder") == "true"
    assert file.findtext(".//Content-Length") == "4"
    assert file.findtext(".//Etag") == (await wire.head("d/a")).etag.strip('"')


async def test_blob_listing_comes_in_pages(wire: WireClient) -> None:
    """NextMarker leads on and is empty at the end."""
    for number in range(5):
        await wire.make(f"f{number}")
    marker = ""
    names: list[str | None] = []

    while not names or marker:
        answer = await wire.ask(
            "GET",
            "",
            f"restype=container&comp=list&maxresults=2&marker={quote(marker, safe='')}",
        )
        names += _names(answer)
        marker = _xml(answer).findtext("NextMarker") or ""

    assert names == [f"f{number}" for number in range(5)]


async def test_blocks_make_a_blob(wire: WireClient) -> None:
    """Blocks are staged, shown, and made a blob in the order of the list."""
    one, two = (base64.b64encode(name).decode() for name in (b"one", b"two"))
    for name, data in ((one, b"1"), (two, b"22")):
        staged = await wire.ask("PUT", "d/a", f"comp=block&blockid={quote(name)}", body=data)
        assert staged.status == 201
    missing = await wire.ask("HEAD", "d/a", more=AGENT)

    made = await _put_list(wire, f"<Latest>{two}</Latest><Uncommitted>{one}</Uncommitted>")
    shown = await wire.ask("GET", "d/a", "comp=blocklist&blocklisttype=all")

    assert missing.status == 404
    assert made.status == 201
    assert (await wire.ask("GET", "d/a")).body == b"221"
    assert [_.findtext("Size") for _ in _xml(shown).iter("Block")] == ["2", "1"]


async def _put_list(wire: WireClient, blocks: str, **headers: str) -> Answer:
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode()
    digest = base64.b64encode(hashlib.md5(body).digest()).decode()
    return await wire.ask(
        "PUT", "d/a", "comp=blocklist", body=body, content_md5=digest, more=headers
    )


async def test_blocks_of_a_blob_can_stay(wire: WireClient) -> None:
    """A list may name blocks that the blob has already."""
    one, two = (base64.b64encode(name).decode() for name in (b"one", b"two"))
    await wire.ask("PUT", "d/a", f"comp=block&blockid={quote(one)}", body=b"1")
    await _put_list(wire, f"<Latest>{one}</Latest>")
    await wire.ask("PUT", "d/a", f"comp=block&blockid={quote(two)}", body=b"22")

    await _put_list(wire, f"<Committed>{one}</Committed><Latest>{two}</Latest>")

    assert (await wire.ask("GET", "d/a")).body == b"122"


@pytest.mark.parametrize(
    "blocks, code",
    [
        ("<Latest>eA==</Latest>", "InvalidBlockList"),
        ("<Latest>", "InvalidXmlDocument"),
        ("<!DOCTYPE a><Latest>eA==</Latest>", "InvalidXmlDocument"),
    ],
)
async def test_block_lists_that_are_none(wire: WireClient, blocks: str, code: str) -> None:
    """Unknown blocks, and what is no list."""
    assert (await _put_list(wire, blocks)).brief == (400, code)


@pytest.mark.parametrize("name, body", [("%", b"x"), ("", b"x"), ("eA==", b"")])
async def test_blocks_that_are_none(wire: WireClient, name: str, body: bytes) -> None:
    """A block has a name in base64, and some bytes."""
    answer = await wire.ask("PUT", "a", f"comp=block&blockid={quote(name)}", body=body)

    assert answer.status == 400


async def test_copy_takes_content_and_metadata(wire: WireClient) -> None:
    """It is done when it is answered, and told until the blob is written again."""
    await wire.ask("PUT", "a", body=b"data", x_ms_meta_k="v", more=BLOB)

    answer = await wire.ask("PUT", "b", x_ms_copy_source=f"{wire.emulator.url}/data/a")

    told = await wire.ask("HEAD", "b", more=AGENT)
    await wire.ask("PUT", "b", body=b"more", more=BLOB)
    later = await wire.ask("HEAD", "b", more=AGENT)
    assert answer.status == 202
    assert told.headers["x-ms-copy-status"] == "success"
    assert told.headers["x-ms-copy-progress"] == "4/4"
    assert "x-ms-copy-status" not in later.headers
    assert answer.headers["x-ms-copy-status"] == "success"
    assert told.headers["x-ms-meta-k"] == "v"
    assert (await wire.ask("GET", "b")).body == b"more"


async def test_put_from_a_url_makes_a_blob_of_another(wire: WireClient) -> None:
    """It is answered as a write, with 201, and takes what the request does not give."""
    own = {"x_ms_meta_k": "v", "x_ms_blob_content_type": "text/csv", **BLOB}
    await wire.ask("PUT", "a", body=b"data", more=own)
    source = {"x_ms_copy_source": f"{wire.emulator.url}/data/a", **BLOB}

    answer = await wire.ask("PUT", "b", more=source)
    given = await wire.ask("PUT", "c", x_ms_meta_l="w", more=source)

    told = await wire.ask("HEAD", "b", more=AGENT)
    assert (answer.status, given.status) == (201, 201)
    assert "x-ms-copy-id" not in answer.headers
    assert "x-ms-copy-status" not in told.headers
    assert answer.headers["content-md5"] == base64.b64encode(hashlib.md5(b"data").digest()).decode()
    assert (told.headers["x-ms-meta-k"], told.headers["content-type"]) == ("v", "text/csv")
    assert (await wire.ask("GET", "b")).body == b"data"
    assert "x-ms-meta-k" not in (await wire.ask("HEAD", "c", more=AGENT)).headers


@pytest.mark.parametrize(
    "headers, body, expected",
    [
        ({"x_ms_source_content_md5": base64.b64encode(b"0" * 16).decode()}, b"", "Md5Mismatch"),
        ({"x_ms_blob_type": "AppendBlob"}, b"", "InvalidHeaderValue"),
        ({}, b"x", "InvalidHeaderValue"),
    ],
)
async def test_puts_from_a_url_that_are_refused(
    wire: WireClient, headers: dict[str, str], body: bytes, expected: str
) -> None:
    """Another content than promised, another type, or a body of its own."""
    await wire.make("a", b"data")
    source = {"x_ms_copy_source": f"{wire.emulator.url}/data/a", **BLOB, **headers}

    answer = await wire.ask("PUT", "b", body=body, more=source)

    assert answer.brief == (400, expected)
    assert (await wire.head("b")).status == 404


async def test_sdk_uploads_from_a_url(adls_emulator: AdlsEmulator) -> None:
    """Azure's SDK for Python takes nothing but 201 for it."""
    adls_emulator.model.create_filesystem("data")
    async with BlobServiceClient.from_connection_string(
        adls_emulator.connection_string, retry_total=0
    ) as service:
        source = service.get_blob_client("data", "a")
        await source.upload_blob(b"data")
        copy = service.get_blob_client("data", "b")
        await copy.upload_blob_from_url(source.url)
        content = await (await copy.download_blob()).readall()

    assert content == b"data"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("/data/none", (404, "BlobNotFound")),
        ("http://else/container/a", (404, "CannotVerifyCopySource")),
    ],
)
async def test_copies_that_are_refused(
    wire: WireClient, source: str, expected: tuple[int, str]
) -> None:
    """A source that is not there, or not here."""
    place = source if source.startswith("http") else wire.emulator.url + source

    answer = await wire.ask("PUT", "b", x_ms_copy_source=place)

    assert answer.brief == expected


async def test_metadata_and_headers_are_replaced(wire: WireClient) -> None:
    """Each by its own request; metadata as a whole."""
    await wire.ask("PUT", "a", body=b"x", x_ms_meta_k="v", more=BLOB)

    metadata = await wire.ask("PUT", "a", "comp=metadata", x_ms_meta_l="w")
    headers = await wire.ask("PUT", "a", "comp=properties", x_ms_blob_content_type="text/csv")

    told = await wire.ask("HEAD", "a", "comp=metadata")
    assert (metadata.status, headers.status) == (200, 200)
    assert told.headers["x-ms-meta-l"] == "w"
    assert "x-ms-meta-k" not in told.headers
    assert told.headers["content-type"] == "text/csv"


async def test_lease_of_a_blob(wire: WireClient) -> None:
    """The same lease that the dfs endpoint knows."""
    await wire.make("a")

    taken = await wire.ask(
        "PUT", "a", "comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1"
    )
    status = await wire.head("a")
    second = await wire.ask(
        "PUT", "a", "comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1"
    )
    refused = await wire.ask("DELETE", "a", x_ms_delete_snapshots="include")

    assert taken.status == 201
    assert status.headers["x-ms-lease-duration"] == "infinite"
    assert second.brief == (409, "LeaseAlreadyPresent")
    assert refused.brief == (412, "LeaseIdMissing")


async def test_delete_of_a_blob(wire: WireClient) -> None:
    """202, for an empty directory too; one that is not empty is refused."""
    await wire.make("d/a")

    full = await wire.ask("DELETE", "d", more=AGENT)
    file = await wire.ask("DELETE", "d/a", more=AGENT)
    empty = await wire.ask("DELETE", "d", more=AGENT)

    assert full.brief == (409, "DirectoryIsNotEmpty")
    assert (file.status, empty.status) == (202, 202)


@pytest.mark.parametrize(
    "method, path, query",
    [
        ("GET", "a", "comp=tier"),
        ("PUT", "a", "comp=page"),
        ("GET", None, "restype=service&comp=stats"),
        ("GET", "", "restype=container&comp=list&delimiter=%2C"),
    ],
)
async def test_what_the_emulator_lacks_is_refused(
    wire: WireClient, method: str, path: str | None, query: str
) -> None:
    """It says so, rather than to answer something else."""
    await wire.make("a")

    answer = await wire.ask(method, path, query)

    assert answer.brief == (400, "InvalidQueryParameterValue")


async def test_whole_blob_has_its_digest(wire: WireClient) -> None:
    """The service makes it; one that is given is kept as it is."""
    digest = base64.b64encode(hashlib.md5(b"data").digest()).decode()
    await wire.ask("PUT", "a", body=b"data", more=BLOB)
    await wire.ask("PUT", "b", body=b"data", x_ms_blob_content_md5="AAAA", more=BLOB)

    told = [await wire.ask("HEAD", name, more=AGENT) for name in ("a", "b")]

    assert [answer.headers["content-md5"] for answer in told] == [digest, "AAAA"]


async def test_blob_that_is_marked_as_a_directory(wire: WireClient) -> None:
    """An empty one with that metadata is a directory, with its other metadata."""
    given = {"x-ms-blob-type": "BlockBlob", "x-ms-meta-hdi_isfolder": "true", "x-ms-meta-k": "v"}
    made = await wire.send("PUT", f"/{wire.emulator.account}/data/d", headers=given)
    told = await wire.ask("HEAD", "d")

    assert made.status == 201
    assert told.headers["x-ms-resource-type"] == "directory"
    assert (await wire.ask("HEAD", "d", more=AGENT)).headers["x-ms-meta-k"] == "v"


async def test_plus_in_a_signed_query_is_a_space(wire: WireClient) -> None:
    """Obstore encodes spaces so, and signs the space."""
    await wire.make("h x/f")
    answer = await wire.ask("GET", "", "restype=container&comp=list&prefix=h+x%2F")

    assert _names(answer) == ["h x/f"]


@pytest.fixture
async def flat() -> AsyncIterator[WireClient]:
    """A client of a flat account with the blob ``d/e/f``."""
    async with AdlsEmulator(hns=False) as emulator, WireClient(emulator) as wire:
        emulator.model.create_filesystem("data")
        await wire.ask("PUT", "d/e/f", body=b"data", more=BLOB)
        yield wire


@pytest.mark.parametrize(
    "method, query",
    [
        ("HEAD", ""),
        ("GET", ""),
        ("GET", "comp=metadata"),
        ("GET", "comp=blocklist"),
        ("PUT", "comp=metadata"),
        ("PUT", "comp=properties"),
        ("PUT", "comp=lease"),
        ("DELETE", ""),
    ],
)
async def test_virtual_directory_of_a_flat_account_is_no_blob(
    flat: WireClient, method: str, query: str
) -> None:
    """A name that others begin with is not found, and the blobs stay."""
    for path in ("d", "d/e"):
        answer = await flat.ask(method, path, query, x_ms_lease_action="break", more=AGENT)
        assert answer.brief == (404, "BlobNotFound")

    assert (await flat.ask("GET", "d/e/f", more=AGENT)).body == b"data"
    assert (await flat.head("d")).headers["x-ms-resource-type"] == "directory"


async def test_virtual_directory_is_listed_as_a_prefix(flat: WireClient) -> None:
    """Without a delimiter only blobs are listed; with the last blob the prefix is gone."""
    listing = "restype=container&comp=list"
    every = await flat.ask("GET", "", listing)
    here = await flat.ask("GET", "", f"{listing}&delimiter=%2F")
    deleted = await flat.ask("DELETE", "d/e/f", more=AGENT)
    after = await flat.ask("GET", "", f"{listing}&delimiter=%2F")

    assert _names(every) == ["d/e/f"]
    assert (_names(here), _names(here, "BlobPrefix")) == ([], ["d/"])
    assert deleted.status == 202
    assert (_names(after), _names(after, "BlobPrefix")) == ([], [])
    assert (await flat.head("d")).brief == (404, "PathNotFound")


async def test_marker_makes_a_directory_a_blob(flat: WireClient) -> None:
    """In a flat account it is a blob beside the prefix, and can be deleted without the others."""
    marker = {"x-ms-blob-type": "BlockBlob", "x-ms-meta-hdi_isfolder": "true"}
    place = f"/{flat.emulator.account}/data/d"
    made = await flat.send("PUT", place, headers=marker | {"If-None-Match": "*"})
    told = await flat.ask("HEAD", "d", more=AGENT)
    listing = "restype=container&comp=list&delimiter=%2F"
    before = await flat.ask("GET", "", listing)
    deleted = await flat.ask("DELETE", "d", more=AGENT)
    gone = await flat.ask("HEAD", "d", more=AGENT)

    assert (made.status, told.headers["x-ms-meta-hdi_isfolder"]) == (201, "true")
    assert (_names(before), _names(before, "BlobPrefix")) == (["d"], ["d/"])
    assert (deleted.status, gone.brief) == (202, (404, "BlobNotFound"))
    assert (await flat.ask("GET", "d/e/f", more=AGENT)).body == b"data"


async def test_rename_of_the_last_blob_removes_its_prefix(flat: WireClient) -> None:
    """A directory that was made stays; one that was only a prefix goes with its last blob."""
    await flat.mkdir("made")
    await flat.rename("d/e/f", "made/f")
    await flat.ask("DELETE", "made/f", more=AGENT)

    assert await flat.names() == ["made"]

"""Blocks that no list has named yet: shown, limited, and discarded after a week."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import BlobServiceClient

from asynccommit.runtime.host import this_host
from asynccommit.testing.emulators.adls import blocks
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.testing.emulators.adls.client import Answer, WireClient

LISTED = "restype=container&comp=list&include=uncommittedblobs"
WEEK = 7 * 24 * 3600


def _id(name: str) -> str:
    return base64.b64encode(name.encode()).decode()


def _latest(name: str) -> str:
    return f"<Latest>{_id(name)}</Latest>"


async def _stage(wire: WireClient, path: str, name: str, **headers: str) -> Answer:
    query = f"comp=block&blockid={quote(_id(name), safe='')}"
    return await wire.ask("PUT", path, query, body=b"x" * len(name), more=headers)


async def _shown(wire: WireClient, path: str, kind: str) -> Any:
    """Return what a list of blocks shows: its sections, with the names in each."""
    answer = await wire.ask("GET", path, f"comp=blocklist&blocklisttype={kind}")
    if answer.status != 200:
        return answer.brief
    return {
        section.tag: [base64.b64decode(_.findtext("Name") or "").decode() for _ in section]
        for section in ElementTree.fromstring(answer.body.decode("utf-8-sig"))
    }


async def _listed(wire: WireClient, query: str = "") -> list[str | None]:
    answer = await wire.ask("GET", "", LISTED + query)
    root = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
    return [_.text for _ in root.iter("Name")]


async def test_uncommitted_blocks_are_listed_by_name(wire: WireClient) -> None:
    """Each kind of list has its sections, and without a committed blob there is no etag."""
    for name in ("b", "a"):
        assert (await _stage(wire, "d/f", name)).status == 201

    answer = await wire.ask("GET", "d/f", "comp=blocklist&blocklisttype=all")

    assert answer.status == 200
    assert "etag" not in answer.headers
    assert await _shown(wire, "d/f", "all") == {
        "CommittedBlocks": [],
        "UncommittedBlocks": ["a", "b"],
    }
    assert await _shown(wire, "d/f", "committed") == {"CommittedBlocks": []}
    assert await _shown(wire, "d/f", "uncommitted") == {"UncommittedBlocks": ["a", "b"]}
    assert await _shown(wire, "d/f", "some") == (400, "InvalidQueryParameterValue")
    assert await _shown(wire, "d/g", "all") == (404, "BlobNotFound")
    assert (await wire.head("d/f")).status == 404


async def test_sdk_resumes_an_upload_by_the_blocks_that_are_there(
    adls_emulator: AdlsEmulator,
) -> None:
    """Azure's SDK for Python lists, stages the rest, and commits."""
    adls_emulator.model.create_filesystem("data")
    async with BlobServiceClient.from_connection_string(
        adls_emulator.connection_string, retry_total=0
    ) as service:
        blob = service.get_blob_client("data", "d/a.csv")
        await blob.stage_block("1", b"AA,")
        _, there = await blob.get_block_list("all")
        await blob.stage_block("2", b"JFK")
        await blob.commit_block_list([*there, BlobBlock("2")])
        content = await (await blob.download_blob()).readall()

    assert [block.id for block in there] == ["1"]
    assert content == b"AA,JFK"


async def test_ids_of_a_blob_s_blocks_have_one_length(wire: WireClient) -> None:
    """Another length is refused while there are uncommitted blocks, and for this blob alone."""
    await _stage(wire, "f", "aa")

    other = await _stage(wire, "f", "b")

    assert other.brief == (400, "InvalidBlobOrBlock")
    assert (await _stage(wire, "g", "b")).status == 201
    await wire.ask("PUT", "f", body=b"x", x_ms_blob_type="BlockBlob")
    assert (await _stage(wire, "f", "b")).status == 201


async def test_number_of_uncommitted_blocks_is_limited(
    wire: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more is refused; one of a name that is there replaces it."""
    assert (blocks._MOST_STAGED, blocks._MOST) == (100_000, 50_000)
    monkeypatch.setattr(blocks, "_MOST_STAGED", 2)
    for name in ("a", "b"):
        await _stage(wire, "f", name)

    more = await _stage(wire, "f", "c")

    assert more.brief == (409, "BlockCountExceedsLimit")
    assert b"uncommitted block count" in more.body
    assert (await _stage(wire, "f", "b")).status == 201


async def test_block_list_that_is_too_long(
    wire: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused by its own code."""
    monkeypatch.setattr(blocks, "_MOST", 1)
    await _stage(wire, "f", "a")
    body = f"<BlockList>{2 * _latest('a')}</BlockList>".encode()

    answer = await wire.ask("PUT", "f", "comp=blocklist", body=body)

    assert answer.brief == (400, "BlockListTooLong")


async def test_uncommitted_blobs_are_listed_if_wanted(wire: WireClient) -> None:
    """In their places among the others, page by page, and below a delimiter as prefixes."""
    for path in ("b", "d/e", "z"):
        await wire.make(path)
    for path in ("a", "d/c", "d/g", "x/y"):
        await _stage(wire, path, "1")

    every = await _listed(wire)
    pages = []
    marker = ""
    while True:
        answer = await wire.ask("GET", "", f"{LISTED}&maxresults=2&marker={quote(marker, safe='')}")
        root = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
        pages.append([_.text for _ in root.iter("Name")])
        if not (marker := root.findtext("NextMarker") or ""):
            break

    assert every == ["a", "b", "d", "d/c", "d/e", "d/g", "x/y", "z"]
    assert pages == [every[start : start + 2] for start in range(0, 8, 2)]
    assert await _listed(wire, "&prefix=d%2F") == ["d/c", "d/e", "d/g"]
    assert await _listed(wire, "&delimiter=%2F") == ["a", "b", "d/", "x/", "z"]
    assert [blob for blob in await wire.names() if blob in ("a", "d/c")] == []


async def test_blocks_are_discarded_a_week_after_the_last() -> None:
    """Each block of a blob begins the week anew, by the emulator's clock."""
    real, later = this_host(), [0.0]
    host = replace(real, now=lambda: real.now() + later[0])
    async with (
        AdlsEmulator(host=host, filesystems=["data"]) as emulator,
        WireClient(emulator) as wire,
    ):
        await _stage(wire, "old", "a")
        await _stage(wire, "f", "a")
        wire.skew = later[0] = WEEK - 60
        await _stage(wire, "f", "b")
        wire.skew = later[0] = WEEK + 60

        assert await _shown(wire, "old", "all") == (404, "BlobNotFound")
        assert await _listed(wire) == ["f"]
        assert await _shown(wire, "f", "uncommitted") == {"UncommittedBlocks": ["a", "b"]}
        assert (await _stage(wire, "old", "longer")).status == 201


async def test_container_takes_its_blocks_with_it(wire: WireClient) -> None:
    """A new one of the same name has none."""
    await _stage(wire, "f", "a")
    body = f"<BlockList>{_latest('a')}</BlockList>".encode()
    await wire.ask("DELETE", "", "restype=container")
    await wire.ask("PUT", "", "restype=container")

    answer = await wire.ask("PUT", "f", "comp=blocklist", body=body)

    assert answer.brief == (400, "InvalidBlockList")
    assert await _shown(wire, "f", "all") == (404, "BlobNotFound")
    assert await _listed(wire) == []


async def test_blocks_belong_to_the_content_that_they_made(wire: WireClient) -> None:
    """After another client has written the file, a list cannot name them."""
    await _stage(wire, "f", "aa")
    body = f"<BlockList>{_latest('aa')}</BlockList>".encode()
    await wire.ask("PUT", "f", "comp=blocklist", body=body)
    await wire.make("f", b"other")

    answer = await wire.ask("PUT", "f", "comp=blocklist", body=body)

    assert answer.brief == (400, "InvalidBlockList")


async def test_block_of_a_leased_blob_needs_the_lease(wire: WireClient) -> None:
    """As for every other write."""
    await wire.make("f")
    lease = {"x_ms_lease_action": "acquire", "x_ms_lease_duration": "-1"}
    taken = await wire.ask("PUT", "f", "comp=lease", more=lease)

    without = await _stage(wire, "f", "a")
    held = await _stage(wire, "f", "a", x_ms_lease_id=taken.headers["x-ms-lease-id"])

    assert without.brief == (412, "LeaseIdMissing")
    assert held.status == 201


async def test_copy_from_a_url_is_a_block(wire: WireClient) -> None:
    """Put Block From URL stages a range of another blob."""
    await wire.make("g", b"0123456789")
    source = {"x_ms_copy_source": f"{wire.emulator.url}/data/g", "x_ms_source_range": "bytes=2-4"}

    staged = await wire.ask("PUT", "f", f"comp=block&blockid={quote(_id('a'))}", more=source)
    body = f"<BlockList>{_latest('a')}</BlockList>".encode()
    await wire.ask("PUT", "f", "comp=blocklist", body=body)

    assert staged.status == 201
    assert (await wire.ask("GET", "f")).body == b"234"

"""Append blobs on the wire: headers, errors, limits of a version, blocks from another blob."""

from __future__ import annotations

import base64
import hashlib

import pytest

from tests.testing.emulators.adls.client import Answer, WireClient

NEW = {"x_ms_blob_type": "AppendBlob"}
AGENT = {"user_agent": "azsdk-python-storage-blob/12.0"}


async def append(wire: WireClient, data: bytes, **headers: str) -> Answer:
    """Append a block to the blob ``a``."""
    return await wire.ask("PUT", "a", "comp=appendblock", body=data, more=headers)


async def test_append_says_where_the_block_is(wire: WireClient) -> None:
    """The answer has its offset and the number of blocks, and so has a later status."""
    await wire.ask("PUT", "a", x_ms_meta_k="v", x_ms_blob_type="appendblob")  # as Hadoop has it
    answers = [await append(wire, data) for data in (b"one", b"four", b"!")]
    told = await wire.ask("HEAD", "a", more=AGENT)
    listed = await wire.ask("GET", "", "restype=container&comp=list")

    shown = ("x-ms-blob-append-offset", "x-ms-blob-committed-block-count")
    assert [tuple(_.headers[name] for name in shown) for _ in answers] == [
        ("0", "1"),
        ("3", "2"),
        ("7", "3"),
    ]
    assert told.etag == answers[-1].etag
    assert (told.headers["x-ms-blob-type"], told.headers[shown[1]]) == ("AppendBlob", "3")
    assert (told.headers["x-ms-meta-k"], told.headers["content-length"]) == ("v", "8")
    assert "x-ms-access-tier" not in told.headers
    assert b"<BlobType>AppendBlob</BlobType>" in listed.body


@pytest.mark.parametrize(
    "name, value, wanted",
    [
        ("appendpos", "2", (412, "AppendPositionConditionNotMet")),
        ("appendpos", "3", (201, "")),
        ("maxsize", "3", (412, "MaxBlobSizeConditionNotMet")),
        ("maxsize", "4", (201, "")),
        ("maxsize", "-1", (400, "InvalidHeaderValue")),
        ("appendpos", "x", (400, "InvalidHeaderValue")),
    ],
)
async def test_conditions_of_a_block(
    wire: WireClient, name: str, value: str, wanted: tuple[int, str]
) -> None:
    """The blob has three bytes, and the block one."""
    await wire.ask("PUT", "a", more=NEW)
    await append(wire, b"one")
    answer = await append(wire, b"!", **{f"x_ms_blob_condition_{name}": value})

    assert answer.brief == wanted


async def test_other_blobs_take_no_blocks_at_their_end(wire: WireClient) -> None:
    """A block blob refuses them; an append blob refuses a block list, and has none."""
    await wire.ask("PUT", "a", body=b"data", x_ms_blob_type="BlockBlob")
    onto_block_blob = await append(wire, b"x")
    await wire.ask("PUT", "a", more=NEW)
    staged = await wire.ask("PUT", "a", "comp=block&blockid=eA%3D%3D", body=b"x")
    committed = await wire.ask("PUT", "a", "comp=blocklist", body=b"<BlockList></BlockList>")
    asked = await wire.ask("GET", "a", "comp=blocklist")
    with_content = await wire.ask("PUT", "b", body=b"x", more=NEW)
    missing = await wire.ask("PUT", "c", "comp=appendblock", body=b"x")

    wrong = (409, "InvalidBlobType")
    assert [_.brief for _ in (onto_block_blob, staged, committed, asked)] == [wrong] * 4
    assert with_content.brief == (400, "InvalidHeaderValue")
    assert missing.brief == (404, "BlobNotFound")


async def test_size_of_a_block_depends_on_the_version(wire: WireClient) -> None:
    """Before the version 2022-11-02 a block has 4 MiB at most, and a hundred since."""
    await wire.ask("PUT", "a", more=NEW)
    large = b"." * (4 * 1024 * 1024 + 1)
    old = await append(wire, large, x_ms_version="2021-12-02")
    new = await append(wire, large)

    assert old.brief == (413, "RequestBodyTooLarge")
    assert new.status == 201


async def test_digest_is_checked_and_sent_back(wire: WireClient) -> None:
    """A block that was damaged on its way is refused."""
    await wire.ask("PUT", "a", more=NEW)
    digest = base64.b64encode(hashlib.md5(b"one").digest()).decode()
    damaged = await append(wire, b"two", Content_MD5=digest)
    good = await append(wire, b"one", Content_MD5=digest)

    assert damaged.brief == (400, "Md5Mismatch")
    assert good.headers["content-md5"] == digest


async def test_sealed_blob_is_read_only(wire: WireClient) -> None:
    """It says so, and may be copied with and without its seal."""
    await wire.ask("PUT", "a", more=NEW)
    await append(wire, b"one")
    sealed = await wire.ask("PUT", "a", "comp=seal", x_ms_blob_condition_appendpos="3")
    refused = await append(wire, b"x")
    told = await wire.ask("HEAD", "a", more=AGENT)
    place = f"http://127.0.0.1/{wire.emulator.account}/data/a"
    await wire.ask("PUT", "open", x_ms_copy_source=place)
    await wire.ask("PUT", "shut", x_ms_copy_source=place, x_ms_seal_blob="true")
    onto_open = await wire.ask("PUT", "open", "comp=appendblock", body=b"!")
    onto_shut = await wire.ask("PUT", "shut", "comp=appendblock", body=b"!")

    assert (sealed.status, sealed.headers["x-ms-blob-sealed"]) == (200, "true")
    assert told.headers["x-ms-blob-sealed"] == "true"
    assert (refused.brief, onto_shut.brief) == ((409, "BlobIsSealed"),) * 2
    assert onto_open.headers["x-ms-blob-committed-block-count"] == "2"
    assert (await wire.ask("GET", "open")).body == b"one!"


async def test_block_may_come_from_another_blob(wire: WireClient) -> None:
    """The whole of it or a range; a range behind its end and an unknown account are refused."""
    await wire.ask("PUT", "a", more=NEW)
    await wire.ask("PUT", "source", body=b"0123456789", x_ms_blob_type="BlockBlob")
    source = {"x_ms_copy_source": f"http://127.0.0.1/{wire.emulator.account}/data/source"}
    whole = await append(wire, b"", **source)
    part = await append(wire, b"", x_ms_source_range="bytes=2-4", **source)
    behind = await append(wire, b"", x_ms_source_range="bytes=10-12", **source)
    elsewhere = await append(wire, b"", x_ms_copy_source="http://127.0.0.1/other/data/source")
    both = await append(wire, b"x", **source)

    assert (whole.status, part.headers["x-ms-blob-append-offset"]) == (201, "10")
    assert behind.brief == (416, "InvalidRange")
    assert elsewhere.brief == (404, "CannotVerifyCopySource")
    assert both.brief == (400, "InvalidHeaderValue")
    assert (await wire.ask("GET", "a")).body == b"0123456789234"


async def test_endpoints_do_not_append_to_files_of_the_other(wire: WireClient) -> None:
    """Each refuses, as Hadoop's client expects, and a file that is written anew is its own."""
    await wire.ask("PUT", "a", more=NEW)
    appended = await wire.ask("PATCH", "a", "action=append&position=0", body=b"x")
    flushed = await wire.ask("PATCH", "a", "action=flush&position=0")
    await wire.ask("PUT", "a", "resource=file&blobtype=appendblob")
    block = await append(wire, b"x")
    again = await wire.ask("PATCH", "a", "action=append&position=0", body=b"x")

    assert appended.brief == (409, "InvalidAppendOperation")
    assert flushed.brief == (409, "InvalidFlushOperation")
    assert block.brief == (409, "BlobOperationNotSupported")
    assert again.status == 202

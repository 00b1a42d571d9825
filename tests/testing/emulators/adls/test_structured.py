"""Checksums of bodies, and structured bodies: CRC-64 in both directions."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from asynccommit.testing.emulators.adls.structured import (
    STRUCTURED,
    decode_structured,
    encode_structured,
)
from asynccommit.testing.models.adls.crc64 import crc64, encode_crc64
from asynccommit.testing.models.adls.refusals import Refusal
from tests.testing.emulators.adls.client import Answer, WireClient

DATA = b"AA,JFK\n" * 50
WRONG = base64.b64encode(bytes(8)).decode()
APPEND = "action=append&position=0"
BLOCKS = {"x-ms-blob-type": "BlockBlob"}


def _sum(data: bytes) -> str:
    return base64.b64encode(encode_crc64(crc64(data))).decode()


async def _append(wire: WireClient, body: bytes, length: int | None = None) -> Answer:
    """Append a structured body to a new file."""
    await wire.make("a")
    more = {"x-ms-structured-body": STRUCTURED}
    if length is not None:
        more["x-ms-structured-content-length"] = str(length)
    return await wire.ask("PATCH", "a", f"{APPEND}&flush=true", body=body, more=more)


async def test_checksum_of_an_upload_is_checked(wire: WireClient) -> None:
    """A right one is told in the answer; a wrong one is refused, and nothing is appended."""
    await wire.make("a")
    good = {"x-ms-content-crc64": _sum(DATA)}
    bad = {"x-ms-content-crc64": WRONG}

    refused = await wire.ask("PATCH", "a", f"{APPEND}&flush=true", body=DATA, more=bad)
    size = (await wire.ask("HEAD", "a")).headers["content-length"]
    done = await wire.ask("PATCH", "a", f"{APPEND}&flush=true", body=DATA, more=good)

    assert (refused.brief, size) == ((400, "Crc64Mismatch"), "0")
    assert (done.status, done.headers["x-ms-content-crc64"]) == (202, _sum(DATA))
    assert (await wire.ask("GET", "a")).body == DATA


@pytest.mark.parametrize(
    "query,headers",
    [("", BLOCKS), ("comp=block&blockid=YQ%3D%3D", {})],
)
async def test_checksum_of_a_blob_is_checked(
    wire: WireClient, query: str, headers: dict[str, str]
) -> None:
    """The blob endpoint checks whole blobs and blocks."""
    bad, good = ({**headers, "x-ms-content-crc64": value} for value in (WRONG, _sum(DATA)))

    refused = await wire.ask("PUT", "b", query, body=DATA, more=bad)
    done = await wire.ask("PUT", "b", query, body=DATA, more=good)

    assert (refused.brief, done.status) == ((400, "Crc64Mismatch"), 201)


@pytest.mark.parametrize("more", [{"x-ms-content-crc64": "AAAA"}, {"x-ms-content-crc64": "?"}])
async def test_invalid_checksum_is_refused(wire: WireClient, more: dict[str, str]) -> None:
    """A checksum is eight bytes in base64, and comes without an MD5."""
    await wire.make("a")
    both = {"x-ms-content-crc64": _sum(DATA), "content-md5": WRONG}

    for headers in (more, both):
        answer = await wire.ask("PATCH", "a", APPEND, body=DATA, more=headers)
        assert answer.brief == (400, "InvalidHeaderValue")


async def test_structured_body_is_taken_apart(wire: WireClient) -> None:
    """The content alone is appended, and the answer names the kind of the body."""
    done = await _append(wire, encode_structured(DATA), len(DATA))

    assert (done.status, done.headers["x-ms-structured-body"]) == (202, STRUCTURED)
    assert (await wire.ask("GET", "a")).body == DATA


async def test_structured_body_that_is_damaged_is_refused(wire: WireClient) -> None:
    """A byte of the content or of a checksum is enough; nothing is appended."""
    body = encode_structured(DATA)
    for place in (40, len(body) - 12, len(body) - 1):  # content, segment, message
        damaged = bytearray(body)
        damaged[place] ^= 1
        assert (await _append(wire, bytes(damaged), len(DATA))).brief == (400, "Crc64Mismatch")
    assert (await wire.ask("HEAD", "a")).headers["content-length"] == "0"


async def test_structured_body_of_another_length_is_refused(wire: WireClient) -> None:
    """The length of the content must be given, and be right."""
    body = encode_structured(DATA)

    assert (await _append(wire, body)).brief == (400, "MissingRequiredHeader")
    assert (await _append(wire, body, len(DATA) - 1)).brief == (400, "InvalidHeaderValue")
    assert (await _append(wire, DATA, len(DATA))).brief == (400, "InvalidInput")


async def test_structured_body_of_another_kind_is_refused(wire: WireClient) -> None:
    """A version that is not known is refused by name."""
    answer = await wire.ask("GET", "a", more={"x-ms-structured-body": "XSM/2.0"})

    assert answer.brief == (400, "InvalidHeaderValue")
    assert "XSM/2.0" in answer.json["error"]["message"]


@pytest.mark.parametrize("start,end", [(None, None), (3, 9)])
async def test_structured_download(wire: WireClient, start: int | None, end: int | None) -> None:
    """A read that asks for a structured body gets one, also of a range."""
    await wire.make("a", DATA)
    more = {"x-ms-structured-body": STRUCTURED}
    if start is not None:
        more["x-ms-range"] = f"bytes={start}-{end}"
    wanted = DATA if start is None else DATA[3:10]

    answer = await wire.ask("GET", "a", more=more)

    assert decode_structured(answer.body) == wanted
    assert answer.headers["x-ms-structured-body"] == STRUCTURED
    assert answer.headers["x-ms-structured-content-length"] == str(len(wanted))


async def test_checksum_of_a_range(wire: WireClient) -> None:
    """A read of a range may ask for its checksum, of one kind."""
    await wire.make("a", DATA)
    ranged = {"x-ms-range": "bytes=0-6", "x-ms-range-get-content-crc64": "true"}

    answer = await wire.ask("GET", "a", more=ranged)
    both = await wire.ask("GET", "a", more={**ranged, "x-ms-range-get-content-md5": "true"})

    assert answer.headers["x-ms-content-crc64"] == _sum(DATA[:7])
    assert both.brief == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("size", [0, 1, 4 << 20, (4 << 20) + 1])
def test_structured_body_is_that_of_azures_sdk(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The SDK's own classes read what is written here, and write what is read here."""
    streams: Any = pytest.importorskip("azure.storage.filedatalake._shared.streams")
    monkeypatch.setattr(streams, "calculate_crc64", crc64)
    data = DATA * (size // len(DATA) + 1)
    data, body = data[:size], encode_structured(data[:size])
    encoder = streams.StructuredMessageEncodeStream(
        BytesIO(data), len(data), streams.StructuredMessageProperties.CRC64
    )

    def pieces() -> Iterator[bytes]:
        yield body

    assert streams.StructuredMessageDecoder(pieces(), len(body)).read() == data
    assert encoder.read() == body
    assert decode_structured(body) == data


@pytest.mark.parametrize("size", [5, 20, 30, 40])
def test_structured_body_that_is_cut_is_refused(size: int) -> None:
    """A body that ends early is invalid wherever it ends."""
    body = bytearray(encode_structured(b"12345678")[:size])
    body[1:9] = size.to_bytes(8, "little")  # as if it were that long

    with pytest.raises(Refusal):
        decode_structured(bytes(body[:size]))

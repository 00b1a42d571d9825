"""Objects stored as gzip: what a client gets that asks for gzip, and one that does not."""

from __future__ import annotations

import gzip
import zlib

import aiohttp
import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.emulators.gcs.objects import decompressed
from asynccommit.testing.models.gcs.objects import NO_DETAILS, Content, GcsObject

PLAIN = b"AA,JFK\n" * 1000
PACKED = gzip.compress(PLAIN, mtime=0)


def _stored(data: bytes = PACKED, encoding: str = "gzip", cache: str = "") -> GcsObject:
    details = NO_DETAILS._replace(content_encoding=encoding, cache_control=cache)
    return GcsObject("data", "a", 1, Content(data), details, 0.0)


@pytest.mark.parametrize(
    "accepted, plain",
    [
        (None, True),
        ("", True),
        ("identity", True),
        ("br, deflate", True),
        ("gzip;q=0", True),
        ("gzip; q=0.0", True),
        ("gzip", False),
        ("GZIP", False),
        ("identity, gzip;q=0.5", False),
        ("deflate,gzip", False),
    ],
)
def test_the_request_decides(accepted: str | None, plain: bool) -> None:
    """Only a request that takes gzip gets the bytes as they are stored."""
    headers = {} if accepted is None else {"accept-encoding": accepted}

    assert decompressed(_stored(), headers) == (PLAIN if plain else None)


@pytest.mark.parametrize(
    "found",
    [
        _stored(encoding=""),
        _stored(encoding="br"),
        _stored(cache="public, no-transform"),
        _stored(data=PLAIN),
        _stored(data=PACKED[:-9]),
        _stored(data=zlib.compress(PLAIN)),
    ],
    ids=["none", "brotli", "no-transform", "plain", "cut", "zlib"],
)
def test_the_object_decides(found: GcsObject) -> None:
    """What is no gzip, or must not be transformed, is served as it is stored."""
    assert decompressed(found, {}) is None


def test_gzip_of_several_members() -> None:
    """Files that were appended to each other are decompressed to their end."""
    assert decompressed(_stored(PACKED + gzip.compress(b"more")), {}) == PLAIN + b"more"


@pytest.mark.parametrize("data", [PLAIN, b""], ids=["rows", "empty"])
async def test_answers_on_the_wire(gcs_emulator: GcsEmulator, data: bytes) -> None:
    """Neither encoding nor length is told of what was decompressed, and ranges are ignored."""
    gcs_emulator.service.create_bucket("data")
    packed = gzip.compress(data)
    found = gcs_emulator.service.insert(
        "data", "a", packed, details=NO_DETAILS._replace(content_encoding="gzip")
    )
    url = f"{gcs_emulator.endpoint}/storage/v1/b/data/o/a?alt=media"
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        headers = {"Accept-Encoding": "identity", "Range": "bytes=2-3"}
        async with session.get(url, headers=headers) as answer:
            assert (answer.status, await answer.read()) == (200, data)
            assert not {"Content-Encoding", "Content-Length", "Content-Range"} & set(answer.headers)
            assert answer.headers["X-Goog-Stored-Content-Encoding"] == "gzip"
            assert answer.headers["X-Goog-Stored-Content-Length"] == str(found.size)
        async with session.head(url, headers=headers) as head:
            assert (head.status, await head.read()) == (200, b"")
        async with session.get(url, headers={**headers, "Accept-Encoding": "gzip"}) as part:
            assert (part.status, await part.read()) == (206, packed[2:4])
            assert part.headers["Content-Encoding"] == "gzip"

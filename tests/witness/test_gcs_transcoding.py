"""Objects stored as gzip, read by clients of other hands: some ask for gzip, some do not."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
import requests
from gcloud.aio.storage import Storage
from google.cloud.storage.exceptions import DataCorruption

from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, GcsEmulatorThread
from tests.witness.gcs import open_client

PLAIN = b"AA,JFK\n" * 10_000
PACKED = gzip.compress(PLAIN)


@pytest.fixture
def packed(bucket: Any) -> Any:
    """Upload an object that is stored as gzip, and return its blob."""
    blob = bucket.blob("file")
    blob.content_encoding = "gzip"
    blob.upload_from_string(PACKED, content_type="text/csv")
    return blob


@pytest.mark.parametrize("checksum", ["auto", "md5", "crc32c", None])
def test_sdk_takes_gzip(packed: Any, checksum: str | None) -> None:
    """Google's SDK asks for gzip: it decompresses, or gives the stored bytes if told to."""
    assert packed.download_as_bytes(checksum=checksum) == PLAIN
    assert packed.download_as_bytes(checksum=checksum, raw_download=True) == PACKED


def test_sdk_that_asks_for_plain_bytes(gcs: GcsEmulatorThread, packed: Any) -> None:
    """The checksum is that of the stored bytes, of which the documentation warns."""
    with open_client(gcs.endpoint, extra_headers={"accept-encoding": "identity"}) as client:
        blob = client.bucket("data").blob("file")

        assert blob.download_as_bytes(checksum=None) == PLAIN
        with pytest.raises(DataCorruption):
            blob.download_as_bytes(checksum="md5", raw_download=True)


@pytest.mark.parametrize(
    "accepted, encoding, body", [("identity", None, PLAIN), ("gzip", "gzip", PACKED)]
)
def test_requests(
    gcs: GcsEmulatorThread, packed: Any, accepted: str, encoding: str | None, body: bytes
) -> None:
    """A plain HTTP client gets what its ``Accept-Encoding`` says."""
    headers = {"Accept-Encoding": accepted}
    with requests.get(packed.media_link, headers=headers, stream=True, timeout=10) as answer:
        assert answer.raw.read(decode_content=False) == body
        assert answer.headers.get("Content-Encoding") == encoding
    with requests.get(packed.media_link, headers=headers, timeout=10) as answer:
        assert answer.content == PLAIN


def test_no_transform(packed: Any) -> None:
    """An object that must not be transformed comes as gzip to whoever reads it."""
    packed.cache_control = "no-transform"
    packed.patch()
    headers = {"Accept-Encoding": "identity", "Range": "bytes=0-9"}
    with requests.get(packed.media_link, headers=headers, stream=True, timeout=10) as answer:
        assert answer.raw.read(decode_content=False) == PACKED[:10]
        assert (answer.status_code, answer.headers["Content-Encoding"]) == (206, "gzip")


def test_gcsfs(older: Any, packed: Any) -> None:
    """gcsfs' aiohttp asks for gzip, and decompresses it."""
    assert older.cat("data/file") == PLAIN


async def test_gcloud_aio(gcs_here: GcsEmulator) -> None:
    """gcloud-aio-storage gets the decompressed bytes if it asks for no gzip."""
    async with Storage(api_root=gcs_here.endpoint) as storage:
        await storage.upload("data", "file", PACKED, parameters={"contentEncoding": "gzip"})
        plain = await storage.download("data", "file", headers={"Accept-Encoding": "identity"})

        assert plain == PLAIN

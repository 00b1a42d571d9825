"""Tags, access policies, delegation keys and refused headers, by azure-storage-blob."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.storage.blob import (
    AccessPolicy,
    BlobSasPermissions,
    ContainerSasPermissions,
    PublicAccess,
    generate_blob_sas,
)
from azure.storage.blob.aio import BlobServiceClient, ContainerClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.witness.sdk import answer_of
from tests.witness.test_sdk_auth import Tokens

NOW = datetime.now(UTC)
LATER = NOW + timedelta(hours=1)


@pytest.fixture
async def container(adls_emulator: AdlsEmulator) -> AsyncIterator[ContainerClient]:
    """Yield the SDK's client of a new container."""
    account = (adls_emulator.url, adls_emulator.key)
    async with BlobServiceClient(*account, retry_total=0) as service:
        yield await service.create_container("data")


async def test_tags_are_kept(container: ContainerClient) -> None:
    """They are set with the blob and alone, counted in its properties, gone with its content."""
    blob = await container.upload_blob("b", b"1", tags={"a b": "1/2", "c": ""})
    etag = (await blob.get_blob_properties()).etag
    assert await blob.get_blob_tags() == {"a b": "1/2", "c": ""}

    await blob.set_blob_tags({"<&>": "ü"})
    found = await blob.get_blob_properties()
    assert await blob.get_blob_tags() == {"<&>": "ü"}
    assert (found.etag, found.tag_count) == (etag, 1)

    with pytest.raises(ResourceModifiedError):
        await blob.set_blob_tags({}, if_unmodified_since=NOW - timedelta(days=1))
    await blob.upload_blob(b"2", overwrite=True)
    assert await blob.get_blob_tags() == {}


@pytest.mark.parametrize(
    "tags", [{str(number): "" for number in range(11)}, {"k" * 129: ""}, {"k": "v" * 257}]
)
async def test_invalid_tags_are_refused(container: ContainerClient, tags: dict[str, str]) -> None:
    """Ten at most, of 128 and 256 characters."""
    blob = await container.upload_blob("b", b"1", tags={"k": "v"})

    with pytest.raises(HttpResponseError) as refused:
        await blob.set_blob_tags(tags)
    assert answer_of(refused.value) == (400, "InvalidTag")
    assert await blob.get_blob_tags() == {"k": "v"}


async def test_access_policies_are_kept(container: ContainerClient) -> None:
    """They are shown as they were set, and public access in the properties and in listings."""
    policy = AccessPolicy(permission=ContainerSasPermissions(read=True), expiry=LATER)
    await container.set_container_access_policy({"id": policy}, public_access=PublicAccess.BLOB)
    found = await container.get_container_access_policy()
    shown = await container.get_container_properties()

    assert found["public_access"] == "blob" == shown.public_access
    [identifier] = found["signed_identifiers"]
    assert (identifier.id, identifier.access_policy.permission) == ("id", "r")
    await container.set_container_access_policy({})
    assert (await container.get_container_access_policy())["public_access"] is None


async def test_delegation_key(tmp_path: Path) -> None:
    """A user with a token gets a key, and a signature that is made with it is accepted."""
    async with AdlsEmulator(tls=True) as emulator:
        (tmp_path / "ca.pem").write_bytes(emulator.ca_pem or b"")
        options: dict[str, Any] = {"connection_verify": str(tmp_path / "ca.pem"), "retry_total": 0}
        async with BlobServiceClient(emulator.url, Tokens("any"), **options) as service:
            files = await service.create_container("data")
            await files.upload_blob("b", b"hello")
            key = await service.get_user_delegation_key(NOW, LATER)
            signature = generate_blob_sas(
                emulator.account,
                "data",
                "b",
                user_delegation_key=key,
                permission=BlobSasPermissions(read=True),
                expiry=LATER,
            )
        async with BlobServiceClient(emulator.url, signature, **options) as service:
            download = await service.get_blob_client("data", "b").download_blob()
            assert await download.readall() == b"hello"

        async with BlobServiceClient(emulator.url, emulator.key, **options) as service:
            with pytest.raises(HttpResponseError) as refused:
                await service.get_user_delegation_key(NOW, LATER)
            assert answer_of(refused.value) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("name", ["x-ms-if-tags", "x-ms-content-crc64", "x-ms-structured-body"])
async def test_headers_that_are_not_modelled_are_refused(
    container: ContainerClient, name: str
) -> None:
    """What would change the meaning of a request is never ignored; the error names it."""
    with pytest.raises(HttpResponseError, match=name) as refused:
        await container.upload_blob("b", b"1", headers={name: "any"})

    assert answer_of(refused.value) == (400, "UnsupportedHeader")
    assert [blob.name async for blob in container.list_blobs()] == []


async def test_invalid_name_of_a_container(adls_emulator: AdlsEmulator) -> None:
    """It is refused as invalid, and a valid one that is missing as missing."""
    account = (adls_emulator.url, adls_emulator.key)
    async with BlobServiceClient(*account, retry_total=0) as service:
        for name, answer in (("a_b", (400, "InvalidResourceName")), ("abc", (404, ""))):
            with pytest.raises(HttpResponseError) as refused:
                await service.get_container_client(name).get_container_properties()
            status, code = answer_of(refused.value)
            assert (status, code if answer[1] else "") == answer

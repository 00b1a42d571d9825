"""Blob Batch: several deletes in one request, each with an answer of its own."""

from __future__ import annotations

import pytest
from azure.storage.blob.aio import BlobServiceClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from tests.testing.emulators.adls.client import Answer, WireClient

BATCH = "restype=container&comp=batch"
TYPE = {"content_type": "multipart/mixed; boundary=b"}


async def _send(wire: WireClient, *lines: str, more: dict[str, str] | None = None) -> Answer:
    """Send a batch of these requests; none of them is signed."""
    parts = [
        f"--b\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n{line}\r\n\r\n"
        for number, line in enumerate(lines)
    ]
    body = "".join([*parts, "--b--\r\n"]).encode()
    return await wire.ask("POST", "", BATCH, body=body, more=TYPE if more is None else more)


async def test_sdk_deletes_blobs_in_a_batch(adls_emulator: AdlsEmulator) -> None:
    """Those that are there go; a missing one fails alone."""
    adls_emulator.model.create_filesystem("data")
    async with BlobServiceClient.from_connection_string(
        adls_emulator.connection_string, retry_total=0
    ) as service:
        container = service.get_container_client("data")
        for name in ("d/a", "d/b é", "c"):
            await container.upload_blob(name, b"x")
        done = await container.delete_blobs("d/a", "nope", "d/b é", raise_on_any_failure=False)
        statuses = [answer.status_code async for answer in done]
        left = [blob.name async for blob in container.list_blobs()]

    assert statuses == [202, 404, 202]
    assert left == ["c", "d"]
    assert adls_emulator.stats()["requests"]["batch"] == 1


async def test_each_request_of_a_batch_is_authenticated(wire: WireClient) -> None:
    """The signature of the batch does not cover them."""
    await wire.make("f")
    answer = await _send(wire, "DELETE /devstoreaccount1/data/f HTTP/1.1")

    assert answer.status == 202
    assert b"HTTP/1.1 401" in answer.body
    assert b"Content-ID: 0" in answer.body
    assert (await wire.ask("HEAD", "f")).status == 200


@pytest.mark.parametrize(
    "line",
    [
        "PUT /devstoreaccount1/data/f?comp=tier HTTP/1.1",
        "DELETE /devstoreaccount1/other/f HTTP/1.1",
        "DELETE /devstoreaccount1/data HTTP/1.1",
    ],
)
async def test_request_that_a_batch_cannot_do(wire: WireClient, line: str) -> None:
    """What is no delete of a blob in that container is refused on its own."""
    answer = await _send(wire, line)

    assert answer.status == 202
    assert b"HTTP/1.1 400" in answer.body
    assert b"<Code>InvalidInput</Code>" in answer.body


async def test_batch_that_is_none(wire: WireClient) -> None:
    """A body without boundary, end, request or with too many of them is refused as a whole."""
    delete = "DELETE /devstoreaccount1/data/f HTTP/1.1"
    unnamed = await _send(wire, delete, more={"content_type": "multipart/mixed"})
    unended = await wire.ask("POST", "", BATCH, body=b"--b\r\n\r\n", more=TYPE)
    empty = await _send(wire, "DELETE")
    many = await _send(wire, *[delete] * 257)

    for answer in (unnamed, unended, empty):
        assert answer.brief == (400, "InvalidInput")
    assert many.brief == (400, "ExceedsMaxBatchRequestCount")


async def test_batch_to_a_host_that_names_the_account(wire: WireClient) -> None:
    """The paths of its requests have no account either, and each is done."""
    await wire.make("f")
    host = {"Host": f"{wire.emulator.account}.blob.core.windows.net"}
    part = "DELETE /data/f HTTP/1.1\r\nAuthorization: Bearer T"
    body = f"--b\r\nContent-Type: application/http\r\n\r\n{part}\r\n\r\n--b--\r\n".encode()
    headers = {**host, "Content-Type": TYPE["content_type"]}

    answer = await wire.send("POST", "/data", BATCH, body=body, headers=headers)

    assert answer.status == 202
    assert b"HTTP/1.1 202" in answer.body
    assert (await wire.head("f")).status == 404

"""Blobs that are found by their tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ResourceTypes, generate_account_sas
from azure.storage.blob.aio import BlobServiceClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.adls.tags import TagTerm, read_tag_terms
from tests.testing.emulators.adls.client import WireClient

BLOBS = {
    "data/a": {"project": "alpha", "day": "2026-01-01"},
    "data/d/b": {"project": "alpha", "day": "2026-02-01"},
    "data/e": {"project": "beta"},
    "other/f": {"project": "alpha"},
    "other/g": {},
}


async def _make(emulator: AdlsEmulator) -> BlobServiceClient:
    for name in ("data", "other"):
        emulator.model.create_filesystem(name)
    service = BlobServiceClient.from_connection_string(emulator.connection_string, retry_total=0)
    for place, tags in BLOBS.items():
        container, _, path = place.partition("/")
        await service.get_blob_client(container, path).upload_blob(b"x", tags=tags or None)
    return service


async def _find(service: BlobServiceClient, expression: str) -> list[str]:
    found = service.find_blobs_by_tags(expression, results_per_page=1)
    return [f"{blob.container_name}/{blob.name}" async for blob in found]


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("project='alpha'", ["data/a", "data/d/b", "other/f"]),
        ("\"project\" = 'alpha' AND @container = 'data'", ["data/a", "data/d/b"]),
        ("day > '2026-01-01'", ["data/d/b"]),
        ("\"day\">='2026-01-01' and \"day\"<'2026-02-01'", ["data/a"]),
        ("day <= '2026-01-01' AND project = 'beta'", []),
        ("none = 'x'", []),
    ],
)
async def test_sdk_finds_blobs_in_pages(
    adls_emulator: AdlsEmulator, expression: str, expected: list[str]
) -> None:
    """Every term must hold; a blob without the tag is not found."""
    async with await _make(adls_emulator) as service:
        assert await _find(service, expression) == expected


async def test_container_is_searched_alone(adls_emulator: AdlsEmulator) -> None:
    """Its blobs come with the tags that the expression names."""
    async with await _make(adls_emulator) as service:
        container = service.get_container_client("data")
        found = [blob async for blob in container.find_blobs_by_tags("project='alpha'")]
        listed = [blob async for blob in container.list_blobs(include=["tags"])]

    assert [(blob.name, blob.tags) for blob in found] == [
        ("a", {"project": "alpha"}),
        ("d/b", {"project": "alpha"}),
    ]
    assert {blob.name: blob.tags for blob in listed if blob.tags} == {
        "a": BLOBS["data/a"],
        "d/b": BLOBS["data/d/b"],
        "e": BLOBS["data/e"],
    }


@pytest.mark.parametrize(
    "where", ["", "project", "project='a", "a='1' OR b='2'", "a<>'1'", "a='1' AND", "a='1'b='2'"]
)
async def test_invalid_expressions_are_refused(wire: WireClient, where: str) -> None:
    """Nothing of an expression is ignored."""
    answer = await wire.ask("GET", None, f"comp=blobs&where={where.replace(' ', '%20')}")

    assert answer.status == 400


async def test_search_in_a_container_cannot_name_another(wire: WireClient) -> None:
    """The term is for searches of the account."""
    answer = await wire.ask("GET", "", "restype=container&comp=blobs&where=@container%3D'data'")

    assert answer.brief == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize("permissions, status", [("f", 0), ("rl", 403)])
async def test_signature_must_permit_to_filter(
    adls_emulator: AdlsEmulator, permissions: str, status: int
) -> None:
    """Listing is another permission."""
    signature = generate_account_sas(
        adls_emulator.account,
        adls_emulator.key,
        ResourceTypes(service=True, container=True, object=True),
        permissions,
        datetime.now(UTC) + timedelta(hours=1),
    )
    async with BlobServiceClient(adls_emulator.url, signature, retry_total=0) as service:
        try:
            await _find(service, "a='1'")
            got = 0
        except HttpResponseError as error:
            got = error.status_code or 0

    assert got == status


def test_terms_of_an_expression() -> None:
    """Names may be quoted, and a value may hold what separates terms."""
    assert read_tag_terms("\"a b\">='x AND y' AND @container='c'") == [
        TagTerm("a b", ">=", "x AND y"),
        TagTerm("@container", "=", "c"),
    ]

"""Renames over the wire, as recordings of the service show them."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.testing.emulators.adls.client import WireClient


async def test_rename_answers_no_etag_and_keeps_the_source_s(wire: WireClient) -> None:
    """The answer is bare; the destination has the etag and time that the source had."""
    await wire.make("a", b"one")
    before = await wire.head("a")

    answer = await wire.rename("a", "b")

    after = await wire.head("b")
    assert answer.brief == (201, "")
    assert not {"etag", "last-modified"} & answer.headers.keys()
    assert after.etag == before.etag
    assert after.headers["last-modified"] == before.headers["last-modified"]
    assert (await wire.head("a")).brief == (404, "PathNotFound")


async def test_rename_by_the_c_plus_plus_sdk_answers_the_source_s_etag(wire: WireClient) -> None:
    """That SDK, which Arrow uses, ends its process if the header is missing."""
    etag = (await wire.make("a", b"one")).etag

    answer = await wire.rename("a", "b", user_agent="azsdk-cpp-storage-files-datalake/12.12.0")

    assert (answer.status, answer.etag) == (201, etag)
    assert "last-modified" in answer.headers


async def test_rename_of_a_directory_takes_all_along(wire: WireClient) -> None:
    """What is below has its new name at once, and the same etags."""
    etag = (await wire.make("d/e/f", b"one")).etag
    directory = (await wire.head("d")).etag

    assert (await wire.rename("d", "x", if_none_match="*")).status == 201

    assert await wire.names() == ["x", "x/e", "x/e/f"]
    assert (await wire.head("x")).etag == directory
    assert (await wire.head("x/e/f")).etag == etag


@pytest.mark.parametrize(
    "headers, expected",
    [
        ({"if_none_match": "*"}, (409, "PathAlreadyExists")),
        ({"if_match": '"0x1"'}, (412, "ConditionNotMet")),
        ({"x_ms_source_if_match": '"0x1"'}, (412, "SourceConditionNotMet")),
        ({"x_ms_source_if_none_match": "*"}, (412, "SourceConditionNotMet")),
        (
            {"x_ms_source_if_unmodified_since": "Mon, 01 Jan 2001 00:00:00 GMT"},
            (412, "SourceConditionNotMet"),
        ),
        ({"if_unmodified_since": "Mon, 01 Jan 2001 00:00:00 GMT"}, (412, "ConditionNotMet")),
        ({"x_ms_lease_id": str(uuid.UUID(int=1))}, (412, "LeaseNotPresent")),
        ({"x_ms_source_lease_id": str(uuid.UUID(int=1))}, (412, "LeaseNotPresent")),
        ({"x_ms_source_lease_id": ""}, (201, "")),
        ({}, (201, "")),
    ],
)
async def test_conditions_of_a_rename(
    wire: WireClient, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """Each condition that does not hold has its code, and then nothing moves."""
    await wire.make("a", b"one")
    await wire.make("b", b"two")

    answer = await wire.rename("a", "b", **headers)

    assert answer.brief == expected
    assert await wire.names() == (["b"] if expected[0] == 201 else ["a", "b"])


async def test_etags_in_conditions_may_lack_their_quotes(wire: WireClient) -> None:
    """A bare etag is the same as a quoted one."""
    etag = (await wire.make("a")).etag.strip('"')

    refused = await wire.rename("a", "b", x_ms_source_if_none_match=etag)
    renamed = await wire.rename("a", "b", x_ms_source_if_match=etag)

    assert refused.brief == (412, "SourceConditionNotMet")
    assert renamed.status == 201


@pytest.mark.parametrize(
    "source, dest, expected",
    [
        ("none", "b", (404, "SourcePathNotFound")),
        ("file", "none/b", (404, "RenameDestinationParentPathNotFound")),
        ("d", "d/e/f", (409, "InvalidRenameSourcePath")),
        ("file", "d", (409, "InvalidSourceOrDestinationResourceType")),
    ],
)
async def test_renames_that_cannot_be(
    wire: WireClient, source: str, dest: str, expected: tuple[int, str]
) -> None:
    """Each has the service's code."""
    await wire.make("file")
    await wire.mkdir("d/e")

    answer = await wire.rename(source, dest, "mode=legacy")

    assert answer.brief == expected


async def test_directory_onto_one_that_is_not_empty(wire: WireClient) -> None:
    """The SDKs' mode refuses it; without a mode the source moves inside, without a word."""
    await wire.mkdir("a")
    await wire.make("b/c")

    legacy = await wire.rename("a", "b", "mode=legacy")
    guarded = await wire.rename("a", "b", "mode=legacy", if_none_match="*")
    posix = await wire.rename("a", "b", if_none_match="*")

    assert legacy.brief == (409, "DirectoryNotEmpty")
    assert guarded.brief == (409, "PathAlreadyExists")
    assert posix.status == 201
    assert await wire.names() == ["b", "b/a", "b/c"]


async def test_unknown_mode_is_refused(wire: WireClient) -> None:
    """There are two modes."""
    await wire.make("a")

    answer = await wire.rename("a", "b", "mode=quick")

    assert answer.brief == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize("source", ["%2Fdata%2Fd%2Fa%20%C3%A9?=", "/data/d/a%20%C3%A9?sv=1&sig=x"])
async def test_source_is_decoded_before_it_is_split(wire: WireClient, source: str) -> None:
    """Encoded slashes are slashes, and what follows a question mark is no path."""
    await wire.make("d/a é")

    answer = await wire.ask("PUT", "b", "mode=legacy", x_ms_rename_source=source)

    assert answer.status == 201
    assert await wire.names() == ["b", "d"]


@pytest.mark.parametrize("source", ["/data", "/", "nothing"])
async def test_source_that_is_no_path_is_refused(wire: WireClient, source: str) -> None:
    """A rename needs a filesystem and a path in it."""
    answer = await wire.ask("PUT", "b", x_ms_rename_source=source)

    assert answer.brief == (400, "InvalidSourceUri")


async def test_one_of_many_renames_of_a_source_wins(wire: WireClient) -> None:
    """Eight at once: one moves it, the others find nothing."""
    await wire.make("a")
    clients = [WireClient(wire.emulator) for _ in range(8)]

    answers = await asyncio.gather(*(c.rename("a", f"b{n}") for n, c in enumerate(clients)))

    assert sorted(answer.brief for answer in answers) == [
        (201, ""),
        *[(404, "SourcePathNotFound")] * 7,
    ]
    await asyncio.gather(*(client.close() for client in clients))


async def test_one_of_many_renames_to_a_destination_wins(wire: WireClient) -> None:
    """Eight with If-None-Match: one comes first."""
    clients = [WireClient(wire.emulator) for _ in range(8)]
    for number in range(8):
        await wire.make(f"a{number}")

    answers = await asyncio.gather(
        *(c.rename(f"a{n}", "b", if_none_match="*") for n, c in enumerate(clients))
    )

    assert sorted(answer.brief for answer in answers) == [
        (201, ""),
        *[(409, "PathAlreadyExists")] * 7,
    ]
    await asyncio.gather(*(client.close() for client in clients))


async def test_transaction_id_of_a_rename_is_kept(wire: WireClient) -> None:
    """A later HEAD tells which request brought the file here."""
    token = str(uuid.UUID(int=7))
    await wire.make("a")

    await wire.rename("a", "b", x_ms_client_transaction_id=token)

    assert (await wire.head("b")).headers["x-ms-client-transaction-id"] == token


async def test_transaction_ids_need_a_new_version(wire: WireClient) -> None:
    """An older service version neither keeps nor shows them."""
    token, old = str(uuid.UUID(int=7)), "2023-08-03"
    await wire.make("a")
    await wire.make("c")

    await wire.rename("a", "b", x_ms_client_transaction_id=token, x_ms_version=old)
    await wire.rename("c", "d", x_ms_client_transaction_id=token)
    shown = await wire.ask("HEAD", "d", "action=getStatus", x_ms_version=old)

    assert "x-ms-client-transaction-id" not in (await wire.head("b")).headers
    assert "x-ms-client-transaction-id" not in shown.headers


async def test_transaction_id_must_be_one(wire: WireClient) -> None:
    """What is no UUID is refused, and nothing moves."""
    await wire.make("a")

    answer = await wire.rename("a", "b", x_ms_client_transaction_id="mine")

    assert answer.brief == (400, "InvalidHeaderValue")
    assert await wire.names() == ["a"]


@pytest.mark.parametrize("source", ["/data/a", "/devstoreaccount1/data/a"])
async def test_rename_whose_path_has_no_account(wire: WireClient, source: str) -> None:
    """The account is the one that signs: Azure's SDK for Node leaves it out of the URL."""
    await wire.make("a", b"x")
    headers = {"x-ms-rename-source": source}

    answer = await wire.send("PUT", "/data/b", "mode=legacy", headers=headers)
    other = await wire.send("PUT", "/data/b", "mode=legacy", headers=headers, signed=False)

    assert answer.status == 201
    assert await wire.names() == ["b"]
    assert other.brief == (404, "ResourceNotFound")

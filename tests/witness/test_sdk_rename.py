"""Renames by azure-storage-file-datalake: every condition, held and broken, and what stays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake.aio import DataLakeFileClient, FileSystemClient

from tests.witness.sdk import answer_of, write

OTHER = '"0x8D0000000000000"'
LEASE = "0c7c8a7e-6a5f-4d0b-8a55-3f3f6a1d2e10"
OTHER_LEASE = "9c7c8a7e-6a5f-4d0b-8a55-3f3f6a1d2e19"
DAY = timedelta(days=1)


def conditions(name: str, etag: str) -> dict[str, Any]:
    """Return the keywords of a condition by its name, for an object that has ``etag``."""
    now = datetime.now(UTC)
    named: Mapping[str, dict[str, Any]] = {
        "if the etag": {"etag": etag, "match_condition": MatchConditions.IfNotModified},
        "if another etag": {"etag": OTHER, "match_condition": MatchConditions.IfNotModified},
        "if not the etag": {"etag": etag, "match_condition": MatchConditions.IfModified},
        "if not another etag": {"etag": OTHER, "match_condition": MatchConditions.IfModified},
        "if there": {"match_condition": MatchConditions.IfPresent},
        "if not there": {"match_condition": MatchConditions.IfMissing},
        "if modified since yesterday": {"if_modified_since": now - DAY},
        "if modified since tomorrow": {"if_modified_since": now + DAY},
        "if unmodified since yesterday": {"if_unmodified_since": now - DAY},
        "if unmodified since tomorrow": {"if_unmodified_since": now + DAY},
        "with a lease": {"lease": LEASE},
    }
    return dict(named[name])


def of_source(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same condition, on the source of the rename."""
    return {f"source_{key}": value for key, value in keywords.items()}


HELD = [
    "if the etag",
    "if not another etag",
    "if modified since yesterday",
    "if unmodified since tomorrow",
]
BROKEN = [
    "if another etag",
    "if not the etag",
    "if modified since tomorrow",
    "if unmodified since yesterday",
]


async def pair(files: FileSystemClient) -> tuple[DataLakeFileClient, DataLakeFileClient]:
    """Write a source and a destination, and return them."""
    return await write(files, "d/source", b"new"), await write(files, "d/dest", b"old one")


async def content(file: DataLakeFileClient) -> bytes:
    """Return what a file holds."""
    return bytes(await (await file.download_file()).readall())


@pytest.mark.parametrize("name", [*HELD, "if there"])
@pytest.mark.parametrize("side", ["source", "dest"])
async def test_rename_under_a_condition_that_holds(
    files: FileSystemClient, name: str, side: str
) -> None:
    """The file moves over the destination when the condition on either of them holds."""
    source, dest = await pair(files)
    etag = (await (source if side == "source" else dest).get_file_properties()).etag
    keywords = conditions(name, etag)
    moved = await source.rename_file(
        "data/d/dest", **(of_source(keywords) if side == "source" else keywords)
    )

    assert await content(moved) == b"new"
    assert not await source.exists()


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(
    "side, code", [("source", "SourceConditionNotMet"), ("dest", "ConditionNotMet")]
)
async def test_rename_under_a_condition_that_does_not_hold(
    files: FileSystemClient, name: str, side: str, code: str
) -> None:
    """The answer is 412 with the code of the side that refused, and nothing has moved."""
    source, dest = await pair(files)
    etag = (await (source if side == "source" else dest).get_file_properties()).etag
    keywords = conditions(name, etag)
    with pytest.raises(HttpResponseError) as caught:
        await source.rename_file(
            "data/d/dest", **(of_source(keywords) if side == "source" else keywords)
        )

    assert answer_of(caught.value) == (412, code)
    assert (await content(source), await content(dest)) == (b"new", b"old one")


async def test_rename_without_replacing(files: FileSystemClient) -> None:
    """``If-None-Match: *`` refuses a destination that is there, and takes one that is not."""
    source, dest = await pair(files)
    with pytest.raises(HttpResponseError) as caught:
        await source.rename_file("data/d/dest", match_condition=MatchConditions.IfMissing)
    moved = await source.rename_file("data/d/other", match_condition=MatchConditions.IfMissing)

    assert answer_of(caught.value) == (409, "PathAlreadyExists")
    assert (await content(moved), await content(dest)) == (b"new", b"old one")


@pytest.mark.parametrize("over", ["nothing", "a file"])
async def test_rename_keeps_etag_and_time(files: FileSystemClient, over: str) -> None:
    """What moved has the etag and the last-modified of the source, also over a file."""
    source, _ = await pair(files)
    before = await source.get_file_properties()
    moved = await source.rename_file("data/d/dest" if over == "a file" else "data/d/n é w%20")
    after = await moved.get_file_properties()

    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


async def test_rename_of_a_directory_keeps_etags(files: FileSystemClient) -> None:
    """The directory and what it holds keep their etags, and the old name is gone."""
    await write(files, "d/e/part", b"1")
    names = ["d", "d/e", "d/e/part"]
    before = [(await files.get_file_client(name).get_file_properties()).etag for name in names]
    await files.get_directory_client("d").rename_directory("data/x y")
    moved = [name.replace("d", "x y", 1) for name in names]
    after = [(await files.get_file_client(name).get_file_properties()).etag for name in moved]

    assert after == before
    assert not await files.get_directory_client("d").exists()


@pytest.mark.parametrize(
    "source, dest, answer",
    [
        ("nowhere", "d/new", (404, "SourcePathNotFound")),
        ("d/file", "nowhere/new", (404, "RenameDestinationParentPathNotFound")),
        ("d", "d/e/inside", (409, "InvalidRenameSourcePath")),
        ("d/file", "full", (409, "InvalidSourceOrDestinationResourceType")),
        ("full", "d/file", (409, "InvalidSourceOrDestinationResourceType")),
        ("d", "full", (409, "DirectoryNotEmpty")),
    ],
)
async def test_rename_that_is_refused(
    files: FileSystemClient, source: str, dest: str, answer: tuple[int, str]
) -> None:
    """A rename that makes no sense gets the status and the code of the service."""
    for name in ("d/file", "d/e/file", "full/file"):
        await write(files, name, b"1")
    with pytest.raises(HttpResponseError) as caught:
        await files.get_directory_client(source).rename_directory(f"data/{dest}")

    assert answer_of(caught.value) == answer
    paths = [path.name async for path in files.get_paths()]
    assert sorted(paths) == ["d", "d/e", "d/e/file", "d/file", "full", "full/file"]


async def test_rename_of_a_directory_onto_an_empty_one(files: FileSystemClient) -> None:
    """The SDK sends ``mode=legacy``: an empty directory is replaced, not moved into."""
    await write(files, "d/part", b"1")
    await files.create_directory("empty")
    await files.get_directory_client("d").rename_directory("data/empty")

    assert [path.name async for path in files.get_paths()] == ["empty", "empty/part"]


async def test_rename_of_a_leased_file(files: FileSystemClient) -> None:
    """A lease on the source must be named, rightly."""
    source, _ = await pair(files)
    await source.acquire_lease(lease_id=LEASE)
    answers = []
    for lease in (None, OTHER_LEASE):
        with pytest.raises(HttpResponseError) as caught:
            await source.rename_file("data/d/dest", source_lease=lease)
        answers.append(answer_of(caught.value))
    moved = await source.rename_file("data/d/dest", source_lease=LEASE)

    assert answers[0] == (412, "LeaseIdMissing")
    assert answers[1][0] == 412
    assert answers[1][1].startswith("LeaseIdMismatch")
    assert await content(moved) == b"new"


async def test_rename_onto_a_leased_file(files: FileSystemClient) -> None:
    """A wrong lease is refused; without any, the destination is overwritten and its lease ends."""
    source, dest = await pair(files)
    await dest.acquire_lease(lease_id=LEASE)
    with pytest.raises(HttpResponseError) as caught:
        await source.rename_file("data/d/dest", lease=OTHER_LEASE)
    moved = await source.rename_file("data/d/dest")
    await moved.append_data(b"er", 3, flush=True)

    assert answer_of(caught.value)[0] == 412
    assert await content(moved) == b"newer"


@pytest.mark.parametrize("keyword", ["source_lease", "lease"])
async def test_rename_with_a_lease_that_is_not_there(files: FileSystemClient, keyword: str) -> None:
    """A lease id for a file without a lease is refused."""
    source, _ = await pair(files)
    given: dict[str, Any] = {keyword: LEASE}
    with pytest.raises(HttpResponseError) as caught:
        await source.rename_file("data/d/dest", **given)

    assert answer_of(caught.value) == (412, "LeaseNotPresent")

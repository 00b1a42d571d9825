"""Clients of other hands: the Azure SDK for Data Lake, and adlfs. Their retries are off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.storage.filedatalake import ContentSettings
from azure.storage.filedatalake.aio import DataLakeServiceClient, FileSystemClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, EmulatorThread

adlfs: Any = pytest.importorskip("adlfs")  # it publishes no types


@pytest.fixture
async def lake(adls_emulator: AdlsEmulator) -> AsyncIterator[FileSystemClient]:
    """The SDK's client of a new filesystem."""
    service = DataLakeServiceClient.from_connection_string(
        adls_emulator.connection_string, retry_total=0
    )
    async with service:
        yield await service.create_file_system("data")


async def test_sdk_writes_and_reads(lake: FileSystemClient) -> None:
    """Create, append, flush, properties, ranges."""
    file = lake.get_file_client("d/e/a é.txt")
    await file.create_file(content_settings=ContentSettings(content_type="text/plain"))
    await file.append_data(b"hello ", 0, 6, validate_content=True)
    await file.append_data(b"world", 6, 5)
    flushed = await file.flush_data(11)

    properties = await file.get_file_properties()
    whole = await (await file.download_file()).readall()
    part = await (await file.download_file(offset=6, length=3, validate_content=True)).readall()

    assert (properties.size, properties.etag) == (11, flushed["etag"])
    assert properties.content_settings.content_type == "text/plain"
    assert (whole, part) == (b"hello world", b"wor")


async def test_sdk_uploads_whole_files_and_reads_empty_ones(lake: FileSystemClient) -> None:
    """By one call; and a range of an empty file is refused as the SDK expects."""
    file = lake.get_file_client("a")
    await file.upload_data(b"x" * 1000, overwrite=True)
    full = await (await file.download_file()).readall()
    await file.create_file()

    assert full == b"x" * 1000
    assert await (await file.download_file()).readall() == b""


async def test_sdk_renames_under_conditions(lake: FileSystemClient) -> None:
    """The etag survives; each condition that fails is the error that the SDK has for it."""
    file, other = lake.get_file_client("a"), lake.get_file_client("b")
    await file.upload_data(b"one", overwrite=True)
    await other.upload_data(b"two", overwrite=True)
    etag = (await file.get_file_properties()).etag

    with pytest.raises(ResourceExistsError):
        await file.rename_file("data/b", match_condition=MatchConditions.IfMissing)
    with pytest.raises(HttpResponseError) as refused:
        await file.rename_file(
            "data/c", source_etag='"0x1"', source_match_condition=MatchConditions.IfNotModified
        )
    moved = await file.rename_file(
        "data/c", source_etag=etag, source_match_condition=MatchConditions.IfNotModified
    )

    assert refused.value.status_code == 412
    assert (await moved.get_file_properties()).etag == etag
    with pytest.raises(ResourceNotFoundError):
        await file.get_file_properties()


async def test_sdk_renames_a_directory(lake: FileSystemClient) -> None:
    """With what is below, and not onto one that holds something."""
    await lake.get_file_client("d/a").create_file()
    await lake.get_file_client("e/b").create_file()
    directory = lake.get_directory_client("d")

    with pytest.raises(ResourceExistsError) as refused:
        await directory.rename_directory("data/e")
    await directory.rename_directory("data/f")

    assert "DirectoryNotEmpty" in str(refused.value)
    assert [path.name async for path in lake.get_paths()] == ["e", "e/b", "f", "f/a"]


async def test_sdk_lists_in_pages(lake: FileSystemClient) -> None:
    """All paths, whatever the size of a page, with sizes, etags and kinds."""
    for number in range(7):
        await lake.get_file_client(f"d/f{number}").create_file()

    paths = [path async for path in lake.get_paths(path="d", max_results=3)]

    assert [path.name for path in paths] == [f"d/f{number}" for number in range(7)]
    assert not any(path.is_directory for path in paths)
    assert all(path.etag and path.last_modified for path in paths)


async def test_sdk_leases(lake: FileSystemClient) -> None:
    """Held against a delete, renewed, changed, broken."""
    file = lake.get_file_client("a")
    await file.create_file()
    lease = await file.acquire_lease(lease_duration=15)
    await lease.renew()

    with pytest.raises(HttpResponseError) as refused:
        await file.delete_file()
    await file.append_data(b"x", 0, 1, lease=lease)
    await file.flush_data(1, lease=lease)
    await lease.break_lease(lease_break_period=0)
    await file.delete_file()

    assert refused.value.status_code == 412
    assert not await file.exists()


async def test_sdk_sets_metadata_and_access(lake: FileSystemClient) -> None:
    """Metadata, access control, and the properties of the filesystem."""
    file = lake.get_file_client("a")
    await file.create_file(metadata={"k": "v"})
    first = (await file.get_file_properties()).metadata
    await file.set_metadata({"l": "w"})
    await file.set_access_control(permissions="0640")
    await lake.set_file_system_metadata({"m": "x"})

    assert first == {"k": "v"}
    assert (await file.get_file_properties()).metadata == {"l": "w"}
    assert (await file.get_access_control())["permissions"] == "rw-r-----"
    assert (await lake.get_file_system_properties()).metadata == {"m": "x"}


async def test_sdk_deletes_a_tree(lake: FileSystemClient) -> None:
    """Directories with all they hold, and the filesystem."""
    await lake.get_file_client("d/e/a").create_file()

    await lake.get_directory_client("d").delete_directory()

    assert [path.name async for path in lake.get_paths()] == []
    await lake.delete_file_system()
    assert not await lake.exists()


@pytest.fixture
def lake_fs(adls_emulator_thread: EmulatorThread) -> Any:
    """Adlfs on an emulator with a filesystem, with nothing remembered from elsewhere."""
    adls_emulator_thread.do(lambda emulator: emulator.model.create_filesystem("data"))
    return adlfs.AzureBlobFileSystem(
        connection_string=adls_emulator_thread.connection_string, skip_instance_cache=True
    )


def test_adlfs_writes_lists_and_reads(lake_fs: Any) -> None:
    """Files in directories, seen from outside and from within."""
    lake_fs.pipe_file("data/d/a", b"one")
    with lake_fs.open("data/d/b", "wb") as file:
        file.write(b"two")

    assert sorted(lake_fs.ls("data/d", detail=False)) == ["data/d/a", "data/d/b"]
    assert sorted(lake_fs.find("data")) == ["data/d/a", "data/d/b"]
    assert lake_fs.cat_file("data/d/b") == b"two"
    assert lake_fs.cat_file("data/d/a", start=1, end=2) == b"n"
    assert lake_fs.info("data/d/a")["size"] == 3
    assert lake_fs.isdir("data/d")


def test_adlfs_moves_and_removes(lake_fs: Any) -> None:
    """Its rename is a copy and a delete; its delete takes a tree apart."""
    lake_fs.pipe_file("data/d/a", b"one")

    lake_fs.mv("data/d/a", "data/e/b")
    moved = lake_fs.cat_file("data/e/b")
    lake_fs.rm("data/e", recursive=True)

    assert moved == b"one"
    assert not lake_fs.exists("data/d/a")
    assert not lake_fs.exists("data/e/b")


def test_adlfs_makes_containers(lake_fs: Any) -> None:
    """A directory at the top is a container."""
    lake_fs.mkdir("other")

    assert "other" in [name.strip("/") for name in lake_fs.ls("", detail=False)]


async def test_sdk_changes_acls_below_a_directory(lake: FileSystemClient) -> None:
    """Set, update and remove, in batches; files have no default entries."""
    for name in ("d/a", "d/e/b"):
        await lake.get_file_client(name).create_file()
    directory, file = lake.get_directory_client("d"), lake.get_file_client("d/e/b")
    acl = "user::rwx,user:me:rwx,group::r-x,other::---,default:user:me:r--"

    done = await directory.set_access_control_recursive(acl, batch_size=1)
    first = (await file.get_access_control())["acl"]
    await directory.update_access_control_recursive("user:you:r--", batch_size=3)
    second = (await file.get_access_control())["acl"]
    await directory.remove_access_control_recursive("user:me,default:user:me")
    above = (await directory.get_access_control())["acl"]

    counted = done["counters"]
    assert (counted.directories_successful, counted.files_successful) == (2, 2)
    assert first == "user::rwx,user:me:rwx,group::r-x,mask::rwx,other::---"
    assert second == "user::rwx,user:me:rwx,user:you:r--,group::r-x,mask::rwx,other::---"
    assert "user:me" not in above
    assert "user:you:r--" in above


async def test_sdk_changes_the_acl_of_one_file_as_recursive(lake: FileSystemClient) -> None:
    """A file is all there is below itself."""
    file = lake.get_file_client("a")
    await file.create_file()

    done = await file.set_access_control_recursive("user::rwx,group::---,other::---")

    assert done["counters"].files_successful == 1
    assert (await file.get_access_control())["permissions"] == "rwx------"

"""Files and directories by azure-storage-file-datalake: write, read, list, lease, delete."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.filedatalake import ContentSettings
from azure.storage.filedatalake.aio import DataLakeServiceClient, FileSystemClient

from tests.witness.sdk import answer_of, write

LEASE = "0c7c8a7e-6a5f-4d0b-8a55-3f3f6a1d2e10"
OTHER_LEASE = "9c7c8a7e-6a5f-4d0b-8a55-3f3f6a1d2e19"
# Not "100%25": the SDK unquotes the name of what it renames, and would look for "100%".
HARD_NAMES = ["a b/c", "é/日本", "100% or/50%", "x+y=z&w", "#?[x]{y}|^`<>", "~!$&'()*,;@:", "😀"]


async def test_filesystem(service: DataLakeServiceClient) -> None:
    """A filesystem is made once, has properties, is listed, and is gone after its deletion."""
    files = await service.create_file_system("one", metadata={"k": "v"})
    with pytest.raises(ResourceExistsError) as twice:
        await service.create_file_system("one")
    found = await files.get_file_system_properties()
    await files.set_file_system_metadata({"k": "w"})
    changed = await files.get_file_system_properties()
    listed = [entry.name async for entry in service.list_file_systems()]
    await files.delete_file_system()

    assert answer_of(twice.value) == (409, "ContainerAlreadyExists")
    assert (found.metadata, changed.metadata) == ({"k": "v"}, {"k": "w"})
    assert listed == ["one"]
    assert not await files.exists()


async def test_file_is_created_appended_flushed_and_read(files: FileSystemClient) -> None:
    """What was appended is there after the flush and not before; each step changes the etag."""
    file = files.get_file_client("d/e/file")
    created = await file.create_file()
    await file.append_data(b"hello ", 0)
    await file.append_data(b"world", 6)
    before = await file.get_file_properties()
    flushed = await file.flush_data(11)
    after = await file.get_file_properties()

    assert (before.size, after.size) == (0, 11)
    assert created["etag"] == before.etag != flushed["etag"] == after.etag
    assert await (await file.download_file()).readall() == b"hello world"
    assert await (await file.download_file(offset=6, length=3)).readall() == b"wor"


async def test_append_that_flushes(files: FileSystemClient) -> None:
    """One request may append and flush."""
    file = await files.create_file("file")
    await file.append_data(b"12345", 0, flush=True)

    assert await (await file.download_file()).readall() == b"12345"


async def test_upload_in_blocks(files: FileSystemClient) -> None:
    """A large upload arrives in parallel blocks, and is read in parallel ranges."""
    data = os.urandom(3_000_001)
    file = files.get_file_client("large")
    await file.upload_data(data, overwrite=True, chunk_size=256 * 1024, max_concurrency=4)
    stream = await file.download_file(max_concurrency=4)

    assert await stream.readall() == data
    assert (await file.get_file_properties()).size == len(data)


async def test_upload_with_checksums(files: FileSystemClient) -> None:
    """The SDK's own checksums of the blocks are accepted."""
    file = await files.create_file("file")
    await file.append_data(b"12345", 0, validate_content="md5", flush=True)

    assert await (await file.download_file()).readall() == b"12345"


@pytest.mark.parametrize(
    "position, answer",
    [(4, (400, "InvalidFlushPosition")), (6, (400, "InvalidFlushPosition"))],
)
async def test_flush_at_a_wrong_position(
    files: FileSystemClient, position: int, answer: tuple[int, str]
) -> None:
    """A flush must be where the appended data ends."""
    file = await files.create_file("file")
    await file.append_data(b"12345", 0)
    with pytest.raises(HttpResponseError) as caught:
        await file.flush_data(position)

    assert answer_of(caught.value) == answer
    assert (await file.get_file_properties()).size == 0


async def test_create_without_replacing(files: FileSystemClient) -> None:
    """``If-None-Match: *`` refuses a name that is taken, by a file or by a directory."""
    await write(files, "d/file", b"1")
    codes = []
    for name in ("d/file", "d"):
        with pytest.raises(ResourceExistsError) as caught:
            await files.create_file(name, match_condition=MatchConditions.IfMissing)
        codes.append(answer_of(caught.value))
    await files.create_file("d/file")

    assert codes == [(409, "PathAlreadyExists")] * 2
    assert (await files.get_file_client("d/file").get_file_properties()).size == 0


async def test_create_below_a_file(files: FileSystemClient) -> None:
    """Nothing can be made below a file, and no directory in a file's place."""
    await write(files, "file", b"1")
    codes = []
    for name in ("file/child", "file/child/deep"):
        with pytest.raises(HttpResponseError) as caught:
            await files.create_file(name)
        codes.append(caught.value.status_code)
    with pytest.raises(HttpResponseError) as directory:
        await files.create_directory("file")

    assert codes == [409, 409]
    assert directory.value.status_code == 409
    assert await (await files.get_file_client("file").download_file()).readall() == b"1"


@pytest.mark.parametrize("name", HARD_NAMES)
async def test_names(files: FileSystemClient, name: str) -> None:
    """A name with any characters is the same in a create, a listing, a rename and a read."""
    file = await write(files, f"dir {name}/{name}", b"1")
    listed = [path.name async for path in files.get_paths() if not path.is_directory]
    moved = await file.rename_file(f"data/dir {name}/{name} moved")
    again = [path.name async for path in files.get_paths() if not path.is_directory]

    assert listed == [f"dir {name}/{name}"]
    assert again == [f"dir {name}/{name} moved"]
    assert await (await moved.download_file()).readall() == b"1"


async def test_list_paths_by_pages(files: FileSystemClient) -> None:
    """Pages of the size that was asked for bring every path once, in order."""
    names = [f"d{number % 3}/file{number:02}" for number in range(20)]
    for name in names:
        await files.create_file(name)
    pages = files.get_paths(max_results=6).by_page()
    sizes, found = [], []
    async for page in pages:
        entries = [path async for path in page]
        sizes.append(len(entries))
        found += [path.name for path in entries]

    assert found == sorted([*names, "d0", "d1", "d2"])
    assert sizes == [6, 6, 6, 5]


async def test_list_paths_tells_what_a_head_tells(files: FileSystemClient) -> None:
    """Size, etag, times, owner and kind are the same in a listing and in the properties."""
    file = await write(files, "d/file", b"12345")
    await files.create_directory("d/empty")
    paths = {path.name: path async for path in files.get_paths("d", recursive=False)}
    found = await file.get_file_properties()

    assert {name: bool(path.is_directory) for name, path in paths.items()} == {
        "d/empty": True,
        "d/file": False,
    }
    listed = paths["d/file"]
    assert (listed.content_length, f'"{listed.etag}"') == (found.size, found.etag)
    assert listed.last_modified.replace(tzinfo=UTC) == found.last_modified
    assert (listed.owner, listed.group, listed.permissions) == (
        found.owner,
        found.group,
        found.permissions,
    )


async def test_list_paths_of_nothing(files: FileSystemClient) -> None:
    """A directory that is not there is an error, and an empty one is no path."""
    with pytest.raises(ResourceNotFoundError) as caught:
        [path async for path in files.get_paths("nowhere")]
    await files.create_directory("empty")

    assert answer_of(caught.value) == (404, "PathNotFound")
    assert [path async for path in files.get_paths("empty")] == []


async def test_properties(files: FileSystemClient) -> None:
    """Metadata, headers and permissions are kept, and each change of the first gives an etag."""
    file = await write(files, "file", b"1")
    etags = [(await file.get_file_properties()).etag]
    await file.set_metadata({"colour": "blue é".encode().hex()})
    etags.append((await file.get_file_properties()).etag)
    await file.set_http_headers(ContentSettings(content_type="text/x-test"))
    await file.set_access_control(permissions="rwxr-x---", owner="alice")
    found = await file.get_file_properties()
    access = await file.get_access_control()

    assert len(set(etags)) == 2
    assert found.metadata == {"colour": "blue é".encode().hex()}
    assert found.content_settings.content_type == "text/x-test"
    assert (access["permissions"], access["owner"]) == ("rwxr-x---", "alice")


async def test_properties_of_a_directory(files: FileSystemClient) -> None:
    """A directory says that it is one, also to the blob API."""
    directory = await files.create_directory("d", metadata={"k": "v"})
    found = await directory.get_directory_properties()

    assert found.metadata == {"k": "v", "hdi_isfolder": "true"}
    assert found.last_modified <= datetime.now(UTC)


async def test_properties_of_nothing(files: FileSystemClient) -> None:
    """What is not there is not found, whatever is asked for."""
    file = files.get_file_client("nowhere")
    asked = [
        *(file.get_file_properties(), file.download_file(), file.delete_file()),
        *(file.append_data(b"1", 0), file.flush_data(0), file.get_access_control()),
    ]
    for question in asked:
        with pytest.raises(ResourceNotFoundError):
            await question

    assert not await file.exists()


async def test_lease(files: FileSystemClient) -> None:
    """A leased file takes writes of the lease's holder only, until the lease is released."""
    file = await write(files, "file", b"1")
    lease = await file.acquire_lease(lease_duration=15, lease_id=LEASE)
    codes = []
    for other in (None, OTHER_LEASE):
        with pytest.raises(HttpResponseError) as caught:
            await file.append_data(b"2", 1, flush=True, lease=other)
        codes.append(answer_of(caught.value)[1])
    with pytest.raises(HttpResponseError) as second:
        await file.acquire_lease(lease_duration=15, lease_id=OTHER_LEASE)
    await file.append_data(b"2", 1, flush=True, lease=lease)
    await lease.renew()
    held = (await file.get_file_properties()).lease
    await lease.release()
    await file.append_data(b"3", 2, flush=True)

    assert codes[0] == "LeaseIdMissing"
    assert codes[1].startswith("LeaseIdMismatch")
    assert answer_of(second.value) == (409, "LeaseAlreadyPresent")
    assert (held.state, held.status, held.duration) == ("leased", "locked", "fixed")
    assert await (await file.download_file()).readall() == b"123"


async def test_lease_changed_and_broken(files: FileSystemClient) -> None:
    """A lease may get another id, and be broken by anyone."""
    file = await write(files, "file", b"1")
    lease = await file.acquire_lease(lease_id=LEASE)
    await lease.change(OTHER_LEASE)
    with pytest.raises(HttpResponseError) as old:
        await file.delete_file(lease=LEASE)
    left = await lease.break_lease(lease_break_period=0)
    await file.delete_file()

    assert answer_of(old.value)[0] == 412
    assert left == 0
    assert not await file.exists()


async def test_delete(files: FileSystemClient) -> None:
    """A file, then a tree, are gone; a second deletion finds nothing."""
    file = await write(files, "d/e/file", b"1")
    await write(files, "d/e/other", b"1")
    await file.delete_file()
    directory = files.get_directory_client("d")
    await directory.delete_directory()
    with pytest.raises(ResourceNotFoundError) as caught:
        await directory.delete_directory()

    assert answer_of(caught.value) == (404, "PathNotFound")
    assert [path async for path in files.get_paths()] == []


async def test_delete_under_a_condition(files: FileSystemClient) -> None:
    """A file with another etag than the one that was named stays."""
    file = await write(files, "file", b"1")
    condition: dict[str, Any] = {"match_condition": MatchConditions.IfNotModified}
    with pytest.raises(HttpResponseError) as caught:
        await file.delete_file(etag='"0x8D0000000000000"', **condition)
    etag = (await file.get_file_properties()).etag
    await file.delete_file(etag=etag, **condition)

    assert answer_of(caught.value) == (412, "ConditionNotMet")
    assert not await file.exists()


async def test_delete_of_a_full_directory_as_if_it_were_empty(files: FileSystemClient) -> None:
    """A deletion that is not recursive leaves a directory that holds something."""
    await write(files, "d/file", b"1")
    with pytest.raises(HttpResponseError) as caught:
        await files.get_file_client("d").delete_file()

    assert answer_of(caught.value) == (409, "DirectoryNotEmpty")
    assert await files.get_file_client("d/file").exists()

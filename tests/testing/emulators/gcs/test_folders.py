"""Folders of buckets with a hierarchical namespace, and the operations that rename them."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.testing.models.gcs.model import GcsLimits
from tests.testing.emulators.gcs.client import Answer, GcsClient, segment


async def _folder(gcs: GcsClient, name: str, **query: Any) -> Answer:
    return await gcs.ask("POST", "folders", {"name": name}, **query)


async def _rename(gcs: GcsClient, source: str, dest: str, **query: Any) -> Answer:
    place = f"folders/{segment(source)}/renameTo/folders/{segment(dest)}"
    return await gcs.ask("POST", place, **query)


async def test_a_folder_is_told_as_the_service_tells_it(hns: GcsClient) -> None:
    """When it is made, and when it is asked for."""
    made = await _folder(hns, "a/b/", recursive=True)
    got = await hns.ask("GET", f"folders/{segment('a/b/')}")
    shown = made.json

    assert (made.status, got.json) == (200, shown)
    assert shown["kind"] == "storage#folder"
    assert (shown["name"], shown["bucket"], shown["id"]) == ("a/b/", "data", "data/a/b/")
    assert shown["selfLink"].endswith("/storage/v1/b/data/folders/a%2Fb%2F")
    assert shown["metageneration"] == "1"
    assert shown["createTime"] == shown["updateTime"]


async def test_folders_that_cannot_be_made(hns: GcsClient) -> None:
    """A second time, without a parent, without a name."""
    await _folder(hns, "a/")

    assert (await _folder(hns, "a/")).brief == (409, "conflict")
    assert (await _folder(hns, "b/c/")).brief == (412, "conditionNotMet")
    assert (await hns.ask("POST", "folders", {})).brief == (400, "required")


async def test_folders_are_listed_in_pages(hns: GcsClient) -> None:
    """Also those that objects have made."""
    await hns.make("a/b/x")
    await _folder(hns, "c/")
    page = (await hns.ask("GET", "folders", pageSize=2)).json
    rest = (await hns.ask("GET", "folders", pageToken=page["nextPageToken"])).json
    below = (await hns.ask("GET", "folders", prefix="a/", fields="items/name")).json
    top = (await hns.ask("GET", "folders", delimiter="/", fields="items/name")).json

    names = [item["name"] for item in page["items"] + rest["items"]]
    assert page["kind"] == "storage#folders"
    assert names == ["a/", "a/b/", "c/"]
    assert below == {"items": [{"name": "a/"}, {"name": "a/b/"}]}
    assert top == {"items": [{"name": "a/"}, {"name": "c/"}]}


async def test_folders_are_prefixes_where_they_are_asked_for(hns: GcsClient) -> None:
    """An empty folder is seen in a listing of objects."""
    await _folder(hns, "empty/")
    without = (await hns.page(delimiter="/")).json
    with_them = (await hns.page(delimiter="/", includeFoldersAsPrefixes=True)).json

    assert "prefixes" not in without
    assert with_them["prefixes"] == ["empty/"]


async def test_folder_is_deleted_when_it_is_empty(hns: GcsClient) -> None:
    """409 before, 204 then, 404 after."""
    await hns.make("a/x")
    place = f"folders/{segment('a/')}"
    full = await hns.ask("DELETE", place)
    await hns.delete("a/x")
    empty = await hns.ask("DELETE", place)

    assert full.brief == (409, "conflict")
    assert (empty.status, empty.body) == (204, b"")
    assert (await hns.ask("DELETE", place)).brief == (404, "notFound")


async def test_rename_is_an_operation(hns: GcsClient) -> None:
    """Done at once here; the response has the folder that came of it."""
    await hns.make("a/b/x", b"1")
    answer = await _rename(hns, "a/", "c/")
    shown = answer.json
    name = shown["name"].rpartition("/")[2]

    assert (answer.status, shown["kind"], shown["done"]) == (200, "storage#operation", True)
    assert shown["name"] == f"projects/_/buckets/data/operations/{name}"
    assert shown["response"]["name"] == "c/"
    assert shown["metadata"]["sourceFolderId"] == "a/"
    assert shown["metadata"]["commonMetadata"]["progressPercent"] == 100
    assert (await hns.ask("GET", f"operations/{name}")).json == shown
    assert await hns.names() == ["c/b/x"]


async def test_rename_takes_its_time(hns: GcsClient) -> None:
    """Reads see the old tree meanwhile, writes below are refused, and it can be called off."""
    hns.emulator.service.limits = GcsLimits(operation_seconds=3600.0)
    await hns.make("a/x")
    shown = (await _rename(hns, "a/", "c/")).json
    name = shown["name"].rpartition("/")[2]
    pending = (await hns.ask("GET", f"folders/{segment('a/')}")).json
    refused = await hns.put("a/y")
    listed = (await hns.ask("GET", "operations")).json
    cancelled = await hns.ask("POST", f"operations/{name}/cancel")
    ended = (await hns.ask("GET", f"operations/{name}")).json

    assert (shown["done"], "response" in shown) == (False, False)
    assert pending["pendingRenameInfo"] == {"operationId": name}
    assert refused.status >= 400
    assert [operation["name"] for operation in listed["operations"]] == [shown["name"]]
    assert cancelled.json == {}
    assert ended["done"]
    assert ended["error"]["code"] == 1
    assert ended["metadata"]["commonMetadata"]["requestedCancellation"]
    assert await hns.names() == ["a/x"]


async def test_renames_that_cannot_be(hns: GcsClient) -> None:
    """From nothing, onto something, below itself, of another metageneration."""
    await hns.make("a/x")
    await hns.make("b/x")

    assert (await _rename(hns, "none/", "c/")).brief == (404, "notFound")
    assert (await _rename(hns, "a/", "b/")).status in (400, 409, 412)
    assert (await _rename(hns, "a/", "a/b/")).status == 400
    for condition in ("ifSourceMetagenerationMatch", "ifMetagenerationMatch"):
        answer = await _rename(hns, "a/", "c/", **{condition: 7})
        assert answer.brief == (412, "conditionNotMet")
    assert await hns.names() == ["a/x", "b/x"]


async def test_operations_are_listed_in_pages(hns: GcsClient) -> None:
    """The oldest first."""
    await hns.make("a/x")
    names = [(await _rename(hns, *_)).json["name"] for _ in (("a/", "b/"), ("b/", "c/"))]
    page = (await hns.ask("GET", "operations", pageSize=1)).json
    rest = (await hns.ask("GET", "operations", pageToken=page["nextPageToken"])).json

    assert page["kind"] == "storage#operations"
    assert [one["name"] for one in page["operations"] + rest["operations"]] == names


async def test_operations_that_are_none(hns: GcsClient) -> None:
    """404."""
    assert (await hns.ask("GET", "operations/none")).brief == (404, "notFound")


@pytest.mark.parametrize("path", ["folders", f"folders/{segment('a/')}"])
async def test_flat_buckets_have_no_folders(gcs: GcsClient, path: str) -> None:
    """They say that they have no hierarchical namespace."""
    answer = await gcs.ask("GET", path)

    assert answer.status in (400, 409, 412)
    assert "hierarchical" in answer.json["error"]["message"].lower()


async def test_managed_folders_are_none(hns: GcsClient) -> None:
    """They are asked for, and left alone."""
    assert (await hns.ask("GET", "managedFolders")).json == {"kind": "storage#managedFolders"}

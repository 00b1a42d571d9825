"""Our store on fake-gcs-server, a server of other hands: contract, jobs, and what it does not know.

It has no moves: renames go by rewrite and delete. Where it leaves something out, that is written
down here and must stay true, so that a newer one does not go unnoticed.
"""

from __future__ import annotations

import asyncio
import itertools
import urllib.error
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from asynccommit.api import open_job
from asynccommit.stores.base import Store
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.tree import tree_pages
from asynccommit.stores.urls import parse_url
from tests.support.contract import RULES, Rule, name_of
from tests.support.fake_gcs import ask, program, running_fake_server
from tests.witness.gcs import names, open_client, write

NUMBERS = itertools.count()
# It looks at no condition of a rewrite or of a deletion.
BROKEN = {
    "a_tree_is_listed_and_deleted_in_bulk",
    "copy_overwrites_only_when_told",
    "rename_does_not_replace_unasked",
    "rename_lets_one_of_many_win",
    "rename_moves_only_what_has_its_etag",
}


# One of many deletions of an object may find it, or several, without conditions.
UNCERTAIN = {"rename_of_one_source_to_many_succeeds_once"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Yield the URL of the server."""
    try:
        program()
    except ImportError as error:
        pytest.skip(f"needs fake-gcs-server: {error}")
    with running_fake_server() as url:
        yield url


@pytest.fixture
def root(server: str) -> str:
    """Return the name of a new bucket."""
    name = f"bucket-{next(NUMBERS)}"
    ask(server, "POST", "b?project=p", {"name": name})
    return name


@pytest.fixture
async def store(server: str, root: str) -> AsyncIterator[GcsStore]:
    """Yield our store on a new bucket."""
    opened = GcsStore(parse_url(f"gs://{root}/"), {"endpoint_url": server}, environ={})
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("rule", RULES, ids=name_of)
async def test_contract(rule: Rule, store: Store) -> None:
    """The store keeps the rules, but for those that the server breaks."""
    if name_of(rule) in UNCERTAIN:
        pytest.skip("the server looks at no condition: any of many may win")
    await store.mkdir("/root")
    if name_of(rule) not in BROKEN:
        await rule(store, "/root")
        return
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await rule(store, "/root")


async def test_what_is_learned(store: GcsStore) -> None:
    """The store finds that there are no folders and no moves, and that there are batches."""
    made = await store.put("/a", b"12345")
    await store.rename("/a", "/b", etag=made.etag)
    found = await store.head("/b")

    assert not store.traits.atomic_directory_rename
    assert (store.traits.costs["rename"], store.traits.bulk_delete) == (2, 100)
    assert str(found.etag).partition("-")[2] == str(made.etag).partition("-")[2]


async def files_of(store: GcsStore) -> list[str]:
    """Return the paths of all files of a store, and of what it takes for directories."""
    pages = tree_pages(store, "/")
    return sorted([info.path + "/" * info.is_dir async for page in pages for info in page])


@pytest.mark.usefixtures("in_a_hurry")
async def test_job(store: GcsStore, server: str, root: str) -> None:
    """A whole job is committed, and a second one replaces a part of it; nothing else is left."""
    storage = {"endpoint_url": server, "token": "anon"}
    url = f"gs://{root}/a table"
    async with open_job(url, storage_options=storage) as job:
        for number in range(3):
            with pytest.raises(ValueError, match="failed"):
                async with job.task(number) as task:
                    await task.put(f"day=1/failed-{number}", b"half")
                    raise ValueError("failed")
            async with job.task(number, attempt=1) as task:
                await task.put(f"day=1/é part-{number}", b"1")
                await task.put(f"day=2/part-{number}", b"%d" % number)
    assert job.report is not None
    first = await files_of(store)
    again = open_job(url, storage_options=storage, mode="replace_partitions")
    async with again as job, job.task(0) as task:
        await task.put("day=1/alone", b"alone")

    day_2 = [f"/a table/day=2/part-{number}" for number in range(3)]
    assert first == sorted(
        [*day_2, *(f"/a table/day=1/é part-{number}" for number in range(3)), "/a table/_SUCCESS"]
    )
    assert await files_of(store) == sorted([*day_2, "/a table/day=1/alone", "/a table/_SUCCESS"])
    assert await store.get("/a table/day=2/part-2", 100) == b"2"


@pytest.mark.usefixtures("in_a_hurry")
async def test_job_that_is_aborted(store: GcsStore, server: str, root: str) -> None:
    """Of a job that fails nothing is left."""
    storage = {"endpoint_url": server, "token": "anon"}
    with pytest.raises(ValueError, match="no"):
        async with open_job(f"gs://{root}/t", storage_options=storage) as job:
            async with job.task(0) as task:
                await task.put("part", b"1")
            raise ValueError("no")

    assert [path for path in await files_of(store) if "/part" in path] == []


async def test_sixteen_renames_at_one_time(store: GcsStore) -> None:
    """Many renames go on side by side, and each is done."""
    made = [await store.put(f"/d/{number}", b"%d" % number) for number in range(16)]
    await asyncio.gather(
        *(store.rename(info.path, f"/e/{info.path[3:]}", etag=info.etag) for info in made)
    )

    assert await files_of(store) == sorted(f"/e/{number}" for number in range(16))


# --- what it does otherwise than the service ---------------------------------------------------


def status_of(url: str, method: str, path: str, body: Any = None) -> int:
    """Return the status of an answer that says no, or 200."""
    try:
        ask(url, method, path, body)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


def test_what_it_does_not_know(server: str, root: str) -> None:
    """No moves, no folders, no layout of a bucket: 404, without a reason."""
    with open_client(server) as client:
        write(client.bucket(root), "a")
    absent = {
        ("POST", "o/a/moveTo/o/b"),
        ("GET", "storageLayout"),
        ("GET", "folders"),
        ("POST", "folders"),
        ("GET", "operations"),
    }

    assert {status_of(server, *_ask(root, one)) for one in absent} <= {400, 404, 405}


def _ask(root: str, one: tuple[str, str]) -> tuple[str, str]:
    return one[0], f"b/{root}/{one[1]}"


def test_conditions_that_it_does_not_look_at(server: str, root: str) -> None:
    """A deletion, a copy and a rewrite under a condition that does not hold are done."""
    with open_client(server) as client:
        bucket = client.bucket(root)
        for name in ("a", "b", "c"):
            write(bucket, name, name.encode())
        bucket.copy_blob(bucket.blob("a"), bucket, "b", if_generation_match=0)
        bucket.blob("c").rewrite(bucket.blob("a"), if_generation_match=1)
        bucket.blob("a").delete(if_generation_match=1)

        assert names(bucket) == ["b", "c"]
        assert [blob.download_as_bytes() for blob in bucket.list_blobs()] == [b"a", b"a"]


def test_conditions_that_it_looks_at(server: str, root: str) -> None:
    """An upload in two parts, with a description, is refused where it should be."""
    with open_client(server) as client:
        bucket = client.bucket(root)
        write(bucket, "a", b"1")
        with pytest.raises(Exception, match="412"):
            bucket.blob("a").upload_from_string(b"2", if_generation_match=0)

        assert bucket.blob("a").download_as_bytes() == b"1"


def test_batches_that_it_does_not_understand(server: str, root: str) -> None:
    """In a batch with bare line feeds, as the SDK writes it, it finds no part, and says 200."""
    with open_client(server) as client:
        bucket = client.bucket(root)
        write(bucket, "a")
        with pytest.raises(ValueError, match="not multi-part"), client.batch():
            bucket.delete_blob("a")

        assert names(bucket) == ["a"]

"""Small files on a real NameNode are closed once a write has returned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from asynccommit.stores.hdfs.client import HdfsClient
from asynccommit.stores.hdfs.options import read_settings
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(180)]

_numbers = count()
FILES = 50  # more than there are threads that close


@pytest.fixture
def root(hdfs: MiniHdfs) -> str:
    """Return a new empty directory of this test's own."""
    path = f"/close-{next(_numbers)}"
    hdfs.mkdirs(path)
    return path


@pytest.fixture
def client(hdfs: MiniHdfs) -> HdfsClient:
    """Return the client of a store."""
    return HdfsClient(read_settings(parse_url(hdfs.url), {}, environ={}))


@pytest.fixture
async def store(hdfs: MiniHdfs, client: HdfsClient) -> AsyncIterator[HdfsStore]:
    """Open a store over that client."""
    opened = HdfsStore(parse_url(hdfs.url), environ={}, client=client)
    yield opened
    await opened.aclose()


async def test_files_are_closed_when_their_writes_return(
    hdfs: MiniHdfs, store: HdfsStore, root: str
) -> None:
    """Many at once too; their content and length are what was written."""

    async def put(number: int) -> None:
        data = b"x" * (number * 1000 + 1)
        info = await store.put(f"{root}/{number}", data)
        assert info.size == len(data)
        path = hdfs.path(f"{root}/{number}")
        assert await asyncio.to_thread(hdfs.filesystem.isFileClosed, path)

    await asyncio.gather(*(put(number) for number in range(FILES)))

    for number in (0, FILES - 1):
        assert hdfs.read(f"{root}/{number}") == b"x" * (number * 1000 + 1)


async def test_second_request_of_the_library_changes_nothing(
    hdfs: MiniHdfs, store: HdfsStore, client: HdfsClient, root: str
) -> None:
    """The library asks once more after a while: for a file that was renamed, or is gone."""
    kept = await store.put(f"{root}/kept", b"data")
    await store.put(f"{root}/gone", b"data")
    await store.delete(f"{root}/gone")

    await asyncio.to_thread(client._closing.shutdown, wait=True)

    assert await store.head(f"{root}/kept") == kept
    assert hdfs.read(f"{root}/kept") == b"data"
    assert not hdfs.exists(f"{root}/gone")


async def test_empty_files_have_no_block_to_wait_for(
    hdfs: MiniHdfs, store: HdfsStore, root: str
) -> None:
    """They are closed by one request."""
    await store.put(f"{root}/empty", b"")
    assert hdfs.filesystem.isFileClosed(hdfs.path(f"{root}/empty"))

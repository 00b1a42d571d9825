"""Responses of a real NameNode that are lost, after what was asked for has been done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from asynccommit import open_job, open_store
from asynccommit.errors import ExistsError, OutcomeUnknownError
from asynccommit.stores.hdfs import client
from asynccommit.stores.policies.funnel import Wrapped
from tests.support.lossy_proxy import LossyProxy, lossy_proxy
from tests.support.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(180)]

_numbers = count()
LOSSES = pytest.mark.parametrize("times", [1, 2, 3])


@pytest.fixture
def root(hdfs: MiniHdfs) -> str:
    """Return a new empty directory of this test's own."""
    path = f"/lost-{next(_numbers)}"
    hdfs.mkdirs(path)
    return path


@pytest.fixture
async def proxy(hdfs: MiniHdfs) -> AsyncIterator[LossyProxy]:
    """Run a proxy before the NameNode."""
    async with lossy_proxy(hdfs.cluster.getNameNodePort()) as running:
        yield running


@pytest.fixture
async def store(proxy: LossyProxy) -> AsyncIterator[Wrapped]:
    """Open the store behind the proxy, with the policies of a commit."""
    async with open_store(f"hdfs://127.0.0.1:{proxy.port}") as opened:
        assert isinstance(opened, Wrapped)
        yield opened


@LOSSES
async def test_rename_of_a_file_is_settled(
    hdfs: MiniHdfs, proxy: LossyProxy, store: Wrapped, root: str, times: int
) -> None:
    """Its etag is found at the destination."""
    info = await store.put(f"{root}/a", b"data")
    proxy.lose(b"rename2", times)

    await store.rename(f"{root}/a", f"{root}/b", etag=info.etag)

    assert proxy.lost >= 1
    assert hdfs.read(f"{root}/b") == b"data"
    assert not hdfs.exists(f"{root}/a")


@LOSSES
@pytest.mark.parametrize("overwrite", [False, True])
async def test_write_is_settled(
    hdfs: MiniHdfs, proxy: LossyProxy, store: Wrapped, root: str, times: int, overwrite: bool
) -> None:
    """The temporary file tells whether it has arrived, and none is left behind."""
    proxy.lose(b"rename2", times)

    await store.put(f"{root}/a", b"data", overwrite=overwrite)

    assert proxy.lost >= 1
    assert hdfs.read(f"{root}/a") == b"data"
    listed = hdfs.filesystem.listStatus(hdfs.path(root))
    assert [status.getPath().getName() for status in listed] == ["a"]


@LOSSES
@pytest.mark.parametrize("method", [b"complete", b"recoverLease", b"getContentSummary"])
async def test_file_is_closed_although_responses_are_lost(
    hdfs: MiniHdfs,
    proxy: LossyProxy,
    store: Wrapped,
    root: str,
    times: int,
    method: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is lost of the requests that close a file is asked for again."""
    monkeypatch.setattr(client, "_PAUSES", (0.02,) * 1000)  # a slow machine has time for all
    proxy.lose(method, times)

    with hdfs.blocks_unreported():
        writing = asyncio.create_task(store.put(f"{root}/a", b"data"))
        await proxy.asked(b"complete")  # this comes too early
        for _ in range(2):
            await proxy.asked(b"getContentSummary")
    await writing

    assert proxy.lost >= 1
    assert hdfs.read(f"{root}/a") == b"data"
    assert hdfs.filesystem.isFileClosed(hdfs.path(f"{root}/a"))


@LOSSES
async def test_write_does_not_pass_for_anothers(
    hdfs: MiniHdfs, proxy: LossyProxy, store: Wrapped, root: str, times: int
) -> None:
    """A file that was there stays, and the write is refused."""
    hdfs.write(f"{root}/a", b"other")
    proxy.lose(b"rename2", times)

    with pytest.raises((ExistsError, OutcomeUnknownError)):
        await store.put(f"{root}/a", b"data!", overwrite=False)

    assert proxy.lost >= 1
    assert hdfs.read(f"{root}/a") == b"other"


@LOSSES
@pytest.mark.parametrize("method", [b"mkdirs", b"delete"])
async def test_repeatable_requests_are_sent_again(
    proxy: LossyProxy, store: Wrapped, root: str, times: int, method: bytes
) -> None:
    """A directory is made, and deleted, whatever becomes of the responses."""
    proxy.lose(method, times)

    await store.mkdir(f"{root}/d/e")
    await store.put(f"{root}/d/e/f", b"x")
    try:
        await store.delete_tree(f"{root}/d")
    finally:
        assert (await store.list(root)).entries == ()
    assert proxy.lost >= 1


@LOSSES
async def test_rename_of_a_directory_is_settled(
    hdfs: MiniHdfs, proxy: LossyProxy, store: Wrapped, root: str, times: int
) -> None:
    """The directory keeps its time, by which it is known at the destination."""
    hdfs.mkdirs(f"{root}/a")
    proxy.lose(b"rename2", times)

    await store.rename(f"{root}/a", f"{root}/b")

    assert hdfs.exists(f"{root}/b")
    assert not hdfs.exists(f"{root}/a")


async def test_job_is_committed_although_responses_are_lost(
    hdfs: MiniHdfs, proxy: LossyProxy, root: str
) -> None:
    """Each file of the job is moved once, and none is missing."""
    async with open_job(f"hdfs://127.0.0.1:{proxy.port}{root}/t") as job:
        async with job.task(0) as task:
            for number in range(12):
                await task.put(f"part-{number}", str(number).encode())
        proxy.lose(b"/part-", 5)

    assert proxy.lost == 5
    assert job.report.files == 12
    assert [hdfs.read(f"{root}/t/part-{n}") for n in range(12)] == [
        str(n).encode() for n in range(12)
    ]

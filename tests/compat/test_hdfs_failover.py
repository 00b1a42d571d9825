"""Two NameNodes: the active one gives way, or dies, in the middle of the renames of a job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asynccommit import open_job, open_store
from asynccommit.stores.hdfs import store as hdfs_store
from asynccommit.stores.hdfs.store import HdfsStore
from tests.support import mini_hdfs
from tests.support.mini_hdfs import MiniHdfs, start_mini_hdfs

pytestmark = [pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(180)]

FILES = 200
BEFORE = 100  # renames that the first NameNode is asked for


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHdfs]:
    """Run two NameNodes and a DataNode."""
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    with start_mini_hdfs(tmp_path_factory.mktemp("pair"), "-Xmx512m", pair=True) as started:
        yield started


def options_of(pair: MiniHdfs) -> dict[str, str]:
    """Return Hadoop's keys of the name service ``ns``."""
    ports = [pair.cluster.getNameNodePort(number) for number in (0, 1)]
    return {
        "dfs.ha.namenodes.ns": "a,b",
        "dfs.namenode.rpc-address.ns.a": f"127.0.0.1:{ports[0]}",
        "dfs.namenode.rpc-address.ns.b": f"127.0.0.1:{ports[1]}",
    }


def give_way(pair: MiniHdfs) -> None:
    """Make the active NameNode a standby."""
    pair.cluster.transitionToStandby(0)


def die(pair: MiniHdfs) -> None:
    """End the active NameNode."""
    pair.cluster.shutdownNameNode(0)


def take_over(pair: MiniHdfs) -> None:
    """Make the other NameNode active, after a while."""
    time.sleep(1)
    pair.cluster.transitionToActive(1)


async def _after(before: asyncio.Future[None], call: Callable[[], None]) -> None:
    await before
    await asyncio.get_running_loop().run_in_executor(None, call)


@pytest.mark.parametrize("event", [give_way, die])
async def test_job_goes_on_after_a_failover(
    pair: MiniHdfs, event: Callable[[MiniHdfs], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is moved once, and the commit ends without a hand."""
    rename, seen = HdfsStore.rename, list[str]()
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()

    async def watched(self: HdfsStore, source: str, dest: str, **more: Any) -> None:
        if "/part-" in dest:
            seen.append(dest)
            if len(seen) == BEFORE:
                await loop.run_in_executor(None, event, pair)
                gone.set_result(None)
            elif len(seen) > BEFORE:
                await gone
        await rename(self, source, dest, **more)

    monkeypatch.setattr(HdfsStore, "rename", watched)
    monkeypatch.setattr(hdfs_store, "BATCH", 0)  # each rename is a request, and is seen
    options = options_of(pair)
    async with open_job("hdfs://ns/t", storage_options=options) as job:
        async with job.task(0) as task:
            await asyncio.gather(*(task.put(f"part-{n}", b"x") for n in range(FILES)))
        taken = asyncio.ensure_future(_after(gone, lambda: take_over(pair)))
    await taken

    assert job.report.files == FILES
    assert len(seen) > FILES  # some were asked for twice
    async with open_store("hdfs://ns", storage_options=options) as store:
        names = {info.path.rpartition("/")[2] for info in (await store.list("/t")).entries}
    assert names == {"_SUCCESS"} | {f"part-{n}" for n in range(FILES)}

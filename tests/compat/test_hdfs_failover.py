"""Two NameNodes: the active one gives way, or dies, in the middle of the renames of a job."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from asynccommit import Options, open_job, open_store
from asynccommit.spark.hadoop_store.opening import facts_of
from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores import elsewhere
from asynccommit.stores.base import Move, Renamed
from asynccommit.stores.elsewhere import STORE_OPTION
from asynccommit.stores.hdfs import client as hdfs_client
from asynccommit.stores.hdfs import store as hdfs_store
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import Address
from tests.support import mini_hdfs
from tests.support.mini_hdfs import MiniHdfs, start_mini_hdfs

pytestmark = [pytest.mark.every(3), pytest.mark.jvm, pytest.mark.full, pytest.mark.timeout(180)]

FILES = 200
_HA = "org.apache.hadoop.hdfs.server.namenode.ha"
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


def counting_client(at: int, event: Callable[[], None]) -> Callable[..., Any]:
    """Return what makes clients of hdfs-native that run ``event`` before one of the renames.

    Renames of other threads wait for its end, so that they meet what it has left.
    """
    make, numbers, over = hdfs_client._client, count(1), threading.Event()

    class Counting:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

        def rename(self, source: str, dest: str, overwrite: bool) -> None:
            if dest.startswith("/t/part-") and (number := next(numbers)) >= at:
                if number == at:
                    event()
                    over.set()
                over.wait()
            self._client.rename(source, dest, overwrite)

    return lambda *arguments: Counting(make(*arguments))


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


def open_through(pair: MiniHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``asynccommit.store=jvm`` open the name service by Hadoop's client."""
    conf = {"dfs.nameservices": "ns", **options_of(pair)}
    conf["dfs.client.failover.proxy.provider.ns"] = f"{_HA}.ConfiguredFailoverProxyProvider"
    files = pair.hadoop.new("org.asynccommit.spark.Filesystems")
    with pair.hadoop.errors():
        files.open("hdfs://ns/", pair.hadoop.configuration(conf))
        facts = facts_of(files, "hdfs://ns")

    def opener(_address: Address, _options: Mapping[str, Any]) -> HadoopStore:
        return HadoopStore(lambda: files.calls("hdfs://ns"), facts)

    monkeypatch.setitem(elsewhere._OPENERS, "jvm", opener)


async def check_job(pair: MiniHdfs, storage: dict[str, str], gone: asyncio.Future[None]) -> None:
    """Write a job of many files, let the other NameNode take over, and look at the result."""
    few = Options(workers=4)  # so that a batch has many files
    direct = options_of(pair)  # a NameNode that is dead tells its port no more
    async with open_job("hdfs://ns/t", options=few, storage_options=storage) as job:
        async with job.task(0) as task:
            await asyncio.gather(*(task.put(f"part-{n}", b"x") for n in range(FILES)))
        taken = asyncio.ensure_future(_after(gone, lambda: take_over(pair)))
    await taken
    assert job.report.files == FILES
    async with open_store("hdfs://ns", storage_options=direct) as store:
        names = {info.path.rpartition("/")[2] for info in (await store.list("/t")).entries}
    assert names == {"_SUCCESS"} | {f"part-{n}" for n in range(FILES)}


@pytest.mark.parametrize("event", [give_way, die])
async def test_job_goes_on_after_a_failover_within_a_batch(
    pair: MiniHdfs, event: Callable[[MiniHdfs], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renames of a batch before the failover and after it are each done once."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    monkeypatch.setattr(hdfs_store, "BATCH", 16)

    def fail() -> None:
        event(pair)
        loop.call_soon_threadsafe(gone.set_result, None)

    monkeypatch.setattr(hdfs_client, "_client", counting_client(BEFORE, fail))
    await check_job(pair, options_of(pair), gone)


@pytest.mark.parametrize("event", [give_way, die])
async def test_job_through_the_jvm_goes_on_after_a_failover(
    pair: MiniHdfs, event: Callable[[MiniHdfs], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop's client sends again what the first NameNode did not answer, in its batches too."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    rename_many, batches = HadoopStore.rename_many, count(1)

    async def fail() -> None:
        await loop.run_in_executor(None, event, pair)
        gone.set_result(None)

    async def watched(self: HadoopStore, pairs: Sequence[Move]) -> Renamed:
        if next(batches) != 2:
            return await rename_many(self, pairs)
        done, _ = await asyncio.gather(rename_many(self, pairs), fail())
        return done

    monkeypatch.setattr(HadoopStore, "rename_many", watched)
    await asyncio.to_thread(open_through, pair, monkeypatch)
    await check_job(pair, {STORE_OPTION: "jvm"}, gone)

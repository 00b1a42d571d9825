"""Files of tasks that go to ADLS and Google Cloud Storage in blocks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from asynccommit import OptionError, engine, open_job, open_store
from asynccommit.commit.tasks.output import StoreWork
from asynccommit.errors import StoreError
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings
from asynccommit.stores.registry import open_store as open_wrapped
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.fault_rules import (
    AFTER,
    AGAIN,
    BEFORE,
    CUT,
    CUT_BEFORE,
    Fault,
)
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.models.latency import Latency
from tests.support.uploads import Gate, Gauge

BASE = "/out/_temporary/task"
DATA = random.Random(0).randbytes(5 * (256 << 10) + 77)


@dataclass
class Service:
    """An emulator, and how its store is opened."""

    emulator: AdlsEmulator | GcsEmulator
    url: str
    options: Mapping[str, Any]
    block: int
    appends: str
    failure: str


@pytest.fixture(params=["adls", "gcs"])
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """Run an emulator whose stores take blocks of 16 KiB or 256 KiB, the least there are."""
    if request.param == "adls":
        async with AdlsEmulator() as adls:
            adls.model.create_filesystem("data")
            options: dict[str, Any] = {"connection_string": adls.connection_string}
            options["fs.azure.write.request.size"] = "16K"
            url = f"abfs://data@{adls.account}.dfs.core.windows.net/out"
            yield Service(adls, url, options, 16 << 10, "append", "InternalError")
        return
    async with GcsEmulator(buckets={"data": BucketOptions()}) as gcs:
        options = {"endpoint_url": gcs.endpoint, "token": "anon", "chunk": 256 << 10}
        yield Service(gcs, "gs://data/out", options, 256 << 10, "upload", "backendError")


@pytest.fixture
async def store(service: Service) -> AsyncIterator[Store]:
    """The store, which repeats what fails."""
    settings = StoreSettings(random.Random(1), options=service.options)
    opened = open_wrapped(parse_url(service.url), settings)
    await opened.mkdir(BASE)
    service.emulator.weather.requests.clear()
    yield opened
    await opened.aclose()


def work_of(store: Store, service: Service) -> StoreWork:
    """Return the output of a task."""
    return StoreWork(store, parse_url(service.url), BASE)


async def found(store: Store) -> dict[str, int]:
    """Return the files of the task, with their sizes; hidden ones are not listed."""
    return {
        info.path.removeprefix(f"{BASE}/"): info.size
        async for info in engine.list_tree(store, BASE)
        if not info.is_dir
    }


def hidden(service: Service) -> list[str]:
    """Return what the service has below the task beside the files that are listed."""
    emulator = service.emulator
    if isinstance(emulator, GcsEmulator):
        return []
    entries, _ = emulator.model.list("data", BASE[1:], recursive=True)
    return [path for path, _ in entries if path.endswith(".tmp")]


@pytest.mark.parametrize("sizes", [[0], [7], [1], [2, 7], [1.5, 0.5], [3.25, 1.75, 7]], ids=repr)
async def test_blocks_are_what_was_written(
    service: Service, store: Store, sizes: list[float]
) -> None:
    """However it is cut into chunks, the file is what was written, and hidden before its end."""
    chunks = [DATA[: 7 if n == 7 else int(n * service.block)] for n in sizes]
    file = await work_of(store, service).open("day=1/part-0")

    for chunk in chunks:
        assert await file.write(chunk) == len(chunk)
    assert await found(store) == {}
    await file.aclose()
    await file.aclose()

    whole = b"".join(chunks)
    assert await found(store) == {"day=1/part-0": len(whole)}
    assert await store.get(f"{BASE}/day=1/part-0", 1 << 30) == whole
    assert hidden(service) == []


async def test_a_file_of_one_block_is_one_put(service: Service, store: Store) -> None:
    """Small files take the requests of ``put`` and no more."""
    work, requests = work_of(store, service), service.emulator.weather.requests
    await work.put("a", b"data")
    whole = dict(requests)
    requests.clear()
    async with await work_of(store, service).open("b") as file:
        await file.write(DATA[: service.block])

    assert dict(requests) == whole


async def test_memory_is_bounded(service: Service, store: Store) -> None:
    """Of two files that are written together five blocks are in memory at most, and one more."""
    gauge = Gauge()
    work = work_of(Wrapped(store, gauge), service)

    async def write(name: str) -> None:
        async with await work.open(name) as file:
            for start in range(0, len(DATA), 1000):
                await file.write(DATA[start : start + 1000])

    await asyncio.gather(write("a"), write("b"))

    assert gauge.most <= 4 * service.block
    assert await found(store) == {"a": len(DATA), "b": len(DATA)}


async def test_blocks_are_sent_together_or_in_order(service: Service, store: Store) -> None:
    """Azure takes four blocks of a file at once; Google's sessions one after the other."""
    gate = Gate("put_block")
    work = work_of(Wrapped(store, gate), service)
    file = await work.open("a")
    writing = asyncio.create_task(file.write(DATA[: 5 * service.block]))
    await writing
    for _ in range(20):
        await asyncio.sleep(0)
    waiting = gate.waiting
    gate.open()
    await file.aclose()

    assert waiting == (4 if service.appends == "append" else 1)
    assert await store.get(f"{BASE}/a", 1 << 30) == DATA[: 5 * service.block]


@pytest.mark.parametrize("kind", [BEFORE, AFTER, CUT_BEFORE, CUT])
async def test_requests_that_fail(service: Service, store: Store, kind: str) -> None:
    """Every second request fails or has no response, and the file is what was written.

    A hidden file whose creation had no response stays until the directory of the task is deleted.
    """
    service.emulator.weather.add(Fault(kind, "*", every=2, times=5, code=service.failure))
    async with await work_of(store, service).open("a") as file:
        await file.write(DATA)

    service.emulator.weather.clear()
    assert await store.get(f"{BASE}/a", 1 << 30) == DATA
    assert await found(store) == {"a": len(DATA)}
    assert len(hidden(service)) <= (kind in (AFTER, CUT))


async def test_a_failure_aborts_the_file(service: Service, store: Store) -> None:
    """An exception in the block leaves neither a file nor a hidden one."""
    with pytest.raises(ValueError, match="mine"):
        async with await work_of(store, service).open("a") as file:
            await file.write(DATA)
            raise ValueError("mine")

    assert await found(store) == {}
    assert hidden(service) == []


async def test_a_cancelled_write_ends_the_file(service: Service, store: Store) -> None:
    """Nobody knows how much of the data is in it, so it can only be aborted."""
    gate = Gate("put_block")
    file = await work_of(Wrapped(store, gate), service).open("a")
    writing = asyncio.create_task(file.write(DATA * 4))
    while not gate.waiting:  # noqa: ASYNC110 - the gate counts, and has no event
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing

    gate.open()
    with pytest.raises(OptionError, match="a write was cancelled in progress"):
        await file.aclose()
    assert await found(store) == {}
    assert hidden(service) == []


async def test_a_later_file_replaces_an_earlier_one(service: Service, store: Store) -> None:
    """A task may write a name again, in blocks or whole."""
    work = work_of(store, service)
    for data in (b"first", DATA, DATA[::-1], b"last"):
        async with await work.open("a") as file:
            await file.write(data)
        assert await store.get(f"{BASE}/a", 1 << 30) == data
    assert await found(store) == {"a": 4}


async def test_a_creation_and_a_move_that_come_again_late(service: Service, store: Store) -> None:
    """The second creation makes an empty file, which the second move may not put in the place."""
    if isinstance(service.emulator, GcsEmulator):
        pytest.skip("there a file is created in its place, by its last block")
    service.emulator.weather.add(
        Fault(AGAIN, "create", times=1, delay=Latency(first=0.3)),
        Fault(AGAIN, "rename", times=1, delay=Latency(first=0.4)),
    )
    async with await work_of(store, service).open("a") as file:
        await file.write(DATA)
    await asyncio.sleep(0.8)

    assert await store.get(f"{BASE}/a", 1 << 30) == DATA


async def test_a_flush_that_is_executed_again(service: Service, store: Store) -> None:
    """The file has another etag than the answer said, and is moved under the new one."""
    if isinstance(service.emulator, GcsEmulator):
        pytest.skip("there is no flush")
    service.emulator.weather.add(Fault(AGAIN, "flush", delay=Latency(first=0.0)))
    async with await work_of(store, service).open("a") as file:
        await file.write(DATA)

    assert await store.get(f"{BASE}/a", 1 << 30) == DATA
    assert service.emulator.weather.struck["again flush"] == 1


async def test_a_directory_in_the_place(service: Service, store: Store) -> None:
    """It stays; the file is refused and discarded."""
    work = work_of(store, service)
    await work.put("a/b", b"data")
    if service.appends == "upload":
        pytest.skip("a bucket has both")
    with pytest.raises(StoreError):
        async with await work.open("a") as file:
            await file.write(DATA)

    assert await found(store) == {"a/b": 4}
    assert hidden(service) == []


async def test_a_job_of_large_files(service: Service) -> None:
    """What was written in blocks is what the job commits."""
    async with (
        open_job(service.url, storage_options=service.options) as job,
        job.task(0) as task,
        await task.open("day=1/part-0") as file,
    ):
        for start in range(0, len(DATA), 10_000):
            await file.write(DATA[start : start + 10_000])

    async with open_store(service.url, storage_options=service.options) as store:
        assert await store.get("/out/day=1/part-0", 1 << 30) == DATA

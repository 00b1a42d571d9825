"""Uploads and whole magic jobs over HTTP on moto, through a proxy in a storm: each file once.

What no answer told of may stay: uploads that were begun and never known, files that were written
again when the job was over. The first the command's own sweep finds; nobody reads the second.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from asynccommit.commit.by_upload.abort_uploads import abort_uploads
from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.layouts.layout import SUCCESS
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.errors import NotFoundError
from asynccommit.formats.magic_paths import is_magic
from asynccommit.inspect.open_uploads import choose, find_uploads, list_open
from asynccommit.options.job import Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.tree import tree_pages
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.latency import Latency
from tests.support.s3_servers import SMALLEST, moto_url, new_bucket, options
from tests.support.storms import Size, host

__all__ = ["moto_url"]

SIZE = Size(tasks=4, files=5, partitions=2)
SEEDS = range(int(os.environ.get("ASYNCCOMMIT_SEEDS", "2")))
UPLOADS = 16
LATEST = 0.3

_LATER = Latency.from_json({"model": "uniform", "low": 0.0, "high": LATEST})
STORM = Climate(
    (
        Fault("before", probability=0.02, retry_after=0),
        Fault("cut_before", probability=0.02),
        Fault("after", probability=0.02),
        Fault("cut", probability=0.02),
        Fault("cut", "complete_upload", every=4),
        Fault("after", "complete_upload", probability=0.1, code="InternalErrorInBody"),
        Fault("late", "complete_upload", probability=0.1, delay=_LATER),
        Fault("late", "put_part", probability=0.05, delay=_LATER),
        Fault("late", "put", probability=0.02, delay=_LATER),
        Fault("late", "abort_upload", probability=0.1, delay=_LATER, reply="refusal"),
    )
)


@asynccontextmanager
async def _store(url: str, bucket: str, seed: int) -> AsyncIterator[Wrapped]:
    settings = StoreSettings(random.Random(seed), attempts=20, options=options(url))
    store = open_store(parse_url(f"s3://{bucket}/"), settings)
    try:
        yield store
    finally:
        await store.aclose()


async def _files(store: Wrapped) -> dict[str, bytes]:
    """Return what is below the destination, by name, but what belongs to jobs alone."""
    found: dict[str, bytes] = {}

    async def read(path: str) -> None:
        found[path.removeprefix("/table/")] = await store.get(path, 1 << 20)

    async for entries in tree_pages(store, "/table"):
        paths = [info.path for info in entries if not info.is_dir and not is_magic(info.path)]
        await for_each(paths, read, workers=8)
    return found


async def _run(job: MagicCommitter) -> int:
    """Have the tasks of a job write and commit, one of them in an attempt that is given up."""
    await job.setup_job()
    commits = []
    for task in range(SIZE.tasks):
        for attempt in range(2 if task == 0 else 1):
            task_id, attempt_id = job.layout.ids(task, attempt)
            await job.setup_task(attempt_id)
            work = job.work(attempt_id)
            for name in SIZE.names(task):
                await work.put(name, name.encode())
            if task == 0 and attempt == 0:
                await job.abort_task(task_id, attempt_id)
            else:
                commits.append(await job.commit_task(task_id, attempt_id))
    return (await job.commit_job(commits, strict=True)).files


async def _live(store: Wrapped, number: int) -> None:
    """Upload a file in three parts; complete it, or abort it if its number is odd."""
    path = f"/table/{number}"
    upload_id = await store.create_upload(path)
    pieces = [bytes([number + at]) * SMALLEST for at in range(3)]
    parts = [await store.put_part(path, upload_id, at, data) for at, data in enumerate(pieces, 1)]
    if number % 2:
        with suppress(NotFoundError):  # an abort whose answer was lost
            await store.abort_upload(path, upload_id)
    else:
        await store.complete_upload(path, upload_id, parts, overwrite=False)


async def _sweep(store: Wrapped, dest: Address) -> None:
    """Abort what is left open below a place, and see that nothing is."""
    found = await find_uploads(store, dest, host(0).now())
    left = choose(found, 0.0, None)
    uploads = [one.upload for one in left.uploads]
    swept = await abort_uploads(store, uploads, lambda: list_open(store, dest.path))

    assert (swept.failures, swept.ended, left.kept) == ([], [], [])
    assert await list_open(store, dest.path) == []


@pytest.mark.sample(1)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_upload_ends_once(moto_url: str, seed: int) -> None:
    """What was completed is there and whole; what was aborted is not, and costs nothing."""
    bucket = await asyncio.to_thread(new_bucket, moto_url)
    async with S3Proxy(moto_url, climate=STORM, seed=seed) as proxy:
        async with _store(proxy.endpoint, bucket, seed) as store:
            await for_each(range(UPLOADS), lambda number: _live(store, number), workers=4)
        await asyncio.sleep(LATEST)
    async with _store(moto_url, bucket, seed) as calm:
        there = await _files(calm)
        await _sweep(calm, parse_url(f"s3://{bucket}/table"))

        assert there == {
            str(number): b"".join(bytes([number + at]) * SMALLEST for at in range(3))
            for number in range(0, UPLOADS, 2)
        }
        assert proxy.weather.struck["cut complete_upload"] > 0


@pytest.mark.every(3)
@pytest.mark.full
@pytest.mark.sample(1)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_job_ends_committed(moto_url: str, seed: int) -> None:
    """Each file is there once and whole, and nothing else; no upload is left after a sweep."""
    bucket = await asyncio.to_thread(new_bucket, moto_url)
    dest = parse_url(f"s3://{bucket}/table")
    async with S3Proxy(moto_url, climate=STORM, seed=seed) as proxy:
        async with _store(proxy.endpoint, bucket, seed) as store:
            layout = MagicLayout(dest, f"{seed:08}-2222-3333-4444-555555555555", 0)
            files = await _run(MagicCommitter(store, layout, Options(), host(seed)))
            recover = next(one for one in store.policies if isinstance(one, Recover))
            recovered = Counter(recover.recovered)
        await asyncio.sleep(LATEST)
        struck = proxy.weather.struck
    async with _store(moto_url, bucket, seed) as calm:
        wanted = {name: name.encode() for task in range(SIZE.tasks) for name in SIZE.names(task)}
        there = await _files(calm)
        await _sweep(calm, dest)

        assert files == len(wanted)
        assert there.pop(SUCCESS)
        assert there == wanted
        assert recovered["complete_upload"] > 0
        assert struck["cut complete_upload"] > 0

"""Jobs whose tasks upload through the store, where a tenth of requests take effect late.

The first sending of an upload then often comes after the second: another version of the same bytes,
which nobody but the library itself has made.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from itertools import count

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.tasks.output import StoreWork
from asynccommit.options.job import Mode, Options
from asynccommit.runtime.concurrency import for_each
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.inprocess import InProcess
from asynccommit.testing.models.fault_rules import FaultInjector
from asynccommit.testing.models.gcs.model import BucketOptions, GcsService
from asynccommit.testing.models.gcs.refusals import GCS
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.crashes import clock
from tests.support.selection import amount
from tests.support.storms import BUCKET, GCS_ROOT, LATE, Size, host, objects_of

SIZE = Size(tasks=4, files=50)
SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=2, full=6)
BUCKETS = (BucketOptions(), BucketOptions(hns=True), BucketOptions(moves=False))
OLD = {"day=1/old": b"old", "day=7/old": b"old"}
KEPT = {
    Mode.APPEND: OLD,
    Mode.REPLACE_PARTITIONS: {},
    Mode.REPLACE_TABLE: {},
}


Write = Callable[[Wrapped, Layout, str, Mapping[str, bytes]], Awaitable[None]]


async def ours(store: Wrapped, layout: Layout, base: str, files: Mapping[str, bytes]) -> None:
    """Write the files of a task as its user does; one name is written twice."""
    work = StoreWork(store, layout.dest, base)
    await work.put(next(iter(files)), b"another")
    await for_each(files, lambda name: work.put(name, files[name]), workers=16)


async def others(store: Wrapped, layout: Layout, base: str, files: Mapping[str, bytes]) -> None:
    """Write the files of a task as a client does that uploads without a condition."""
    await for_each(files, lambda name: store.put(f"{base}/{name}", files[name]), workers=16)


async def storm(seed: int, mode: Mode, write: Write) -> None:
    """Run one job, and look at what it leaves."""
    ids = count()
    service = GcsService(now=clock, new_id=lambda: f"id-{next(ids)}")
    service.create_bucket(BUCKET, BUCKETS[seed % len(BUCKETS)])
    for name, data in OLD.items():
        service.insert(BUCKET, f"table/{name}", data)
    weather = FaultInjector(random.Random(seed), clock, LATE, GCS)
    transport = InProcess(GcsApp(service), weather, patience=0.5)
    options = {"endpoint_url": "http://gcs.test", "token": "anon"}
    made = GcsStore(parse_url(GCS_ROOT + "/"), options, environ={}, transport=transport)
    store = wrap(made, StoreSettings(random.Random(seed), attempts=20))
    layout = Layout(parse_url(f"{GCS_ROOT}/table"), f"job_202601010000_{seed:04}")
    job, commits = ManifestCommitter(store, layout, Options(), host(seed)), []
    try:
        await job.setup_job()
        for task in range(SIZE.tasks):
            task_id, attempt_id = layout.ids(task, 0)
            base = await job.setup_task(attempt_id)
            files = {name: name.encode() for name in SIZE.names(task)}
            await write(store, layout, base, files)
            commits.append(await job.commit_task(task_id, attempt_id))
        await job.commit_job(commits, strict=True, mode=mode)
    finally:
        await store.aclose()

    files = {name: name.encode() for task in range(SIZE.tasks) for name in SIZE.names(task)}
    found = objects_of(service, "/table")
    there = {name: data for name, data in found.items() if not name.startswith("_")}
    assert there == {**files, **KEPT[mode]}
    assert weather.struck["late insert"] > 0


@pytest.mark.more
@pytest.mark.sample(3)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("write", [ours, others])
@pytest.mark.parametrize("mode", KEPT)
def test_late_uploads_fail_no_job(mode: Mode, write: Write) -> None:
    """Whatever comes late, the job is committed, each file there once and with its last content."""
    for seed in range(SEEDS):
        run_virtual(storm(seed, mode, write))

"""Two hundred jobs over the model of a bucket in bad weather: all committed, each file once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest

from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.call import GcsCall
from asynccommit.testing.emulators.gcs.inprocess import InProcess
from asynccommit.testing.emulators.gcs.wire import GcsResponse
from asynccommit.testing.models.fault_rules import FaultInjector
from asynccommit.testing.models.gcs.model import BucketOptions, GcsLimits, GcsService
from asynccommit.testing.models.gcs.refusals import GCS
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.crashes import clock
from tests.support.selection import amount
from tests.support.storms import BUCKET, GCS_ROOT, STORM, Size, check, objects_of, run_job, upload

SIZE = Size(tasks=10, files=100)
SEEDS = 200
GROUP = 20
BUCKETS = (
    BucketOptions(soft_delete=604_800.0),
    BucketOptions(hns=True),
    BucketOptions(versioning=True),
    BucketOptions(moves=False),
)
"""Of each kind a quarter of the seeds."""


class Traced(InProcess):
    """A transport that writes down every request, with its time, in a digest."""

    trace = hashlib.sha256()
    requests = 0

    async def exchange(self, call: GcsCall, apply: Callable[[], GcsResponse]) -> GcsResponse:
        """See ``InProcess.exchange``."""
        now = asyncio.get_running_loop().time()
        said = (now, call.method, call.names, sorted(call.query.items()), call.body)
        self.trace.update(repr(said).encode())
        self.requests += 1
        return await super().exchange(call, apply)


async def storm(seed: int, say: Callable[[str], object] = lambda text: None) -> int:
    """Run one job in a storm; returns how many requests were found done though nobody said so."""
    ids = count()
    service = GcsService(now=clock, new_id=lambda: f"id-{next(ids)}", limits=GcsLimits(page=300))
    service.create_bucket(BUCKET, BUCKETS[seed % len(BUCKETS)])
    rng, time = random.Random(seed), asyncio.get_running_loop().time
    weather = FaultInjector(rng, time, STORM, GCS)
    transport = Traced(GcsApp(service), weather, patience=0.5)
    options = {"endpoint_url": "http://gcs.test", "token": "anon"}
    made = GcsStore(parse_url(GCS_ROOT + "/"), options, environ={}, transport=transport)
    store = wrap(made, StoreSettings(random.Random(seed), attempts=20))

    async def write(base: str, files: Mapping[str, bytes]) -> None:
        upload(service, base, files)

    try:
        report = await run_job(store, "/table", SIZE, seed, write, root=GCS_ROOT)
    finally:
        await store.aclose()

    assert report.files == SIZE.tasks * SIZE.files
    check(objects_of(service, "/table"), SIZE, late=True)
    recover = next(policy for policy in store.policies if isinstance(policy, Recover))
    say(f"{transport.requests} {transport.trace.hexdigest()} {time()} {rng.random()}")
    return recover.recovered.total()


@pytest.mark.every(4)
@pytest.mark.sample(1)
@pytest.mark.more
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_every_job_ends_committed(first: int) -> None:
    """Every job ends committed, with every file there once and whole, and nothing else."""
    count = amount("ASYNCCOMMIT_STORMS", quick=5, full=GROUP)
    settled = [run_virtual(storm(seed)) for seed in range(first, first + count)]

    assert min(settled) > 0


SAY = """
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.faults.test_model_gcs import storm
for seed in range(4):
    run_virtual(storm(seed, print))
"""


@pytest.mark.full
def test_a_seed_is_the_same_everywhere() -> None:
    """Processes with other hash seeds send the same requests at the same times."""
    told = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        root = Path(__file__).parents[2]
        told.append(subprocess.check_output([sys.executable, "-c", SAY], env=env, cwd=root))

    assert told[0] == told[1]
    assert len(set(told[0].splitlines())) == 4

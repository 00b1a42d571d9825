"""Setting up jobs and task attempts: of several that try at once, one succeeds."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from asynccommit.api import JobRef
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.registry import Committer, open_named
from asynccommit.errors import CommitError, ExistsError
from asynccommit.options.job import Options
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.inprocess import InProcess
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import Climate, FaultInjector
from asynccommit.testing.models.gcs.model import BucketOptions, GcsService
from asynccommit.testing.models.gcs.refusals import GCS
from asynccommit.testing.models.s3.uploads import UploadRules
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash_real.processes import environment
from tests.faults.test_uploads import Sky
from tests.support.crashes import clock as world_clock
from tests.support.jobs import HOST
from tests.support.storms import BUCKET, FILESYSTEM, GCS_ROOT, ROOT
from tests.support.uploads import DEST, SMALLEST

ROUNDS = 30
RACER = """
import asyncio, sys
from asynccommit.api import JobRef
from asynccommit.errors import CommitError, ExistsError

async def act(what, committer, number):
    async with JobRef(sys.argv[1], f"job-{number}", committer=committer).open() as made:
        if what == "job":
            await made.setup_job()
        else:
            await made.setup_task(made.layout.ids(0)[1])

for line in sys.stdin:
    try:
        asyncio.run(act(*line.split()))
        said = "done"
    except CommitError as error:
        said = "exists" if isinstance(error.failures[0], ExistsError) else repr(error)
    print(said, flush=True)
"""


class Racer:
    """A process that sets up what it is told."""

    def __init__(self, dest: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", RACER, str(dest)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )

    def tell(self, line: str) -> None:
        """Have it begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def said(self) -> str:
        """Return what came of it."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def racers(tmp_path: Path) -> Iterator[list[Racer]]:
    """Two processes that have imported all they need."""
    with ExitStack() as stack:
        both = [Racer(tmp_path), Racer(tmp_path)]
        for racer in both:
            stack.enter_context(racer.process)
            stack.callback(racer.process.kill)
        yield both


@pytest.mark.sample(1)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("committer", ["manifest", "file_v1"])
@pytest.mark.parametrize("what", ["job", "task"])
def test_two_processes_at_once(
    tmp_path: Path, racers: list[Racer], what: str, committer: str
) -> None:
    """Of two processes that set up one job, or one task attempt, at once, one is told so."""

    async def set_up(number: int) -> None:
        async with JobRef(tmp_path, f"job-{number}", committer=committer).open() as made:
            await made.setup_job()

    found = []
    for number in range(ROUNDS):
        if what == "task":
            asyncio.run(set_up(number))
        for racer in racers:
            racer.tell(f"{what} {committer} {number}")
        found.append(sorted(racer.said() for racer in racers))

    assert found == [["done", "exists"]] * ROUNDS


# --- in bad weather ------------------------------------------------------------------------------

SEEDS = 25
LOSSY = Climate.from_json(
    {
        "faults": [
            {"kind": "cut", "op": "*", "probability": 0.25},
            {"kind": "after", "op": "*", "probability": 0.1},
        ]
    }
)
"""A third of the answers lost, or wrong: the request was done."""


def adls_stores(seed: int) -> list[Wrapped]:
    """Return two ways to one account."""
    ids, clock = count(), asyncio.get_running_loop().time
    account = AdlsAccount("sim", now=clock, new_id=lambda: f"id-{next(ids)}")
    account.create_filesystem(FILESYSTEM)
    stores: list[Wrapped] = []
    for number in (2 * seed, 2 * seed + 1):
        weather = FaultInjector(random.Random(number), clock, LOSSY)
        options = {"account": account, "weather": weather, "patience": 0.5}
        made = SimStore(parse_url(ROOT + "/"), options)
        stores.append(wrap(made, StoreSettings(random.Random(number), attempts=30)))
    return stores


def gcs_stores(seed: int) -> list[Wrapped]:
    """Return two ways to one bucket, which is flat or has folders."""
    ids, clock = count(), asyncio.get_running_loop().time
    service = GcsService(now=world_clock, new_id=lambda: f"id-{next(ids)}")
    service.create_bucket(BUCKET, BucketOptions(hns=bool(seed % 2)))
    stores: list[Wrapped] = []
    for number in (2 * seed, 2 * seed + 1):
        weather = FaultInjector(random.Random(number), clock, LOSSY, GCS)
        transport = InProcess(GcsApp(service), weather, patience=0.5)
        options = {"endpoint_url": "http://gcs.test", "token": "anon"}
        made = GcsStore(parse_url(GCS_ROOT + "/"), options, environ={}, transport=transport)
        stores.append(wrap(made, StoreSettings(random.Random(number), attempts=30)))
    return stores


def s3_stores(seed: int) -> list[Wrapped]:
    """Return two ways to one bucket of S3."""
    sky = Sky(seed, UploadRules(smallest_part=SMALLEST))
    return [sky.store, sky.store]


def committers(kind: str, seed: int) -> list[Committer]:
    """Return two drivers of one job."""
    stores = {"adls": adls_stores, "gcs": gcs_stores, "s3": s3_stores}[kind](seed)
    root = {"adls": ROOT, "gcs": GCS_ROOT, "s3": f"s3://{DEST.authority}"}[kind]
    name = "magic" if kind == "s3" else "manifest"
    return [open_named(name, opening(root, store, number)) for number, store in enumerate(stores)]


def opening(root: str, store: Wrapped, number: int) -> JobContext:
    """Return what one of the drivers works with."""
    ids = count()
    host = replace(HOST, new_id=lambda: f"driver-{number}-{next(ids)}")
    dest = parse_url(f"{root}/out/t")
    return JobContext(dest, "job-1", 0, store, Options(), host, lambda place: store)


async def is_told(act: Awaitable[object]) -> bool:
    """Whether a setup is told that it has done it."""
    try:
        await act
    except CommitError as error:
        if not isinstance(error.failures[0], ExistsError):
            raise
        return False
    return True


async def race(kind: str, seed: int) -> list[int]:
    """Set up a job and a task attempt in two drivers at once; return how many said so."""
    jobs = committers(kind, seed)
    attempt_id = jobs[0].layout.ids(0)[1]
    told = [sum(await asyncio.gather(*(is_told(job.setup_job()) for job in jobs)))]
    told += [sum(await asyncio.gather(*(is_told(job.setup_task(attempt_id)) for job in jobs)))]
    for job in jobs:
        await job.store.aclose()
    return told


@pytest.mark.parametrize("kind", ["adls", "gcs", "s3"])
def test_lost_answers(kind: str) -> None:
    """Who made it knows its own request again, though its answer was lost; the other is told so."""
    told = [run_virtual(race(kind, seed)) for seed in range(SEEDS)]

    assert told == [[1, 1]] * SEEDS

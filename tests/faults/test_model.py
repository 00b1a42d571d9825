"""Two hundred jobs over the model of the store in bad weather: all committed, each file once."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from itertools import count

import pytest

from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import FaultInjector
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.selection import amount
from tests.support.storms import FILESYSTEM, ROOT, STORM, Size, check, files_of, fill, run_job

SIZE = Size(tasks=10, files=100)
SEEDS = 200
GROUP = 20


async def storm(seed: int) -> int:
    """Run one job in a storm; returns how many requests were found done though nobody said so."""
    clock = asyncio.get_running_loop().time
    ids = count()
    account = AdlsAccount("sim", now=clock, new_id=lambda: f"id-{next(ids)}")
    account.create_filesystem(FILESYSTEM)
    weather = FaultInjector(random.Random(seed), clock, STORM)
    options = {"account": account, "weather": weather, "patience": 0.5}
    store = wrap(
        SimStore(parse_url(ROOT + "/"), options),
        StoreSettings(random.Random(seed), attempts=20),
    )
    try:
        report = await run_job(store, "/table", SIZE, seed, partial(fill, store))
    finally:
        await store.aclose()

    assert report.files == SIZE.tasks * SIZE.files
    check(files_of(account, "/table"), SIZE)
    recover = next(policy for policy in store.policies if isinstance(policy, Recover))
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


async def flat() -> None:
    """Commit a job on an account whose directories are names of files, and nothing else."""
    ids = count()
    clock = asyncio.get_running_loop().time
    account = AdlsAccount("flat", now=clock, new_id=lambda: f"id-{next(ids)}", hns=False)
    account.create_filesystem(FILESYSTEM)
    store = wrap(
        SimStore(parse_url(ROOT + "/"), {"account": account}), StoreSettings(random.Random(0))
    )
    report = await run_job(store, "/table", SIZE, 0, partial(fill, store))
    await store.aclose()

    assert report.files == SIZE.tasks * SIZE.files
    check(files_of(account, "/table"), SIZE)


def test_a_flat_account() -> None:
    """Where a rename gives a file another etag, kind and size are what is validated."""
    run_virtual(flat())

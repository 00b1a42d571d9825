"""Jobs of ten thousand files over HTTP to a bucket, in bad weather: all committed, each once."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping

import pytest

from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.gcs.model import BucketOptions
from tests.support.storms import BUCKET, GCS_ROOT, STORM, Size, check, objects_of, run_job, upload

SIZE = Size(tasks=20, files=500)
SEEDS = range(int(os.environ.get("ASYNCCOMMIT_SEEDS", "2")))


@pytest.mark.full
@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_job_ends_committed(seed: int) -> None:
    """The job ends committed, each file there once and whole, and nothing else."""
    buckets = {BUCKET: BucketOptions(hns=seed % 2 == 1)}
    async with GcsEmulator(climate=STORM, seed=seed, buckets=buckets) as emulator:
        options = {"endpoint_url": emulator.endpoint, "token": "anon"}
        settings = StoreSettings(random.Random(seed), attempts=20, options=options)
        store = open_store(parse_url(GCS_ROOT + "/"), settings)

        async def write(base: str, files: Mapping[str, bytes]) -> None:
            upload(emulator.service, base, files)

        try:
            report = await run_job(store, "/table", SIZE, seed, write, root=GCS_ROOT)
        finally:
            await store.aclose()
        struck = emulator.weather.struck

        assert report.files == SIZE.tasks * SIZE.files
        check(objects_of(emulator.service, "/table"), SIZE, late=True)
        recover = next(policy for policy in store.policies if isinstance(policy, Recover))
        assert recover.recovered["rename"] > 0
        assert struck["cut move"] > 0

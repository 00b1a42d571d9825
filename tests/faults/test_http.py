"""Jobs of ten thousand files over HTTP, in bad weather: all committed, each file once."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping

import pytest

from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.account import AdlsAccount
from tests.support.storms import (
    FILESYSTEM,
    ROOT,
    STORM,
    Size,
    check,
    etags_of,
    files_of,
    place,
    run_job,
)

SIZE = Size(tasks=20, files=500)
SEEDS = range(int(os.environ.get("ASYNCCOMMIT_SEEDS", "2")))


@pytest.mark.sample(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_job_ends_committed(seed: int) -> None:
    """The job ends committed, each file with the etag that it had before, and nothing else."""
    written: dict[str, str] = {}
    async with AdlsEmulator(climate=STORM, seed=seed) as emulator:
        emulator.model.create_filesystem(FILESYSTEM)
        store = open_store(
            parse_url(ROOT + "/"),
            StoreSettings(
                random.Random(seed),
                attempts=20,
                options={"connection_string": emulator.connection_string},
            ),
        )

        async def write(base: str, files: Mapping[str, bytes]) -> None:
            place(emulator.model, base, files)
            written.update(names_of(emulator.model, base))

        try:
            report = await run_job(store, "/table", SIZE, seed, write)
        finally:
            await store.aclose()
        struck = emulator.weather.struck

        assert report.files == SIZE.tasks * SIZE.files
        check(files_of(emulator.model, "/table"), SIZE)
        there = names_of(emulator.model, "/table")
        assert {name: there[name] for name in written} == written
        recover = next(policy for policy in store.policies if isinstance(policy, Recover))
        assert recover.recovered["rename"] > 0
        assert struck["cut rename"] > 0


def names_of(account: AdlsAccount, base: str) -> dict[str, str]:
    """Return the etag of each file below a directory, by its path relative to that."""
    start = base.strip("/") + "/"
    return {path.removeprefix(start): etag for path, etag in etags_of(account, base).items()}

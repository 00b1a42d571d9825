"""Tables of the Data Source on every kind of store: emulators, a moto, a local directory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asynccommit.options.job import Options
from asynccommit.runtime.host import this_host
from asynccommit.runtime.loop_thread import submit
from asynccommit.spark.datasource import jobs
from asynccommit.spark.datasource.jobs import SourceJob
from asynccommit.spark.datasource.tasks import RowSchema
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.tree import is_there, walk
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread, running_gcs_emulator
from tests.support.s3_servers import moto_url, new_bucket, options

__all__ = ["moto_url"]

BATCH = pa.RecordBatch.from_pydict({"id": list(range(100)), "p": [i % 4 for i in range(100)]})
ROWS = RowSchema(BATCH.schema, "{}", "4.3.0")
_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """A table on some store."""

    url: str
    storage: dict[str, Any]

    def job(self) -> SourceJob:
        """Return a job that is set up."""
        job_id = f"job-{next(_numbers)}"
        return submit(jobs.set_up(SourceJob(self.url, job_id, Options(), self.storage)))

    def files(self) -> dict[str, bytes]:
        """Return every file below the table, whatever it is."""
        return submit(self._files())

    async def _files(self) -> dict[str, bytes]:
        address = parse_url(self.url)
        store = open_store(address, StoreSettings(rng=this_host().rng, options=self.storage))
        try:
            if not await is_there(store, address.path):
                return {}
            paths = [info.path async for info in walk(store, address.path) if not info.is_dir]
            return {path[len(address.path) + 1 :]: await store.get(path, 1 << 20) for path in paths}
        finally:
            await store.aclose()

    def uploads(self) -> int:
        """Return how many uploads are open."""
        return submit(self._uploads())

    async def _uploads(self) -> int:
        address = parse_url(self.url)
        store = open_store(address, StoreSettings(rng=this_host().rng, options=self.storage))
        try:
            if store.traits.multipart is None:
                return 0
            return len((await store.list_uploads(address.path)).entries)
        finally:
            await store.aclose()


@pytest.fixture(scope="session")
def adls() -> Iterator[EmulatorThread]:
    """Run an emulator of Data Lake Storage."""
    with running_emulator() as running:
        running.do(lambda emulator: emulator.model.create_filesystem("data"))
        yield running


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsEmulatorThread]:
    """Run an emulator of Cloud Storage with one flat bucket."""
    with running_gcs_emulator(buckets=["data"]) as running:
        yield running


@pytest.fixture(params=["local", "adls", "gcs", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Yield a table that is not there yet, on each kind of store."""
    name = f"t{next(_numbers)}"
    if request.param == "local":
        return Place(str(tmp_path / "a b%" / name), {})
    if request.param == "adls":
        running = request.getfixturevalue("adls")
        return Place(
            f"abfs://data@{running.account}.dfs.core.windows.net/{name}",
            {"connection_string": running.connection_string},
        )
    if request.param == "gcs":
        running = request.getfixturevalue("gcs")
        return Place(f"gs://data/{name}", {"endpoint_url": running.endpoint, "token": "anon"})
    url = request.getfixturevalue("moto_url")
    return Place(f"s3a://{new_bucket(url)}/{name}", options(url))


def ids(files: dict[str, bytes]) -> list[int]:
    """Return the rows of the table's own files."""
    data = [content for name, content in files.items() if name.endswith(".parquet")]
    return sorted(i for one in data for i in pq.read_table(pa.BufferReader(one))["id"].to_pylist())

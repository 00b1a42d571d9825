"""Whole jobs on buckets of both kinds: committed by this package, read by other clients."""

from __future__ import annotations

import asyncio
import importlib
import io
from collections.abc import Mapping
from typing import Any

import pytest

from asynccommit import api
from asynccommit.api import Job, open_job
from asynccommit.options.job import Mode
from asynccommit.results import JobReport
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import asked, names, strike

pytestmark = [pytest.mark.usefixtures("in_a_hurry"), pytest.mark.rotate("place")]

TASKS = 4
DAYS = ("day=1/hour=a b%", "day=2/hour=é 日本")


def options(gcs: GcsEmulatorThread) -> dict[str, str]:
    """Return what a store needs to find the emulator."""
    return {"endpoint_url": gcs.endpoint, "token": "anon"}


def part(task: int) -> bytes:
    """Return a file of Parquet with the number of its task in every row."""
    arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    sink = io.BytesIO()
    parquet.write_table(arrow.table({"task": [task] * 10}), sink)
    return sink.getvalue()


async def commit(url: str, storage: Mapping[str, Any], **more: Any) -> JobReport:
    """Run a job whose tasks write a file a day; some attempts fail, or are thrown away."""
    async with open_job(url, storage_options=storage, **more) as job:
        await asyncio.gather(*[run_task(job, number) for number in range(TASKS)])
        await run_elsewhere(job, url, storage)
    assert job.report is not None
    return job.report


async def run_task(job: Job, number: int) -> None:
    """Run a task whose first attempt fails."""
    with pytest.raises(ValueError, match="failed"):
        async with job.task(number) as task:
            await task.put(f"{DAYS[0]}/failed-{number}.parquet", b"half of a file")
            raise ValueError("failed")
    async with job.task(number, attempt=1) as task:
        for day in DAYS:
            await task.put(f"{day}/part-{number}.parquet", part(number))


async def run_elsewhere(job: Job, url: str, storage: Mapping[str, Any]) -> None:
    """Run a task as in another process; an attempt is left where it is, as by one that died."""
    async with api.job(url, job.job_id, storage_options=storage).task(TASKS) as task:
        await task.put("day=3/part-4.parquet", part(TASKS))
    assert task.commit is not None
    job.accept(task.commit)
    _, attempt = job.committer.layout.ids(TASKS, 1)
    directory = await job.committer.setup_task(attempt)
    await job.committer.store.put(f"{directory}/day=3/left.parquet", b"half of a file")


EXPECTED = sorted(
    [
        *(f"{day}/part-{number}.parquet" for day in DAYS for number in range(TASKS)),
        "day=3/part-4.parquet",
    ]
)


def test_job(gcs: GcsEmulatorThread, gcs_files: Any, root: str) -> None:
    """Others find the files of the tasks that were accepted, whole, and nothing else."""
    table = f"{root}/a table/t"
    report = asyncio.run(commit(f"gs://{table}", options(gcs)))
    found = sorted(name.removeprefix(f"{table}/") for name in gcs_files.find(table))
    dataset = importlib.import_module("pyarrow.dataset")
    read = dataset.dataset(
        [f"{table}/{name}" for name in EXPECTED], filesystem=gcs_files, format="parquet"
    ).to_table()

    assert found == sorted([*EXPECTED, "_SUCCESS"])
    assert not gcs_files.exists(f"{table}/_temporary")
    assert report.files == len(EXPECTED)
    assert sorted(read["task"].to_pylist()) == sorted(
        [*(number for number in range(TASKS) for _ in range(20)), *[TASKS] * 10]
    )


def test_job_is_read_as_a_table(gcs: GcsEmulatorThread, gcs_files: Any, root: str) -> None:
    """The partitions are in the names of directories, as readers have them."""
    table = f"{root}/t"
    asyncio.run(commit(f"gs://{table}", options(gcs)))
    dataset = importlib.import_module("pyarrow.dataset")
    hive = dataset.partitioning(flavor="hive")
    read = dataset.dataset(
        table, filesystem=gcs_files, format="parquet", partitioning=hive
    ).to_table()

    assert sorted(set(read["day"].to_pylist())) == [1, 2, 3]
    assert read.num_rows == len(EXPECTED) * 10


def test_job_after_job(gcs: GcsEmulatorThread, gcs_files: Any, root: str) -> None:
    """A second job adds or replaces, by its mode; readers see what they should."""
    table = f"{root}/t"

    async def main() -> None:
        await commit(f"gs://{table}", options(gcs))
        for mode, name in (("append", "new"), ("replace_partitions", "alone")):
            another = open_job(f"gs://{table}", storage_options=options(gcs), mode=Mode(mode))
            async with another as job, job.task(0) as task:
                await task.put(f"{DAYS[0]}/{name}.parquet", part(100))

    asyncio.run(main())
    found = sorted(name.removeprefix(f"{table}/") for name in gcs_files.find(table))

    assert found == sorted(
        [
            f"{DAYS[0]}/alone.parquet",
            *(name for name in EXPECTED if not name.startswith(DAYS[0])),
            "_SUCCESS",
        ]
    )


def test_job_that_fails(gcs: GcsEmulatorThread, gcs_files: Any, root: str) -> None:
    """Of a job that is aborted nothing is there, for anyone."""
    table = f"{root}/t"

    async def main() -> None:
        async with open_job(f"gs://{table}", storage_options=options(gcs)) as job:
            async with job.task(0) as task:
                await task.put("day=1/part", part(0))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(main())

    assert [name for name in gcs_files.find(table) if not name.endswith("/")] == []


@pytest.mark.rotate("root")
@pytest.mark.parametrize("root", ["data", "tree"])
@pytest.mark.parametrize("kind", ["before", "after", "cut", "cut_before"])
def test_job_in_bad_weather(gcs: GcsEmulatorThread, client: Any, root: str, kind: str) -> None:
    """Answers that are lost and requests that are refused change nothing in what is there."""
    strike(gcs, kind, "move", every=3, times=10)
    strike(gcs, kind, "insert", every=5, times=5)
    strike(gcs, kind, "batch")
    strike(gcs, kind, "delete", every=4, times=5)
    strike(gcs, kind, "list", times=2)
    asyncio.run(commit(f"gs://{root}/t", options(gcs)))
    found = [name.removeprefix("t/") for name in names(client.bucket(root)) if name[-1] != "/"]

    assert found == sorted([*EXPECTED, "_SUCCESS"])
    assert asked(gcs)["move"] > len(EXPECTED)


def test_objects_that_were_moved(gcs: GcsEmulatorThread, client: Any) -> None:
    """What was committed is what the tasks wrote, by the checksums that the SDK checks."""
    asyncio.run(commit("gs://data/t", options(gcs)))
    bucket = client.bucket("data")

    for number in range(TASKS):
        blob = bucket.get_blob(f"t/{DAYS[1]}/part-{number}.parquet")
        assert blob.download_as_bytes(checksum="crc32c") == part(number)
        assert blob.metageneration == 1

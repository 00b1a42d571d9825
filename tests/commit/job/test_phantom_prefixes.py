"""Prefixes that a server shows though nothing is below them are no jobs, and aborts see what is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

from asynccommit.api import JobRef, job_statuses, open_job
from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.job.cleanup import first_below, is_phantom
from asynccommit.inspect.status import look_under
from asynccommit.stores import registry
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support import lingering
from tests.support.jobs import committer, write
from tests.support.uploads import SMALLEST, keys, new_bucket, store_of

URL = "s3://data/out/t"
STAGING = "_temporary/staging/alice/ID/staging-uploads/_temporary/0"
DIRECTORIES = {
    "magic": "__magic_job-ID/job-ID/00/tasks",
    "directory": STAGING,
    "manifest": "_temporary/ID/00/manifests",
    "classic": "_temporary/0/_temporary/attempt_1_0001_m_000000_0",
}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Bucket]:
    """A bucket behind ``s3:`` URLs, on a server that shows empty prefixes."""
    table = {**registry.STORES, "s3": "tests.support.lingering.Lingering"}
    monkeypatch.setattr(registry, "STORES", MappingProxyType(table))
    lingering.SHOWN.clear()
    yield new_bucket()
    lingering.SHOWN.clear()


def given(bucket: S3Bucket, tmp_path: Path) -> dict[str, Any]:
    """Return what a job on the bucket is opened with."""
    conf = {"fs.s3a.multipart.size": str(SMALLEST), "fs.s3a.buffer.dir": str(tmp_path)}
    return {"storage_options": {"bucket": bucket}, "options": conf}


def linger(name: str, levels: int = 9) -> None:
    """Let the server show a directory of the table, and those above it, from now on."""
    names = name.split("/")
    lingering.SHOWN.update(
        "/out/t/" + "/".join(names[:number]) for number in range(1, min(levels, len(names)) + 1)
    )


@pytest.mark.sample(10)
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("kind", sorted(DIRECTORIES))
async def test_empty_prefixes_are_no_jobs(
    bucket: S3Bucket, tmp_path: Path, kind: str, levels: int
) -> None:
    """However deep they go, nothing runs there, and another job can be set up and committed."""
    linger(DIRECTORIES[kind].replace("ID", "gone"), levels)
    storage = {"bucket": bucket}
    await store_of(bucket).put("/out/t/part-0", b"x")
    found = await look_under(parse_url(URL), storage)

    assert (found.jobs, found.classic) == ([], [])
    assert await job_statuses(URL, storage_options=storage) == []
    async with open_job(URL, **given(bucket, tmp_path)) as job, job.task(0) as task:
        await task.put("part-1", b"y")
    assert job.report is not None
    assert job.report.files == 1


@pytest.mark.parametrize("kind", ["magic", "directory"])
async def test_a_job_that_was_just_set_up_is_one(
    bucket: S3Bucket, tmp_path: Path, kind: str
) -> None:
    """The object that stands for its directory tells it from an empty prefix."""
    how = given(bucket, tmp_path)
    async with JobRef(URL, "new", committer=kind, **how).open() as job:
        await job.setup_job()
    linger(DIRECTORIES[kind].replace("ID", "gone"))
    storage = {"bucket": bucket}
    (status,) = await job_statuses(URL, storage_options=storage)
    (view,) = (await look_under(parse_url(URL), storage)).jobs

    assert (status.job_id, view.layout.job_id) == ("new", "new")


@pytest.mark.parametrize("kind", ["magic", "directory"])
async def test_an_aborted_job_is_not_listed(bucket: S3Bucket, tmp_path: Path, kind: str) -> None:
    """An abort says that all is deleted, and the prefixes that are still shown are no job."""
    how = given(bucket, tmp_path)
    async with JobRef(URL, "old", committer=kind, **how).open() as job:
        await job.setup_job()
        linger(DIRECTORIES[kind].replace("ID", "old"))
        report = await job.abort_job()

    assert (report.outcome, report.warnings) == ("job directory deleted", ())
    assert keys(bucket) == []
    assert await job_statuses(URL, storage_options={"bucket": bucket}) == []


class Straggler:
    """Writes below the job's directory just after an abort has deleted it."""

    def __init__(self, last: str, write: Any) -> None:
        self.last = last
        self.write = write

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def seen(op: Op) -> Any:
            answer = await call(op)
            if op.name == self.last:
                await self.write()
            return answer

        return seen


async def test_an_abort_names_what_came_to_a_directory(tmp_path: Path) -> None:
    """A task that writes while its job is aborted is not passed over in silence."""
    place = tmp_path / "_temporary/job_202601010000_0001/00/tasks/late"

    async def late() -> None:
        await asyncio.to_thread(write, place, {"part-0": "x"})

    job = committer(tmp_path, Straggler("delete_tree", late))
    await job.setup_job()
    report = await job.abort_job()

    assert report.outcome.startswith("deleted, except for")
    (said,) = report.warnings
    assert str(place.parent) in said
    assert "asynccommit abort" in said
    assert (await committer(tmp_path).abort_job()).outcome == "job directory deleted"
    assert list(tmp_path.iterdir()) == []


async def test_an_abort_names_what_came_to_a_prefix(bucket: S3Bucket, tmp_path: Path) -> None:
    """The same of a job in a bucket, whose directory is no more than the keys below it."""
    key = "/out/t/__magic_job-old/job-old/00/tasks/late/__base/part-0.pending"

    async def late() -> None:
        await store_of(bucket).put(key, b"{}")

    async with JobRef(URL, "old", committer="magic", **given(bucket, tmp_path)).open() as job:
        await job.setup_job()
        assert isinstance(job, MagicCommitter)
        job.store = job.pending = cast(Any, Wrapped(job.store, Straggler("delete_many", late)))
        report = await job.abort_job()

    assert report.outcome.startswith("deleted, except for")
    assert key in report.warnings[-1]


async def test_what_is_below_a_path(tmp_path: Path) -> None:
    """One page tells; an empty directory is there where directories are, and a file is itself."""
    disk = Wrapped(LocalStore())
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/c").write_bytes(b"")
    assert await first_below(disk, f"{tmp_path}/a") == [f"{tmp_path}/a/b", f"{tmp_path}/a/c"]
    assert await first_below(disk, f"{tmp_path}/a/b") == [f"{tmp_path}/a/b"]
    assert await first_below(disk, f"{tmp_path}/a/c") == [f"{tmp_path}/a/c"]
    assert await first_below(disk, f"{tmp_path}/x") == []
    assert not await is_phantom(disk, f"{tmp_path}/x")
    await disk.aclose()

"""What dead jobs left, on each kind of store: found, judged and deleted."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from asynccommit import api, open_store
from asynccommit.api import JobRef
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import DeniedError
from asynccommit.inspect.collect import GarbageResult, collect
from asynccommit.inspect.garbage import (
    S3_SKEW,
    Garbage,
    GarbageKind,
    Sweep,
    find_garbage,
    on_clock_of,
)
from asynccommit.inspect.open_uploads import list_open
from asynccommit.options.job import Options
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.multipart import MultipartStore, Upload
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.tree import is_there, list_if_there, remove_file, walk
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket
from asynccommit.testing.pytest_plugin import adls_emulator
from tests.support.faults import Fault, Faults
from tests.support.s3_servers import moto_url, new_bucket, options

__all__ = ["adls_emulator", "moto_url"]

JOB = "11111111-2222-3333-4444-555555555555"
ALIVE = "99999999-2222-3333-4444-555555555555"
DAY = 86_400.0


@dataclass(frozen=True)
class Place:
    """A table on some store."""

    url: str
    storage: dict[str, Any]

    @property
    def dest(self) -> Address:
        """The destination."""
        return parse_url(self.url)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Wrapped]:
        """Open its store."""
        async with open_store(self.url, storage_options=self.storage) as store:
            assert isinstance(store, Wrapped)
            yield store

    async def leave(self, job_id: str, **given: Any) -> Layout:
        """Leave a job of one committed task."""
        given["storage_options"] = self.storage
        async with JobRef(self.url, job_id, **given).open() as job:
            await job.setup_job()
            layout = job.layout
        async with api.job(self.url, job_id, **given).task(0) as task:
            await task.put("day=1/part-0", b"12345")
        return layout

    async def put(self, *paths: str) -> None:
        """Write small files below the table."""
        async with self.open() as store:
            for path in paths:
                full = f"{self.dest.path}/{path}"
                if store.traits.directories:
                    await store.mkdir(full.rpartition("/")[0])
                await store.put(full, b"data")

    async def end(self, layout: Layout) -> None:
        """Let the driver of a job say that it gave up."""
        async with self.open() as store:
            await store.put(layout.job_ended, b"{}")

    async def names(self) -> list[str]:
        """Return the files of the table."""
        async with self.open() as store:
            found = [info async for info in walk(store, self.dest.path)]
        return [info.path[len(self.dest.path) :] for info in found if not info.is_dir]

    async def sweep(self, older_than: float = 0.0, *, later: float = 0.0) -> Sweep:
        """Find the garbage, by a clock that is ahead by ``later``."""
        return await find_garbage(self.dest, older_than, ahead(later), self.storage)

    async def collect(self, sweep: Sweep) -> GarbageResult:
        """Delete the garbage."""
        return await collect(sweep, Options(), self.storage)


def ahead(seconds: float) -> Host:
    """Return this host with a clock that is ahead."""
    host = this_host()
    return replace(host, now=lambda: host.now() + seconds)


def of(sweep: Sweep, kind: GarbageKind) -> list[Garbage]:
    """Return the garbage of a kind."""
    return [one for one in sweep.garbage if one.kind is kind]


def adls(emulator: AdlsEmulator) -> Place:
    """Return a table in a new filesystem."""
    emulator.model.create_filesystem("data")
    url = f"abfs://data@{emulator.account}.dfs.core.windows.net/t"
    host = emulator.endpoint.partition("://")[2]
    storage = {"account_host": host, "account_key": emulator.key, "use_ssl": "false"}
    return Place(url, storage)


def google(emulator: GcsEmulator) -> Place:
    """Return a table in a bucket."""
    return Place("gs://data/t", {"endpoint_url": emulator.endpoint, "token": "anon"})


async def check_dead_and_living(place: Place, **given: Any) -> None:
    """Delete a dead job and directories without an owner; keep what may be alive."""
    await place.put("day=0/part-9", ".spark-staging-a/day=1/x", "_temporary/0/_temporary/a/x")
    dead = await place.leave(JOB, **given)
    await place.end(dead)
    alive = await place.leave(ALIVE, **given)

    today = await place.sweep()
    assert [one.path for one in today.garbage] == [dead.attempt_dir]
    assert today.garbage[0].files >= 2
    assert alive.attempt_dir in [one.path for one in today.spared]
    later = await place.sweep(2 * DAY, later=3 * DAY)
    assert [one.bytes for one in of(later, GarbageKind.SPARK)] == [4]
    assert not (await place.sweep(9 * DAY, later=3 * DAY)).garbage

    done = await place.collect(later)

    assert not done.failures
    assert len(done.done) == len(later.garbage)
    left = await place.names()
    assert "/day=0/part-9" in left
    assert not [name for name in left if "spark-staging" in name or JOB in name]
    async with place.open() as store:
        assert await is_there(store, alive.attempt_dir)
        assert not await list_if_there(store, f"{place.dest.path}/_temporary/0")
    assert not (await place.sweep(0.0)).garbage


async def test_a_directory(tmp_path: Path) -> None:
    """On a local disk."""
    await check_dead_and_living(Place(str(tmp_path / "t"), {}))


async def test_an_account_of_adls(adls_emulator: AdlsEmulator) -> None:
    """On ADLS, where a directory is deleted in one request."""
    await check_dead_and_living(adls(adls_emulator))


@pytest.mark.rotate("hns", keep=1)
@pytest.mark.parametrize("hns", [True, False])
async def test_a_bucket_of_google(hns: bool) -> None:
    """On a bucket with and without folders."""
    async with GcsEmulator(buckets={"data": BucketOptions(hns=hns)}) as emulator:
        await check_dead_and_living(google(emulator))


@pytest.mark.sample(1)
@pytest.mark.parametrize("committer", ["magic", "directory"])
async def test_a_bucket_of_amazon(moto_url: str, tmp_path: Path, committer: str) -> None:
    """On S3 the uploads of a dead job go with it, those of a living one stay."""
    bucket = new_bucket(moto_url)
    place = Place(f"s3://{bucket}/t", options(moto_url))
    conf = {"fs.s3a.buffer.dir": str(tmp_path)}
    await check_dead_and_living(place, committer=committer, options=conf)
    async with place.open() as store:
        open_now = [upload.path async for upload in _uploads(store)]
    assert len(open_now) == 1


async def test_uploads_and_magic_directories_of_no_job(moto_url: str) -> None:
    """They are deleted by age; a directory with copies that were not restored is kept."""
    place = Place(f"s3://{new_bucket(moto_url)}/t", options(moto_url))
    await place.put("x", "__magic/job-1/y", "__magic_job-2/job-2/00/aside/__magic-kept")
    async with place.open() as store:
        await cast(MultipartStore, store).create_upload("/t/big")

    assert not of(await place.sweep(2 * DAY), GarbageKind.UNOWNED)
    sweep = await place.sweep(2 * DAY, later=3 * DAY)

    assert [one.path for one in of(sweep, GarbageKind.UNOWNED)] == ["/t/__magic"]
    assert [one.path for one in of(sweep, GarbageKind.UPLOAD)] == ["/t/big"]
    assert not (await place.collect(sweep)).failures
    assert sorted(await place.names()) == ["/__magic_job-2/job-2/00/aside/__magic-kept", "/x"]
    async with place.open() as store:
        assert not [upload async for upload in _uploads(store)]


async def test_kept_manifests(tmp_path: Path) -> None:
    """Only directories with nothing but manifests are taken, where the option names their place."""
    place = Place(str(tmp_path / "t"), {})
    await place.put("kept/job/task-manifest.json", "kept/other/notes.txt")
    kept = Options(diagnostics_directory=str(tmp_path / "t/kept"))

    sweep = await find_garbage(place.dest, 0.0, this_host(), None, kept)

    assert [(one.kind, one.path) for one in sweep.garbage] == [
        (GarbageKind.MANIFESTS, f"{tmp_path}/t/kept/job")
    ]
    await place.collect(sweep)
    assert await place.names() == ["/kept/other/notes.txt"]


async def test_what_has_changed_since_it_was_found_is_kept(tmp_path: Path) -> None:
    """A directory that somebody writes to again is no garbage."""
    place = Place(str(tmp_path / "t"), {})
    await place.put(".spark-staging-a/x")
    sweep = await place.sweep(2 * DAY, later=3 * DAY)
    os.utime(tmp_path / "t/.spark-staging-a/x", (1, this_host().now() + 60))

    done = await place.collect(sweep)

    assert [why for _, why in done.failures] == ["it has changed meanwhile"]
    assert await place.names() == ["/.spark-staging-a/x"]


async def test_a_job_that_came_to_life_is_kept(tmp_path: Path) -> None:
    """The abort asks once more; the job is among the failures."""
    place = Place(str(tmp_path / "t"), {})
    layout = await place.leave(JOB)
    await place.end(layout)
    sweep = await place.sweep()
    Path(layout.job_ended).unlink()
    Path(layout.job_owner).unlink()

    done = await place.collect(sweep)

    assert "may be running" in done.failures[0][1]
    assert Path(layout.manifests_dir).is_dir()


async def _uploads(store: Wrapped) -> AsyncIterator[Upload]:
    for upload in await list_open(cast(MultipartStore, store), "/t"):
        yield upload


# --- the clock of the store, and that of this machine ------------------------------------------


async def check_clocks(place: Place) -> None:
    """Find nothing young by the store's clock, however wrong this machine's is."""
    await place.put(".spark-staging-a/day=1/x", "_temporary/0/_temporary/a/x", "_temporary/notes")
    job = await place.leave(ALIVE)
    async with place.open() as store:  # it sends no heartbeats, as a job of Hadoop
        await remove_file(store, job.job_owner)

    struck = (await place.sweep(2 * DAY, later=5 * DAY)).garbage
    assert len(struck) == 4, "a clock that is five days ahead has to matter"
    before = await place.names()
    for later in (5 * DAY, -5 * DAY):
        for age in (2 * DAY, 0.0):
            sweep = await find_garbage(place.dest, age, ahead(later), place.storage, exact=True)
            assert not sweep.garbage
            assert {one.path for one in struck} <= {one.path for one in sweep.spared}
    assert await place.names() == before


async def test_the_clock_of_a_disk(tmp_path: Path) -> None:
    """On a local disk or a mounted one, the one that dates the files counts."""
    await check_clocks(Place(str(tmp_path / "t"), {}))


async def test_the_clock_of_an_account(adls_emulator: AdlsEmulator) -> None:
    """Likewise on ADLS."""
    await check_clocks(adls(adls_emulator))


@pytest.mark.rotate("hns", keep=1)
@pytest.mark.parametrize("hns", [True, False])
async def test_the_clock_of_a_bucket_of_google(hns: bool) -> None:
    """Likewise on Google Cloud Storage."""
    async with GcsEmulator(buckets={"data": BucketOptions(hns=hns)}) as emulator:
        await check_clocks(google(emulator))


async def test_the_clock_of_a_bucket_of_amazon(moto_url: str) -> None:
    """Likewise on S3."""
    await check_clocks(Place(f"s3://{new_bucket(moto_url)}/t", options(moto_url)))


async def test_a_clock_that_is_behind_hides_nothing(tmp_path: Path) -> None:
    """What is old by the store's clock is found by a machine that lives last month."""
    place = Place(str(tmp_path / "t"), {})
    await place.put(".spark-staging-a/x")
    for path in (tmp_path / "t/.spark-staging-a/x", tmp_path / "t/.spark-staging-a"):
        os.utime(path, (1, this_host().now() - 9 * DAY))

    sweep = await find_garbage(place.dest, 2 * DAY, ahead(-30 * DAY), exact=True)

    assert len(of(sweep, GarbageKind.SPARK)) == 1
    assert not (await place.sweep(2 * DAY, later=-30 * DAY)).garbage


async def test_a_file_and_a_link_among_the_directories_of_jobs(tmp_path: Path) -> None:
    """A file counts as a directory does; a link is kept, and nothing stops the rest."""
    place = Place(str(tmp_path / "t"), {})
    await place.put("_temporary/notes", "_temporary/new", "_temporary/0/x")
    (tmp_path / "t/_temporary/link").symlink_to(tmp_path)
    os.utime(tmp_path / "t/_temporary/notes", (1, 1))

    sweep = await find_garbage(place.dest, 0.0, this_host(), exact=True)

    assert [(one.kind, one.path) for one in sweep.garbage] == [
        (GarbageKind.FILE, f"{tmp_path}/t/_temporary/notes")
    ]
    assert not (await place.collect(sweep)).failures
    assert sorted(path.name for path in (tmp_path / "t/_temporary").iterdir()) == [
        "0",
        "link",
        "new",
    ]
    assert [one.reason for one in sweep.spared if one.path.endswith("/link")] == [
        "a link or special file, which no job makes: delete it by hand"
    ]


DENIED = Fault("put", DeniedError, "_asynccommit-clock-")


@pytest.mark.parametrize("wrong", [-4e6, 4e6])
async def test_the_clock_that_dates_files(wrong: float, tmp_path: Path) -> None:
    """It is the store's, whatever this machine's is; nothing is left of the file that told."""
    host, store = this_host(), LocalStore()
    other = replace(host, now=lambda: host.now() + wrong)

    found = await on_clock_of(store, parse_url(str(tmp_path)), other)

    (tmp_path / "later").touch()
    assert 0 <= (await store.head(f"{tmp_path}/later")).modified - found.now() + 1.0 < 60.0
    assert [path.name for path in tmp_path.iterdir()] == ["later"]
    await store.aclose()


async def test_a_place_where_nothing_may_be_written(tmp_path: Path) -> None:
    """The message says what the file is for."""
    store = Wrapped(LocalStore(), Faults(replace(DENIED)))
    with pytest.raises(DeniedError, match="tells the store's time: be a user who may write there"):
        await on_clock_of(store, parse_url(str(tmp_path)), this_host())
    await store.aclose()


async def test_a_bucket_where_uploads_may_only_be_aborted() -> None:
    """This machine's clock tells there, as late as S3 lets it be wrong."""
    bucket = S3Bucket("data", now=lambda: 0.0, new_id=lambda: "id")
    store = Wrapped(
        SimS3Store(Address("s3", "data", "/"), {"bucket": bucket}), Faults(replace(DENIED))
    )
    host = replace(this_host(), now=lambda: 5_000.0)

    found = await on_clock_of(store, Address("s3", "data", "/t"), host)

    assert found.now() == 5_000.0 - S3_SKEW
    await store.aclose()

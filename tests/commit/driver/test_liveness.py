"""Whether a job whose commit has not begun is alive, as others see it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from asynccommit.api import open_job
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.context import CommitContext, Environment
from asynccommit.commit.driver.liveness import QUIET, life_of
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import CommitError, OwnedError
from asynccommit.formats.job_owner import decode_job_owner
from asynccommit.options.job import Options
from asynccommit.results import JobState
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.jobs import HOST, JOB, committer, run_task
from tests.support.storms import FILESYSTEM, ROOT

LEASE = 300.0


@dataclass
class Site:
    """An account, a driver on one machine, and somebody on another whose clock is wrong."""

    account: AdlsAccount
    store: Wrapped
    driver: ManifestCommitter
    other: ManifestCommitter

    @classmethod
    def new(cls, skew: float) -> Site:
        """Return an empty one."""
        ids, clock = count(), asyncio.get_running_loop().time
        account = AdlsAccount("sim", now=clock, new_id=lambda: f"id-{next(ids)}")
        account.create_filesystem(FILESYSTEM)
        store = Wrapped(SimStore(parse_url(ROOT + "/"), {"account": account}))
        layout = Layout(parse_url(f"{ROOT}/t"), JOB)

        def host(name: str, skew: float) -> Host:
            return Host(
                now=lambda: clock() + skew,
                new_id=lambda: f"{name}-{next(ids)}",
                rng=random.Random(0),
                name=name,
                clock=clock,
                process=f"a process of {name}",
            )

        def made(host: Host) -> ManifestCommitter:
            return ManifestCommitter(store, layout, Options(), host)

        return cls(account, store, made(host("a", 0.0)), made(host("b", skew)))

    async def state(self) -> JobState:
        """Return what the other says of the job."""
        run = CommitContext.new(
            Environment(self.store, self.other.host, self.store), self.other.layout, Options()
        )
        life = await life_of(run, self.store, exact=True)
        assert life is not None
        return life.state


def in_virtual_time(test: Callable[[Site], Awaitable[None]], skew: float = 0.0) -> None:
    """Run a test whose clock jumps."""

    async def run() -> None:
        site = Site.new(skew)
        await test(site)
        await site.store.aclose()

    run_virtual(run())


@pytest.mark.parametrize("skew", [0.0, 3600.0])
def test_heartbeats_keep_a_job_from_being_aborted(skew: float) -> None:
    """For as long as they are given; the store's time counts, not that of whoever asks."""

    async def test(site: Site) -> None:
        await site.driver.setup_job()
        async with site.driver.living():
            for _ in range(20):
                await asyncio.sleep(LEASE / 2)
                assert await site.state() is JobState.RUNNING
                with pytest.raises(OwnedError, match="it is running: unknown@a"):
                    await site.other.abort_job(careful=True)
            await site.driver.abort_job()

    in_virtual_time(test, skew)


def test_silence_for_longer_than_the_lease() -> None:
    """A driver of another machine that says nothing for that long counts as dead."""

    async def test(site: Site) -> None:
        await site.driver.setup_job()
        await asyncio.sleep(LEASE - 10)
        assert await site.state() is JobState.RUNNING
        await asyncio.sleep(20)
        assert await site.state() is JobState.DEAD
        assert (await site.other.abort_job(careful=True)).outcome != "nothing to clean up"
        assert await life_of(site.other._run(), site.store) is None

    in_virtual_time(test)


@pytest.mark.parametrize("skew", [-5 * QUIET, 0.0, 5 * QUIET])
def test_a_job_without_heartbeats_and_another_clock(skew: float) -> None:
    """It is dead a day after its last change by the store's clock; nobody's else counts."""

    async def test(site: Site) -> None:
        await site.driver.setup_job()
        await site.store.delete(site.driver.layout.job_owner)
        tasks = f"{site.driver.layout.tasks_dir}/attempt"
        await site.store.mkdir(tasks)
        for _ in range(3):
            await asyncio.sleep(QUIET - 60)
            assert await site.state() is JobState.UNKNOWN
            with pytest.raises(OwnedError, match="it may be running"):
                await site.other.abort_job(careful=True)
            await site.store.put(f"{tasks}/part-0", b"data")
        await asyncio.sleep(QUIET + 60)
        assert await site.state() is JobState.DEAD
        await site.other.abort_job(careful=True)
        assert await life_of(site.other._run(), site.store) is None

    in_virtual_time(test, skew)


async def test_a_job_of_hadoop_and_another_clock(tmp_path: Path) -> None:
    """Its directories are shared: the file that tells the time is beside them, for a moment."""
    layout, store = FileLayout(Address("file", "", str(tmp_path)), JOB), Wrapped(LocalStore())
    await store.mkdir(layout.task_attempt_dir(layout.ids(0)[1]))
    fast = replace(this_host(), now=lambda: this_host().now() + 5 * QUIET)
    run = CommitContext.new(Environment(store, fast, store), layout, Options())

    looked, judged = await life_of(run, store), await life_of(run, store, exact=True)

    assert looked is not None
    assert judged is not None
    assert (looked.state, judged.state) == (JobState.DEAD, JobState.UNKNOWN)
    assert [path.name for path in (tmp_path / "_temporary").iterdir()] == ["0"]
    await store.aclose()


def test_heartbeats_end_with_the_job() -> None:
    """A driver whose job was deleted by force writes nothing more, and leaves no task behind."""

    async def test(site: Site) -> None:
        await site.driver.setup_job()
        before = asyncio.all_tasks()
        async with site.driver.living():
            await site.other.abort_job()
            await asyncio.sleep(LEASE)
            assert asyncio.all_tasks() == before
        assert await life_of(site.other._run(), site.store) is None

    in_virtual_time(test)


def test_a_driver_that_gives_the_job_up_says_so() -> None:
    """What it leaves may be aborted at once."""

    async def test(site: Site) -> None:
        await site.driver.setup_job()
        async with site.driver.living():
            assert await site.state() is JobState.RUNNING
        assert await site.state() is JobState.DEAD
        await site.other.abort_job(careful=True)

    in_virtual_time(test)


def test_a_driver_does_not_abort_the_next_run_of_its_job() -> None:
    """Its own job was deleted by force, and another has set up the same id since."""

    async def test(site: Site) -> None:
        await site.driver.setup_job()
        await site.other.abort_job()
        await site.other.setup_job()
        with pytest.raises(OwnedError, match="has set up another with this id"):
            await site.driver.abort_job()
        assert await life_of(site.other._run(), site.store) is not None

    in_virtual_time(test)


# --- on disk -----------------------------------------------------------------------------------


async def test_setup_says_whose_the_job_is(tmp_path: Path) -> None:
    """User, host, process, lease; and the driver's own end of the job takes it away."""
    async with open_job(tmp_path, job_id=JOB) as job:
        path = job.committer.layout.job_owner
        owner = decode_job_owner(Path(path).read_bytes(), path)
        here = this_host()
        assert (owner.owner.host, owner.owner.process) == (here.name, here.process)
        assert owner.lease == LEASE

    assert not Path(path).exists()


async def test_a_commit_that_is_refused_leaves_a_job_that_may_be_aborted(tmp_path: Path) -> None:
    """Its program lives on, and has given the job up."""
    (tmp_path / "part-0").write_text("there before")
    with pytest.raises(CommitError):
        async with open_job(tmp_path, job_id=JOB) as job, job.task(0) as task:
            await task.put("part-0", b"new")

    elsewhere = committer(tmp_path)
    run = CommitContext.new(
        Environment(elsewhere.store, replace(HOST, now=this_host().now), elsewhere.store),
        elsewhere.layout,
        Options(),
    )
    life = await life_of(run, elsewhere.store)
    assert life is not None
    assert life.state is JobState.DEAD
    assert life.why == "its driver gave it up"


async def test_rubbish_is_no_job(tmp_path: Path) -> None:
    """Directories that a late request has made again are deleted without questions."""
    job = committer(tmp_path)
    Path(f"{job.layout.attempt_dir}/commit-epoch-000001").mkdir(parents=True)

    assert (await job.abort_job(careful=True)).kept == ""
    assert not (tmp_path / "_temporary").exists()


async def test_an_owner_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that was spoilt tells nothing: the job may be alive."""
    job = committer(tmp_path)
    await job.setup_job()
    await run_task(job, 0, {"part-0": "x"})
    Path(job.layout.job_owner).write_bytes(b"{")
    other = committer(tmp_path)
    other.host = replace(HOST, now=this_host().now)

    with pytest.raises(OwnedError, match="it has no heartbeats"):
        await other.abort_job(careful=True)
    assert Address("file", "", str(tmp_path)) == other.layout.dest

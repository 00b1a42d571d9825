"""The right to go on with a commit, in virtual time: said to be held, and given up in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from blockbuster import BlockBuster

from asynccommit.commit.context import CommitContext, CommitIdentity
from asynccommit.commit.meter import Progress
from asynccommit.commit.ownership.lease import (
    ACCOUNT_LEASE,
    LEASE,
    MARGIN,
    Lease,
    is_under_way,
    lease_of,
    say_stopped,
)
from asynccommit.commit.ownership.status import read_state
from asynccommit.errors import (
    CommitError,
    DeniedError,
    LeaseLostError,
    NotFoundError,
    OwnedError,
    UnavailableError,
)
from asynccommit.formats.commit_owner import Claim, encode_claim
from asynccommit.formats.commit_record import Owner
from asynccommit.options.job import OnFailure
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.commits import At, Dies, Site, in_virtual_time, paths_of, run_of
from tests.support.faults import Fault, Faults

FILES = {"day=1/a": "1", "day=2/b": "2", "day=3/c": "3"}
LAST = "tasks/attempt"


def now() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time()


class Log:
    """A policy that keeps when each request that changes something was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str, str]] = []

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def logged(op: Op) -> Any:
            if op.writes:
                self.sent.append((now(), op.name, paths_of(op)))
            return await call(op)

        return logged

    def times(self, match: str) -> list[float]:
        """Return when requests for a path were sent."""
        return [at for at, _, paths in self.sent if match in paths]


class Hangs:
    """A policy under which chosen requests are answered late, or after an hour."""

    def __init__(self, name: str, match: str, seconds: float = 3600.0) -> None:
        self.name = name
        self.match = match
        self.seconds = seconds
        self.begun = asyncio.Event()

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def hanging(op: Op) -> Any:
            if op.name == self.name and self.match in paths_of(op):
                self.begun.set()
                await asyncio.sleep(self.seconds)
            return await call(op)

        return hanging


def owner(site: Site, *policies: Any, **options: Any) -> CommitContext:
    """Return the run of an owner that has written its claim now."""
    run = run_of(site.job(*policies, **options))
    return replace(run, identity=CommitIdentity("", "", 1, run.host.new_id()))


async def begun(site: Site, *policies: Any, **options: Any) -> tuple[CommitContext, Lease]:
    """Return the run and the lease of an owner whose record is there."""
    await site.cut(FILES, Dies("rename", LAST))
    lease = Lease(owner(site, *policies, **options))
    return lease.run, lease


# --- said to be held --------------------------------------------------------------------------


@in_virtual_time
async def test_heartbeats(site: Site) -> None:
    """Four in a lease, each on the clock; and the lease goes on and on."""
    log = Log()
    run, lease = await begun(site, log, lease=60.0)
    async with lease:
        assert is_under_way(run.identity.owner_id)
        for _ in range(10):
            await asyncio.sleep(30)
            run.check_lease()
    assert not is_under_way(run.identity.owner_id)

    assert log.times("commit-alive-000001-") == [15.0 * n for n in range(1, 20)]
    await asyncio.sleep(100)
    assert len(log.times("commit-alive")) == 19


@in_virtual_time
async def test_how_long_a_lease_is(site: Site) -> None:
    """Longer where requests go over a network, and what the option says where it says it."""
    run = owner(site)
    assert lease_of(run) == ACCOUNT_LEASE
    assert lease_of(owner(site, lease=7.0)) == 7.0
    assert LEASE < ACCOUNT_LEASE


@in_virtual_time
async def test_a_quiet_end(site: Site) -> None:
    """A lease that is over leaves nothing behind: no check, no task, no request."""
    log = Log()
    run, lease = await begun(site, log, lease=60.0)
    async with lease:
        await asyncio.sleep(1)
    await asyncio.sleep(1000)
    run.check_lease()

    assert log.sent == []
    assert len(asyncio.all_tasks()) == 1


# --- lost -------------------------------------------------------------------------------------


@in_virtual_time
async def test_heartbeats_that_fail(site: Site) -> None:
    """An owner that cannot say that it lives stops a margin before its lease is over."""
    refused = Fault("put", UnavailableError, "commit-alive")
    _, lease = await begun(site, Faults(refused), lease=60.0)
    with pytest.raises(LeaseLostError, match="could not renew its lease in time"):
        async with lease:
            await asyncio.sleep(1000)

    assert 60.0 * MARGIN < now() < 60.0
    assert refused.struck == 3


@in_virtual_time
async def test_heartbeats_that_hang(site: Site) -> None:
    """One that is not answered does not keep the owner from seeing that its time is over."""
    _, lease = await begun(site, Hangs("put", "commit-alive"), lease=60.0)
    with pytest.raises(LeaseLostError):
        async with lease:
            await asyncio.sleep(1000)

    assert 45.0 < now() < 60.0


@in_virtual_time
async def test_a_heartbeat_counts_from_when_it_was_sent(site: Site) -> None:
    """An answer that comes late says nothing of how long the owner may go on."""
    _, lease = await begun(site, Hangs("put", "commit-alive", 40.0), lease=60.0)
    with pytest.raises(LeaseLostError):
        async with lease:
            await asyncio.sleep(1000)

    assert now() < 60.0 + 15.0


@in_virtual_time
async def test_a_heartbeat_that_fails_once(site: Site) -> None:
    """The next one makes up for it."""
    run, lease = await begun(site, Faults(Fault("put", DeniedError, "alive", times=1)), lease=60.0)
    async with lease:
        await asyncio.sleep(500)
        run.check_lease()


@in_virtual_time
async def test_whether_another_has_come_cannot_be_told(site: Site) -> None:
    """A heartbeat counts only if no later claim was seen after it."""
    _, lease = await begun(site, Faults(Fault("head", DeniedError, "commit-owner")), lease=60.0)
    with pytest.raises(LeaseLostError, match="could not renew its lease in time"):
        async with lease:
            await asyncio.sleep(1000)

    assert now() < 60.0


@in_virtual_time
async def test_another_owners_claim(site: Site) -> None:
    """An owner that is taken over by force learns of it at its next heartbeat."""
    run, lease = await begun(site, lease=60.0)
    with pytest.raises(LeaseLostError, match="another process took the commit over"):
        async with lease:
            await asyncio.sleep(20)
            claim = Claim(2, Owner("x", "h", "u"), 60.0, 1)
            await run.store.put(run.layout.owner(2), encode_claim(claim))
            await asyncio.sleep(1000)

    assert 30.0 <= now() < 60.0


@in_virtual_time
async def test_a_machine_that_slept(site: Site) -> None:
    """A clock that counts suspension tells at once, before any request is sent."""
    log = Log()
    run, lease = await begun(site, log, lease=60.0)
    slept = 0.0
    real = run.host.clock
    object.__setattr__(run.host, "clock", lambda: real() + slept)
    with pytest.raises(LeaseLostError) as lost:
        async with lease:
            await asyncio.sleep(20)
            log.sent.clear()
            slept = 300.0
            run.check_lease()

    assert now() == 20.0
    assert log.sent == []
    assert run.layout.attempt_dir in str(lost.value)


@in_virtual_time
async def test_a_machine_that_slept_in_a_request(site: Site) -> None:
    """Work that waits for an answer is ended as soon as the machine is awake."""
    run, lease = await begun(site, Hangs("head", "/nothing"), lease=60.0)
    slept = 0.0
    real = run.host.clock
    object.__setattr__(run.host, "clock", lambda: real() + slept)
    with pytest.raises(LeaseLostError):
        async with lease:
            asyncio.get_running_loop().call_later(1, lambda: None)
            slept = 300.0
            await run.store.head("/nothing")

    assert now() < 10.0


@in_virtual_time
async def test_a_loop_that_stood_still(site: Site) -> None:
    """A loop that was blocked so long that no heartbeat was sent has lost the lease."""
    run, lease = await begun(site, lease=60.0)
    with pytest.raises(LeaseLostError):
        async with lease:
            await asyncio.sleep(1)
            asyncio.get_running_loop().skip(100)  # type: ignore[attr-defined]
            run.check_lease()


@in_virtual_time
async def test_a_lease_that_is_over_before_it_is_used(site: Site) -> None:
    """It counts from before the claim was sent, however long its answer took."""
    lease = Lease(owner(site, lease=60.0))
    await asyncio.sleep(50)  # the claim is written
    with pytest.raises(LeaseLostError):
        async with lease:
            lease.run.check_lease()


@in_virtual_time
async def test_a_cancel_from_outside_stays_one(site: Site) -> None:
    """Who cancels a commit gets a cancellation, not a lost lease."""
    _, lease = await begun(site, lease=60.0)

    async def work() -> None:
        async with lease:
            await asyncio.sleep(1000)

    task = asyncio.create_task(work())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_virtual_time
async def test_a_failure_stays_one(site: Site) -> None:
    """What goes wrong while the lease is held is raised as it is."""
    _, lease = await begun(site, lease=60.0)
    with pytest.raises(NotFoundError):
        async with lease:
            raise NotFoundError("head", "/x")


@in_virtual_time
async def test_a_lost_lease_leaves_no_cancellation_behind(site: Site) -> None:
    """However the work ends when the lease is lost, its task is not left as one to be cancelled."""
    task = asyncio.current_task()
    assert task is not None
    refused = Faults(Fault("put", UnavailableError, "commit-alive"))
    ends: list[Callable[[], Awaitable[None]]] = [_swallow, _fail]
    for end in ends:
        run = owner(site, refused, lease=60.0)
        lease = Lease(run)
        with pytest.raises((LeaseLostError, NotFoundError)):
            async with lease:
                await end()
                lease.check()
        assert task.cancelling() == 0
        await asyncio.sleep(0)


async def _swallow() -> None:
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        return


async def _fail() -> None:
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError as error:
        raise NotFoundError("head", "/x") from error


# --- whole commits ----------------------------------------------------------------------------


@in_virtual_time
async def test_a_commit_that_loses_its_lease(site: Site) -> None:
    """It stops within the margin, writes nothing after, not even that it stopped, and says so."""
    log = Log()
    refused = Faults(Fault("put", UnavailableError, "commit-alive"))
    hangs = Hangs("rename", "day=2")
    job = await site.ready(FILES, log, refused, hangs, lease=100.0, report_directory="/reports")
    since = now()
    with pytest.raises(LeaseLostError) as lost:
        await job.commit_job()
    ended = now()
    await asyncio.sleep(4000)

    assert ended - since <= 100.0
    assert max(at for at, _, _ in log.sent) <= ended
    assert log.times("commit-stopped") == log.times("/reports") == log.times("commit-outcome") == []
    assert lost.value.job_id == job.layout.job_id
    site.alive["1.one"] = True
    await site.job(process="2.two", machine="b").resume_job()
    assert site.files() == FILES


@in_virtual_time
async def test_a_lost_lease_is_not_rolled_back(site: Site) -> None:
    """A policy to roll back does not touch what may be another's."""
    log = Log()
    refused = Faults(Fault("put", UnavailableError, "commit-alive"))
    hangs = Hangs("rename", "tasks/")
    job = await site.ready(FILES, log, refused, hangs, lease=100.0, on_failure=OnFailure.ROLLBACK)
    with pytest.raises(LeaseLostError):
        await job.commit_job()

    assert log.times("commit-outcome") == log.times("commit-owner") == []


@in_virtual_time
async def test_a_commit_that_is_taken_over_by_force(site: Site) -> None:
    """The living owner stops at its next heartbeat, and the new one ends the commit."""
    hangs = Hangs("rename", "day=2")
    job = await site.ready(FILES, hangs, lease=100.0)
    commit = asyncio.create_task(job.commit_job())
    await hangs.begun.wait()
    await site.job(process="2.two", machine="b").resume_job(force=True)
    with pytest.raises(CommitError):
        await commit

    assert site.files() == FILES
    assert site.left() == []


@in_virtual_time
async def test_a_long_commit_keeps_its_lease(site: Site) -> None:
    """Renames that take longer than a lease are no reason to lose it, and nobody may take it."""
    hangs = Hangs("rename", "day=2", 1000.0)
    job = await site.ready(FILES, hangs, lease=60.0)
    commit = asyncio.create_task(job.commit_job())
    await asyncio.sleep(500)
    with pytest.raises(OwnedError):
        await site.job(process="2.two", machine="b").resume_job()
    report = await commit

    assert report.epoch == 1
    assert site.files() == FILES


@in_virtual_time
async def test_a_slow_clean_up_keeps_the_lease(site: Site) -> None:
    """Nor is a clean-up that takes long; and no heartbeat makes the directory anew."""
    hangs = Hangs("delete_tree", "", 1000.0)
    job = await site.ready(FILES, hangs, lease=60.0)
    await job.commit_job()

    assert site.files() == FILES
    assert site.left() == []


# --- last words -------------------------------------------------------------------------------


@in_virtual_time
async def test_a_stop_is_said_on_failure(site: Site) -> None:
    """Who fails says where, why and how far it came, so that nobody waits for its lease."""
    job = await site.ready(FILES, Faults(Fault("rename", DeniedError, "day=3")), workers=1)
    with pytest.raises(CommitError):
        await job.commit_job()
    standing = await read_state(job.store, job.layout)

    assert standing is not None
    assert standing.stop is not None
    assert (standing.stop.stage, standing.stop.renamed) == ("job_stage_rename_files", 2)
    assert "day=3" in standing.stop.error
    assert standing.stop.owner_id == standing.claim.owner.id


@in_virtual_time
async def test_a_stop_is_said_on_cancel(site: Site) -> None:
    """So does who is cancelled, before the cancellation goes on."""
    hangs = Hangs("rename", "day=2")
    job = await site.ready(FILES, hangs)
    commit = asyncio.create_task(job.commit_job())
    await hangs.begun.wait()
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit
    standing = await read_state(job.store, job.layout)

    assert standing is not None
    assert standing.stop is not None
    assert "it was interrupted" in standing.stop.error
    await site.job(process="2.two", machine="b").resume_job()
    assert site.files() == FILES


@in_virtual_time
async def test_last_words_take_no_longer_than_half_a_minute(site: Site) -> None:
    """A store that does not answer does not keep a cancelled commit from ending."""
    hangs, silent = Hangs("rename", "day=2"), Hangs("put", "commit-stopped")
    job = await site.ready(FILES, hangs, silent)
    commit = asyncio.create_task(job.commit_job())
    await hangs.begun.wait()
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit

    assert now() <= 31.0


@in_virtual_time
async def test_a_failed_rollback_says_that_it_stopped(site: Site) -> None:
    """Whoever fails to roll back leaves the commit free as well."""
    await site.cut(FILES, Dies("rename", LAST, skip=2))
    fault = Fault("rename", DeniedError, "undone")
    with pytest.raises(CommitError):
        await site.job(Faults(fault)).rollback_job()
    site.alive["1.one"] = True
    report = await site.job(process="2.two", machine="b").rollback_job()

    assert report.rolled_back
    assert site.files() == {}


@in_virtual_time
async def test_nothing_is_said_before_there_is_an_owner(site: Site) -> None:
    """A job that fails before its commit begins leaves no word of a stop."""
    log = Log()
    job = await site.ready(FILES, log)
    run = run_of(job)
    await say_stopped(run, NotFoundError("head", "/x"))

    assert log.times("commit-stopped") == []


@in_virtual_time
async def test_a_commit_that_is_kept_says_that_all_is_done(site: Site) -> None:
    """Without clean-up the owner says that it has ended, and its commit is over."""
    job = await site.ready(FILES, cleanup_skipped=True)
    await job.commit_job()
    standing = await read_state(job.store, job.layout)

    assert standing is not None
    assert standing.stop is not None
    assert standing.stop.error == ""
    assert (await site.job(process="2.two").commit_job()).already_committed


@in_virtual_time
async def test_an_end_between_two_heartbeats(site: Site) -> None:
    """A heartbeat under way when the work ends is given up."""
    hangs = Hangs("put", "commit-alive", 10.0)
    log = Log()
    job = await site.ready(
        FILES, log, hangs, At("rename", "day=1", lambda: asyncio.sleep(16)), lease=60.0
    )
    await job.commit_job()
    await asyncio.sleep(100)

    assert site.left() == []


@in_virtual_time
async def test_work_that_ends_in_the_moment_the_lease_does(site: Site) -> None:
    """Work that is done when its lease is lost is done; nobody is left cancelled."""
    task = asyncio.current_task()
    assert task is not None
    refused = Faults(Fault("put", UnavailableError, "commit-alive"))
    for early in (0.0, 0.001, 3.75):
        lease = Lease(owner(site, refused, lease=60.0))
        try:
            async with lease:
                await asyncio.sleep(48.75 - early)
        except LeaseLostError:
            assert early == 0.0
        assert task.cancelling() == 0
        await asyncio.sleep(0)


# --- callbacks that block ---------------------------------------------------------------------


async def test_progress_that_blocks(site: Site, blockbuster: BlockBuster) -> None:
    """A callback that blocks for two leases costs the owner nothing, and lets nobody take over."""
    blockbuster.deactivate()  # otherwise it, not the lease, would end a callback on the event loop
    heard: list[str] = []

    def block(progress: Progress) -> None:
        if not heard:
            time.sleep(4.0)
        heard.append(progress.stage)

    job = await site.ready(FILES, Hangs("rename", LAST, 3.5), lease=2.0)
    committing = asyncio.ensure_future(job.commit_job(on_progress=block))
    await asyncio.sleep(3.0)
    with pytest.raises(OwnedError):
        await site.job(process="2.two", machine="driver-1", lease=2.0).resume_job()

    report = await committing
    assert site.files() == FILES
    assert report.warnings == ()
    assert heard[-1] == "committer_commit_job"

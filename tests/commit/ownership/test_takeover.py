"""Whose a commit is: who may go on with it, and that of several exactly one does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.driver.owners import describe
from asynccommit.commit.ownership.status import CommitState, read_state
from asynccommit.commit.ownership.takeover import is_alive, take_over
from asynccommit.errors import (
    CommitError,
    DeniedError,
    LeaseLostError,
    ManifestError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
)
from asynccommit.formats.commit_owner import MAX_EPOCH, Claim, encode_claim
from asynccommit.formats.commit_record import Owner
from tests.support.commits import DEST, OTHER, At, Dies, Site, in_virtual_time, run_of
from tests.support.faults import Fault, Faults

FILES = {"day=1/a": "1", "day=2/b": "2"}
AT_FIRST_FILE = "tasks/"


async def standing_of(job: ManifestCommitter) -> CommitState:
    """Return what is known of a commit that has begun."""
    found = await read_state(job.store, job.layout)
    assert found is not None
    return found


async def dead(site: Site, **options: Any) -> ManifestCommitter:
    """Leave a commit behind whose process died at its first file."""
    return await site.cut(FILES, Dies("rename", AT_FIRST_FILE), **options)


# --- what is known ----------------------------------------------------------------------------


async def test_nothing_is_known_before_the_record(site: Site) -> None:
    """A job whose commit has not begun, or that is not there at all, has no owner."""
    job = await site.ready(FILES)

    assert await read_state(job.store, job.layout) is None
    assert await read_state(job.store, site.job(job_id=OTHER).layout) is None


async def test_what_is_known_of_a_commit(site: Site) -> None:
    """The record tells the first owner, and a claim each later one."""
    await dead(site)
    site.alive["1.one"] = False
    first = await standing_of(site.job())
    await site.cut_resume(Dies("rename", AT_FIRST_FILE), process="2.two")
    second = await standing_of(site.job())

    assert (first.epoch, first.epochs, first.stop, first.decision) == (1, [1], None, None)
    assert (second.epoch, second.epochs) == (2, [2])
    assert second.commit_id == first.commit_id
    assert second.record == first.record
    assert describe(second.claim.owner) == "alice@driver-0, process 2"
    assert second.claim.why == "the process of its owner died"


def test_an_owner_of_an_unknown_process() -> None:
    """An owner is named by what is known of it."""
    assert describe(Owner("x", "h", "u", "")) == "u@h"


@pytest.mark.parametrize(
    "damage, text",
    [
        (lambda data: data[:100], "JSON"),
        (lambda data: data.replace(b".CommitRecord/", b".CommitRecord/9"), "type"),
        (lambda data: data.replace(b"0001", b"0007"), "another job"),
        (lambda data: data.replace(b'"attempt": 0', b'"attempt": 3'), "another job"),
        (lambda data: data.replace(b'"planId": "', b'"planId": "../'), "planId"),
        (lambda data: data.replace(b'"plan":', b'"nalp":'), "plan"),
        (lambda data: b"[]", "object"),
    ],
)
async def test_a_damaged_record(site: Site, damage: Callable[[bytes], bytes], text: str) -> None:
    """A record that is not ours as we wrote it is refused by every verb, and nothing is changed."""
    await dead(site)
    job = site.job()
    data = await job.store.get(job.layout.record, 1 << 20)
    await job.store.put(job.layout.record, damage(data))
    before = site.tree()
    for act in (job.resume_job, job.rollback_job, job.job_status, job.commit_job):
        with pytest.raises(CommitError, match=text) as failed:
            await act()
        assert isinstance(failed.value.failures[0], ManifestError)

    assert (await job.abort_job()).kept
    assert site.tree() == before


async def test_a_claim_of_another_epoch(site: Site) -> None:
    """A claim that says that it is another is refused."""
    await dead(site)
    job = site.job()
    claim = Claim(7, Owner("x", "h", "u"), 60.0, 1)
    await job.store.put(job.layout.owner(2), encode_claim(claim))
    with pytest.raises(ManifestError, match="is the claim of epoch 7"):
        await read_state(job.store, job.layout)


@pytest.mark.parametrize(
    "name", ["commit-owner-2.json", "commit-owner-00000x.json", "commit-owner-"]
)
async def test_names_that_are_no_claims(site: Site, name: str) -> None:
    """Files that only look like claims count for nothing."""
    await dead(site)
    job = site.job()
    await job.store.put(f"{job.layout.attempt_dir}/{name}", b"x")

    assert (await standing_of(job)).epoch == 1


async def test_a_damaged_decision(site: Site) -> None:
    """A decision that cannot be read is refused: nobody guesses how a commit ended."""
    await dead(site)
    job = site.job()
    await job.store.put(job.layout.outcome, b"{}")
    for act in (job.resume_job, job.rollback_job):
        with pytest.raises(CommitError, match="type") as failed:
            await act()
        assert isinstance(failed.value.failures[0], ManifestError)


@pytest.mark.parametrize("words", [b"{}", b"", b"\0\0\0"])
async def test_damaged_last_words(site: Site, words: bytes) -> None:
    """That an owner said that it stopped counts, whatever can be read of it."""
    await dead(site)
    site.alive["1.one"] = True
    job = site.job(process="2.two")
    await job.store.put(job.layout.stopped(1), words)
    await job.resume_job()

    assert site.files() == FILES


# --- what a power cut leaves ------------------------------------------------------------------


@pytest.mark.parametrize("blank", [b"", b"\0" * 300])
@pytest.mark.parametrize("verb", ["commit", "rollback", "abort"])
async def test_a_record_without_content(site: Site, verb: str, blank: bytes) -> None:
    """A record of which the disk has kept the name alone is none: nothing has changed yet."""
    site.place({"/table/day=1/old": "o"})
    before = site.tree()
    await site.cut(FILES, Dies("put", "commit-record", after=True))
    job = site.job()
    await job.store.put(job.layout.record, blank)
    assert await read_state(job.store, job.layout) is None
    await site.job(job_id=OTHER).check_job()
    if verb == "commit":
        await job.commit_job()
        assert site.files() == FILES | {"day=1/old": "o"}
    else:
        await (job.rollback_job() if verb == "rollback" else job.abort_job())
        assert site.tree() == before
    assert site.left() == []


@pytest.mark.parametrize("verb", ["resume", "rollback"])
async def test_a_decision_without_content(site: Site, verb: str) -> None:
    """Nor is a decision of which only the name is there."""
    await site.cut(FILES, Dies("rename", "_SUCCESS"))
    job = site.job()
    await job.store.put(job.layout.outcome, b"")
    await (job.resume_job() if verb == "resume" else job.rollback_job())

    assert site.files() == (FILES if verb == "resume" else {})
    assert site.left() == []


@in_virtual_time
async def test_a_claim_without_content(site: Site) -> None:
    """A claim of which only the name is there is nobody's: its lease counts from when it came."""
    await dead(site, lease=100.0)
    site.alive["1.one"] = False
    job = site.job(process="2.two", machine="b")
    await job.store.put(job.layout.owner(2), b"")
    with pytest.raises(OwnedError):
        await job.resume_job()
    await asyncio.sleep(103)
    report = await job.resume_job()

    assert report.epoch == 3
    assert site.files() == FILES


async def test_too_many_owners(site: Site) -> None:
    """Where the numbers of the claims end a commit has had too many owners."""
    await dead(site)
    job = site.job()
    claim = Claim(MAX_EPOCH, Owner("x", "driver-0", "u", "1.one"), 60.0, 1)
    await job.store.put(job.layout.owner(MAX_EPOCH), encode_claim(claim))
    with pytest.raises(CommitError, match="too many owners"):
        await job.resume_job()


# --- who may go on ----------------------------------------------------------------------------


async def test_an_owner_that_has_stopped(site: Site) -> None:
    """A commit whose owner has said that it stopped is free at once, whoever asks."""
    job = await site.ready(FILES, Faults(Fault("rename", DeniedError, AT_FIRST_FILE)))
    with pytest.raises(CommitError):
        await job.commit_job()
    site.alive["1.one"] = True
    report = await site.job(process="2.two", machine="elsewhere").resume_job()

    assert (report.epoch, report.resumed) == (2, True)
    assert site.files() == FILES


async def test_an_owner_whose_process_died(site: Site) -> None:
    """On the owner's machine it is known that its process died."""
    await dead(site)
    site.alive["1.one"] = False
    await site.job(process="2.two").resume_job()

    assert site.files() == FILES


async def test_an_owner_that_was_this_process(site: Site) -> None:
    """A process that is not at work on its commit may go on with it."""
    await dead(site)
    site.alive["1.one"] = True
    await site.job(process="1.one").resume_job()

    assert site.files() == FILES


@pytest.mark.parametrize(
    "process, machine",
    [("2.two", "driver-0"), ("2.two", "elsewhere"), ("1.one", "elsewhere"), ("", "driver-0")],
)
async def test_an_owner_that_may_live(site: Site, process: str, machine: str) -> None:
    """Nobody takes a commit whose owner lives, or may live; nothing is written."""
    await dead(site)
    site.alive["1.one"] = True
    before = site.tree()
    job = site.job(process=process, machine=machine)
    for act in (job.resume_job, job.rollback_job, job.commit_job):
        with pytest.raises(OwnedError, match="alice@driver-0, process 1 is committing it") as owned:
            await act()
        assert "asynccommit takeover" in str(owned.value)

    assert site.tree() == before


async def test_an_owner_of_an_unknown_process_may_live(site: Site) -> None:
    """Where no process is named only the lease tells."""
    await dead(site, process="")

    assert await is_alive(site.host("2.two"), await standing_of(site.job())) is None


async def test_by_force(site: Site) -> None:
    """Who knows better takes the commit from an owner that seems to live."""
    await dead(site)
    site.alive["1.one"] = True
    await site.job(process="2.two").resume_job(force=True)

    assert site.files() == FILES


@in_virtual_time
async def test_the_lease_of_an_unknown_owner(site: Site) -> None:
    """An owner elsewhere is waited for until its lease is over, and two seconds for rounding."""
    await dead(site, lease=100.0)
    since = asyncio.get_running_loop().time()
    job = site.job(process="2.two", machine="elsewhere")
    with pytest.raises(OwnedError, match=r"0 s ago \(its lease is 100 s\)"):
        await job.resume_job()
    await asyncio.sleep(101.9 - (asyncio.get_running_loop().time() - since))
    with pytest.raises(OwnedError, match=r"102 s ago"):
        await job.resume_job()
    await asyncio.sleep(0.2)
    await job.resume_job()

    assert site.files() == FILES


@in_virtual_time
async def test_an_owner_that_hangs(site: Site) -> None:
    """A process that runs and has sent no heartbeat for its lease is not waited for."""
    await dead(site, lease=100.0)
    site.alive["1.one"] = True
    await asyncio.sleep(103)
    await site.job(process="2.two").resume_job()

    assert site.files() == FILES


@in_virtual_time
async def test_a_clock_that_is_ahead(site: Site) -> None:
    """The store's time counts: a machine whose clock is an hour ahead takes nothing from others."""
    await dead(site, lease=100.0)
    site.skew = 3600.0
    before = site.tree()
    with pytest.raises(OwnedError):
        await site.job(process="2.two", machine="elsewhere").resume_job()
    assert site.tree() == before
    await asyncio.sleep(103)
    await site.job(process="2.two", machine="elsewhere").resume_job()

    assert site.files() == FILES


@in_virtual_time
async def test_a_clock_that_is_behind(site: Site) -> None:
    """A machine whose clock is behind waits longer; it never takes what is not free."""
    await dead(site, lease=100.0)
    site.skew = -3600.0
    await asyncio.sleep(200)
    with pytest.raises(OwnedError):
        await site.job(process="2.two", machine="elsewhere").resume_job()


@in_virtual_time
async def test_the_lease_is_the_owners(site: Site) -> None:
    """It counts what lease the owner has, not what the one has who asks."""
    await dead(site, lease=1000.0)
    await asyncio.sleep(500)
    with pytest.raises(OwnedError):
        await site.job(process="2.two", machine="elsewhere", lease=1.0).resume_job()


@in_virtual_time
async def test_a_sign_of_life_counts(site: Site) -> None:
    """The last heartbeat is the later one of claim and heartbeat."""
    job = await dead(site, lease=100.0)
    await asyncio.sleep(90)
    await site.job().store.put(job.layout.alive(1, 1), b"{}")
    await asyncio.sleep(90)
    with pytest.raises(OwnedError, match="90 s ago"):
        await site.job(process="2.two", machine="elsewhere").resume_job()


# --- taking it over ---------------------------------------------------------------------------


async def test_two_take_over_and_one_wins(site: Site) -> None:
    """Of two who want the same commit one gets it, and the other is told so."""
    await dead(site)
    site.alive["1.one"] = False
    jobs = [site.job(process=f"{n}.x") for n in (2, 3)]
    standings = [await standing_of(job) for job in jobs]
    ends = await asyncio.gather(
        *(take_over(run_of(job), standing) for job, standing in zip(jobs, standings, strict=True)),
        return_exceptions=True,
    )

    assert sorted(isinstance(end, OwnedError) for end in ends) == [False, True]
    lost = next(end for end in ends if isinstance(end, OwnedError))
    assert "another process took it over a moment ago" in str(lost)
    assert (await standing_of(site.job())).epoch == 2


@pytest.mark.parametrize("skip", range(12))
async def test_two_who_resume_at_once(site: Site, skip: int) -> None:
    """Whoever is quicker, the files come once; the other does nothing, or finds all done."""
    await dead(site)
    site.alive |= {"1.one": False, "2.two": True, "3.three": True}
    faults = Faults()
    slow = At("head", "", lambda: asyncio.sleep(0.01), skip=skip)
    ends = await asyncio.gather(
        site.job(faults, slow, process="2.two").resume_job(),
        site.job(process="3.three").resume_job(),
        return_exceptions=True,
    )

    failures = [end for end in ends if isinstance(end, BaseException)]
    assert all(isinstance(end, OwnedError | PreflightError) for end in failures)
    assert len(failures) < 2
    assert site.files() == FILES
    assert site.left() == []


async def test_a_claim_whose_answer_was_lost(site: Site) -> None:
    """Who has written its claim and was not told so finds it there."""
    await dead(site)
    fault = Fault("put", OutcomeUnknownError, "commit-owner", after=True, times=1)
    report = await site.job(Faults(fault)).resume_job()

    assert report.epoch == 2
    assert site.files() == FILES


async def test_a_claim_that_was_not_written(site: Site) -> None:
    """A claim that may have been written and is not there ends the takeover."""
    await dead(site)
    before = site.tree()
    fault = Fault("put", OutcomeUnknownError, "commit-owner", times=1)
    with pytest.raises(CommitError):
        await site.job(Faults(fault)).resume_job()

    assert site.tree() == before


async def test_a_takeover_that_fails_says_so(site: Site) -> None:
    """Who has claimed a commit and cannot go on leaves it free for the next."""
    await dead(site)
    site.alive |= {"1.one": False, "2.two": True}
    fault = Fault("rename", DeniedError, "commit-epoch-000001")
    with pytest.raises(CommitError):
        await site.job(Faults(fault), process="2.two").resume_job()
    report = await site.job(process="3.three").resume_job()

    assert report.epoch == 3
    assert site.files() == FILES


async def test_the_place_of_the_last_owner_is_taken(site: Site) -> None:
    """A new owner renames the place in which the last one worked, and takes the manifests."""
    await dead(site)
    job = site.job()
    await take_over(run_of(job), await standing_of(job))
    place = f"{DEST}/_temporary/{job.layout.job_id}/00"
    tree = site.tree()

    assert tree[f"{place}/commit-epoch-000001"] == ""  # a file, in which nothing can be made
    assert tree[f"{place}/commit-epoch-000002/manifests"] is None
    assert f"{place}/manifests" not in tree


async def test_an_owner_that_died_before_it_took_the_place(site: Site) -> None:
    """The place of an owner before the last one is found as well."""
    await dead(site)
    site.alive |= {"1.one": False, "2.two": False}
    await site.cut_resume(Dies("put", "commit-owner", after=True), process="2.two")
    job = site.job(process="3.three")
    await take_over(run_of(job), await standing_of(job))

    assert (await standing_of(job)).epochs == [3]


async def test_an_owner_that_died_before_it_took_what_was_in_its_way(site: Site) -> None:
    """What it had moved aside is found, and what is in the way again has another name."""
    await dead(site)
    site.alive |= {"1.one": False, "2.two": False}
    await site.cut_resume(Dies("rename", "commit-epoch-000001", after=True), process="2.two")
    job = site.job(process="3.three")
    second = job.layout.epoch_dir(2)
    for stray in ("stray-000001-0", "stray-000001-000002-0"):
        await job.store.mkdir(f"{second}/{stray}")
    await job.store.rename(f"{second}/manifests", f"{second}/{stray}/manifests")
    await job.store.mkdir(job.layout.epoch_dir(1))
    report = await job.resume_job()

    assert report.epoch == 3
    assert site.files() == FILES


@in_virtual_time
async def test_who_was_held_up_takes_no_place_from_a_later_owner(site: Site) -> None:
    """An owner that slept after its claim, longer than its lease, leaves the next one alone."""
    await dead(site, lease=10.0)
    await asyncio.sleep(20)

    async def sleep() -> None:
        await asyncio.sleep(100)

    held_up = At("put", "commit-owner-000002", sleep, after=True)
    slow = site.job(held_up, process="2.two", machine="b", lease=10.0)
    late = asyncio.create_task(slow.resume_job())
    await asyncio.sleep(50)
    third = site.job(process="3.three", machine="c", lease=1000.0)
    await take_over(run_of(third), await standing_of(third))
    with pytest.raises(LeaseLostError):
        await late

    assert (await standing_of(third)).epochs == [3]


async def test_another_job_of_this_process_sees_a_commit_that_begins(site: Site) -> None:
    """A commit of this very process is under way from the moment of its record."""
    seen: list[object] = []

    async def set_up() -> None:
        seen.append(await site.job(job_id=OTHER).job_statuses())
        await site.job(job_id=OTHER).setup_job()

    job = await site.ready(FILES, At("mkdir", "commit-epoch-000001", set_up))
    await job.commit_job()

    assert len(seen) == 1
    assert site.files() == FILES


async def test_another_job_of_this_process_sees_a_takeover(site: Site) -> None:
    """So is one that is taken over, from the moment of its claim."""
    await dead(site)

    async def set_up() -> None:
        await site.job(job_id=OTHER).setup_job()

    job = site.job(At("rename", "commit-epoch-000001", set_up))
    await job.resume_job()

    assert site.files() == FILES


async def test_a_job_that_ends_while_it_is_looked_at(site: Site) -> None:
    """A job whose directory goes between two looks has ended, and is nobody's to finish."""
    job = await site.ready(FILES)
    running = asyncio.Event()
    looked = asyncio.Event()

    async def wait() -> None:
        running.set()
        await looked.wait()

    async def finish() -> None:
        looked.set()
        await commit

    job = site.job(At("rename", "00.committed", wait))
    commit = asyncio.create_task(job.commit_job())
    await running.wait()
    other = site.job(At("list", job.layout.attempt_dir, finish), job_id=OTHER, process="2.two")
    await other.setup_job()

    assert site.files() == FILES


async def test_a_job_of_several_owners_that_ends_while_it_is_looked_at(site: Site) -> None:
    """The same when its last claim is gone before it is read."""
    await dead(site)
    running = asyncio.Event()
    looked = asyncio.Event()

    async def wait() -> None:
        running.set()
        await looked.wait()

    async def finish() -> None:
        looked.set()
        await resume

    job = site.job(At("rename", "00.committed", wait))
    resume = asyncio.create_task(job.resume_job())
    await running.wait()
    other = site.job(At("get", "commit-owner", finish), job_id=OTHER, process="2.two")
    await other.setup_job()

    assert site.files() == FILES


async def test_a_stop_of_an_earlier_owner_says_nothing_of_this_one(site: Site) -> None:
    """The last owner's own word counts."""
    job = await site.ready(FILES, Faults(Fault("rename", DeniedError, AT_FIRST_FILE)))
    with pytest.raises(CommitError):
        await job.commit_job()
    await site.cut_resume(Dies("rename", AT_FIRST_FILE), process="2.two")
    site.alive["2.two"] = True
    standing = await standing_of(site.job())

    assert standing.stop is None
    with pytest.raises(OwnedError):
        await site.job(process="3.three").resume_job()


async def test_the_record_says_what_began(site: Site) -> None:
    """Who resumes takes those options of the record that change what the commit comes to."""
    await dead(site, mark_success=False)
    report = await site.job(mark_success=True, job_key="other").resume_job()

    assert report.success is None
    assert "/table/_SUCCESS" not in site.tree()


async def test_heartbeats_of_a_store_without_times(site: Site) -> None:
    """Where the store tells no times nobody can see a lease end."""
    await dead(site)
    job = site.job(process="2.two", machine="elsewhere")
    real = job.store.head

    async def timeless(path: str) -> object:
        return (await real(path))._replace(modified=0.0)

    job.store.head = timeless  # type: ignore[method-assign,assignment]
    standing = replace(await standing_of(job), seen=0.0)
    with pytest.raises(OwnedError):
        await take_over(run_of(job), standing)

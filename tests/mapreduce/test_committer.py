"""Committing with markers: who may, what is written when, and what an abort does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.ownership.lease import ACCOUNT_LEASE
from asynccommit.errors import (
    AsyncCommitError,
    CommitError,
    CommittedError,
    CommitUnknownError,
    DeniedError,
    LeaseLostError,
    OptionError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
)
from asynccommit.mapreduce.commit_window import Heartbeat, MarkerSettings
from asynccommit.mapreduce.committer import Check, CommitMarkers
from asynccommit.mapreduce.lease import Tenure
from asynccommit.mapreduce.marker_store import Committed
from asynccommit.mapreduce.markers import (
    FAIL,
    STARTED,
    SUCCESS,
    Action,
    End,
    Start,
    decode_end,
    decode_start,
    encode_end,
    later_start,
    start_up,
)
from asynccommit.runtime.host import this_host
from asynccommit.stores.urls import Address
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.worlds import new_world
from tests.support.am import (
    DIGEST,
    JOB,
    STAGING,
    Attempt,
    commits,
    left,
    markers,
    published,
    running,
    staged,
)
from tests.support.crashes import ModelWorld
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task, visible

Work = Callable[..., Coroutine[Any, Any, str]]


def play(scene: Callable[[ModelWorld], Coroutine[Any, Any, None]]) -> None:
    """Run a scene in virtual time, in a world with the staging directory of one job."""

    async def run() -> None:
        await scene(staged(new_world()))

    run_virtual(run())


def put(world: ModelWorld, name: str, text: str = "") -> None:
    """Put a file into the staging directory."""
    world.place(f"{STAGING}/{name}", text)


def content(world: ModelWorld, name: str) -> bytes:
    """Return what a file of the staging directory holds."""
    data = world.tree()[f"{STAGING}/{name}"].data
    assert data is not None
    return data


def raises(error: Exception, after: float = 1) -> Work:
    """Return a commit that fails so."""

    async def work(check: Check) -> str:
        await asyncio.sleep(after)
        raise error

    return work


async def undone() -> str:
    """Stand for the abort of a job."""
    return "undone"


# --- a commit -----------------------------------------------------------------------------------


def test_a_commit() -> None:
    """Scenario 48: it says whose it is before the work, and what was committed after it; nothing
    else stays."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 4)
        am = attempt.ours()
        seen: list[set[str]] = []

        async def work(check: Check) -> str:
            seen.append(left(world))
            return await attempt.publish(check)

        async with running(attempt):
            done = await am.commit(work, repeatable=True)

        start = decode_start(content(world, STARTED), "x")
        end = decode_end(content(world, SUCCESS), "x")
        assert start is not None
        assert end is not None
        assert seen == [{STARTED}]
        assert (start.job_id, start.epoch, start.owner) == (JOB, 4, am.owner)
        assert (start.lease, start.repeatable) == (60.0, True)
        assert (end.epoch, end.owner, end.digest, end.error) == (4, am.owner, DIGEST, "")
        assert (done.digest, done.owner, done.already) == (DIGEST, am.owner, False)
        assert left(world) == {STARTED, SUCCESS}

    play(scene)


@pytest.mark.parametrize("epoch", [0, -1, 1_000_000])
def test_a_number_that_is_none(epoch: int) -> None:
    """The attempts of an application master are counted from 1."""

    async def scene(world: ModelWorld) -> None:
        one = Attempt(world, 1)
        place = Address("abfs", "", STAGING)
        with pytest.raises(OptionError, match="epoch is"):
            CommitMarkers(
                one.store, place, JOB, epoch=epoch, host=one.host, heartbeat=one.heartbeat
            )

    play(scene)


def test_the_lease_that_is_not_said() -> None:
    """On a store over a network it is longer than a request may take."""

    async def scene(world: ModelWorld) -> None:
        assert Attempt(world, 1).ours(MarkerSettings()).lease == ACCOUNT_LEASE

    play(scene)


def test_a_commit_again() -> None:
    """What is committed is not committed again, whoever did it; nothing is written."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            done = await commits(first)
            again = await commits(second)

        assert again.already
        assert (again.digest, again.owner) == (done.digest, done.owner)
        assert second.process.writes == []

    play(scene)


def test_what_hadoop_has_committed() -> None:
    """Hadoop's markers are empty: nobody knows who it was."""

    async def scene(world: ModelWorld) -> None:
        put(world, STARTED)
        put(world, SUCCESS)
        put(world, FAIL)
        attempt = Attempt(world, 2)
        async with running(attempt):
            done = await commits(attempt)

        assert (done.already, done.owner, done.digest) == (True, None, "")

    play(scene)


def test_two_commits_in_one_process() -> None:
    """A second one beside the first is refused, and does not disturb it."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1)
        am = attempt.ours()
        async with running(attempt):
            first = asyncio.create_task(am.commit(attempt.publish))
            await asyncio.sleep(0.5)
            with pytest.raises(OwnedError, match="this process is already committing it"):
                await am.commit(attempt.publish)
            assert (await first).digest == DIGEST

    play(scene)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names, number, text",
    [
        ([STARTED], 2, "an application master of Hadoop is committing it: it has no lease"),
        ([STARTED, FAIL], 2, "its commit failed before: Hadoop gives no reason"),
        (
            [SUCCESS],
            2,
            "holds an end marker without COMMIT_STARTED: check its owner, and delete it",
        ),
        ([FAIL], 2, "holds an end marker without COMMIT_STARTED"),
        ([later_start(2)], 2, "is later, or is this attempt in another process"),
    ],
)
def test_what_is_refused(names: list[str], number: int, text: str) -> None:
    """Who may not commit is told why, and has written nothing."""

    async def scene(world: ModelWorld) -> None:
        for name in names:
            put(world, name)
        attempt = Attempt(world, number)
        async with running(attempt):
            with pytest.raises(CommitError, match=text):
                await commits(attempt, repeatable=True)

        assert attempt.process.writes == []
        assert left(world) == {*names}

    play(scene)


def test_a_directory_that_is_not_there() -> None:
    """Without the staging directory nothing is begun: Hadoop has cleaned up, or never ran."""

    async def scene() -> None:
        attempt = Attempt(new_world(), 1)
        async with running(attempt):
            with pytest.raises(
                PreflightError, match=r"/staging.* does not exist. Nothing was written"
            ):
                await commits(attempt)

        assert attempt.process.writes == []

    run_virtual(scene())


def test_a_marker_that_cannot_be_read() -> None:
    """What is neither Hadoop's nor ours is not passed over."""

    async def scene(world: ModelWorld) -> None:
        put(world, STARTED, "?")
        attempt = Attempt(world, 1)
        async with running(attempt):
            with pytest.raises(CommitError, match="COMMIT_STARTED: not valid JSON"):
                await commits(attempt)

        assert attempt.process.writes == []

    play(scene)


def test_an_attempt_that_comes_too_late() -> None:
    """An earlier attempt finds a later one's start, and an equal one another's: neither goes on."""

    async def scene(world: ModelWorld) -> None:
        one, two = Attempt(world, 1), Attempt(world, 2)
        twin = Attempt(world, 2, name="twin")
        async with running(one, two, twin):
            committing = asyncio.create_task(commits(two, repeatable=True))
            await asyncio.sleep(0.5)
            for late in (one, twin):
                with pytest.raises(OwnedError, match=r"attempt 2 .* is later, or is this attempt"):
                    await commits(late, repeatable=True)
            await committing

    play(scene)


def test_a_window_that_is_too_short() -> None:
    """A window in which nothing can be written ends with an error, not with waiting for ever."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1)
        am = attempt.ours(MarkerSettings(window=0.0))
        attempt.process.hooks = {number: lambda: asyncio.sleep(0.3) for number in range(1, 500)}
        async with running(attempt):
            with pytest.raises(PreflightError, match="the window is too short for this store"):
                await am.commit(attempt.publish)

        assert left(world) == set()

    play(scene)


# --- taking over --------------------------------------------------------------------------------


async def cut_short(attempt: Attempt, *, repeatable: bool = True) -> None:
    """Let an attempt die while it commits."""
    committing = asyncio.create_task(commits(attempt, repeatable=repeatable))
    await asyncio.sleep(0.5)
    attempt.process.kill()
    committing.cancel()
    await asyncio.wait([committing])


def test_a_takeover_waits_for_the_lease() -> None:
    """Before the lease is over the dead one is named; after it the commit is done again."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            await cut_short(first)
            await asyncio.sleep(58)
            with pytest.raises(OwnedError, match=r"its last heartbeat was 5\d s ago .*is 60 s"):
                await commits(second, repeatable=True)
            assert second.process.writes == []
            await asyncio.sleep(5)
            assert (await commits(second, repeatable=True)).digest == DIGEST

        assert left(world) == {STARTED, later_start(2), SUCCESS}

    play(scene)


@pytest.mark.parametrize("which", ["first", "second"])
def test_what_may_not_be_repeated(which: str) -> None:
    """Both have to say that it may be repeated; else nobody takes it over, not by force either."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            await cut_short(first, repeatable=which == "second")
            await asyncio.sleep(500)
            for force in (False, True):
                with pytest.raises(
                    OwnedError, match="a commit that cannot be repeated cannot be taken over"
                ):
                    await commits(second, repeatable=which == "first", force=force)

        assert second.process.writes == []
        assert start_up(markers(world), repeatable=False) is Action.ERROR

    play(scene)


def test_a_takeover_by_force() -> None:
    """A person who knows that the first is dead need not wait; if it lives, it stops."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            old = asyncio.create_task(commits(first, repeatable=True))
            await asyncio.sleep(0.5)
            assert (await commits(second, repeatable=True, force=True)).digest == DIGEST
            with pytest.raises(LeaseLostError, match="another application master took the commit"):
                await old

        end = decode_end(content(world, SUCCESS), "x")
        assert end is not None
        assert end.epoch == 2

    play(scene)


def test_a_clock_that_is_ahead() -> None:
    """Whether a lease is over is told by the store's time: a wrong clock takes nothing over."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2, ahead=10_000)
        async with running(first, second):
            committing = asyncio.create_task(commits(first, repeatable=True))
            await asyncio.sleep(0.5)
            with pytest.raises(OwnedError, match="attempt 1"):
                await commits(second, repeatable=True)
            assert left(world) == {STARTED}  # not the file that told the time
            assert (await committing).digest == DIGEST

    play(scene)


def test_what_was_said_too_late_goes() -> None:
    """COMMIT_FAIL of an owner that was replaced does not stay beside its successor's success."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        late = encode_end(End(JOB, 1, first.ours().owner, 1, "", "late")).decode()
        async with running(first, second):
            await cut_short(first)
            await asyncio.sleep(100)
            committing = asyncio.create_task(commits(second, repeatable=True))
            await asyncio.sleep(1)
            put(world, FAIL, late)
            assert (await committing).digest == DIGEST

        assert left(world) == {STARTED, later_start(2), SUCCESS}

    play(scene)


def test_hadoops_start_by_force() -> None:
    """That of Hadoop's is deleted, as its own next attempt would do, and the commit done again."""

    async def scene(world: ModelWorld) -> None:
        put(world, STARTED)
        attempt = Attempt(world, 2)
        async with running(attempt):
            with pytest.raises(OwnedError, match="cannot be repeated"):
                await commits(attempt, force=True)
            assert content(world, STARTED) == b""
            assert (await commits(attempt, repeatable=True, force=True)).digest == DIGEST

        start = decode_start(content(world, STARTED), "x")
        assert start is not None
        assert start.epoch == 2

    play(scene)


def test_hadoop_takes_a_commit_over() -> None:
    """Where Hadoop deletes our start and begins anew, ours stops, and says nothing."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            ours = asyncio.create_task(commits(first, repeatable=True))
            await asyncio.sleep(0.5)
            theirs = second.reference()
            assert await theirs.start(repeatable=True) is Action.REPEAT
            assert await theirs.commit(second.publish, repeatable=True)
            with pytest.raises(LeaseLostError):
                await ours

        assert content(world, SUCCESS) == b""
        assert not markers(world).fail

    play(scene)


# --- while it goes on ---------------------------------------------------------------------------


def test_heartbeats() -> None:
    """A long commit says four times in a lease that it lives; one sign is there, and none after."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)

        async def work(check: Check) -> str:
            for _ in range(600):
                check()
                await asyncio.sleep(1)
            return DIGEST

        async with running(first, second):
            committing = asyncio.create_task(first.ours().commit(work, repeatable=True))
            await asyncio.sleep(500)
            assert left(world) == {STARTED, "COMMIT_ALIVE.000001.000033"}
            with pytest.raises(OwnedError, match=r"its last heartbeat was [0-9] s ago"):
                await commits(second, repeatable=True)
            assert (await committing).digest == DIGEST

        assert left(world) == {STARTED, SUCCESS}

    play(scene)


def test_who_cannot_say_that_it_lives_stops() -> None:
    """When nothing can be written any more the work is cut short before another may begin."""

    async def scene(world: ModelWorld) -> None:
        down = Fault("put", lambda op, path: DeniedError(op, path, "no"), "COMMIT_ALIVE")
        attempt = Attempt(world, 1, Faults(down))
        ended: list[float] = []

        async def work(check: Check) -> str:
            try:
                await asyncio.sleep(10_000)
            finally:
                ended.append(asyncio.get_running_loop().time())
            return DIGEST

        async with running(attempt):
            with pytest.raises(LeaseLostError, match="could not renew its lease in time"):
                await attempt.ours().commit(work, repeatable=True)

        assert 40 < ended[0] < 50
        assert left(world) == {STARTED}

    play(scene)


def test_who_was_replaced_is_stopped() -> None:
    """It learns of that at its next heartbeat, and what it has under way is cut short."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        began = asyncio.get_running_loop().time()

        async def work(check: Check) -> str:
            await asyncio.sleep(10_000)
            return DIGEST

        async with running(first, second):
            old = asyncio.create_task(first.ours().commit(work, repeatable=True))
            await asyncio.sleep(1)
            await commits(second, repeatable=True, force=True)
            with pytest.raises(LeaseLostError, match="another application master took the commit"):
                await old

        assert asyncio.get_running_loop().time() - began < 20
        assert left(world) == {STARTED, later_start(2), SUCCESS}

    play(scene)


def test_the_lease_by_the_own_clock() -> None:
    """Before each step the owner's clock says whether three quarters of the lease are over."""

    async def scene(world: ModelWorld) -> None:
        attempt, now = Attempt(world, 1), [100.0]
        start = Start(JOB, 1, attempt.ours().owner, 60.0, 1, True)
        host = replace(attempt.host, clock=lambda: now[0])
        tenure = Tenure(attempt.place, start, host, 100.0, count(1))
        now[0] = 145.0
        tenure.check()
        now[0] = 145.1  # as after a suspension
        with pytest.raises(LeaseLostError, match="could not renew its lease in time"):
            tenure.check()
        now[0] = 100.0
        with pytest.raises(LeaseLostError):
            tenure.check()

    play(scene)


@pytest.mark.parametrize("after", [True, False])
def test_a_lost_answer_to_the_start(after: bool) -> None:
    """Whether a start is there whose answer was lost is looked up."""

    async def scene(world: ModelWorld) -> None:
        lost = Fault(
            "put",
            lambda op, path: OutcomeUnknownError(op, path, "no answer"),
            STARTED,
            after=after,
            times=1,
        )
        attempt = Attempt(world, 1, Faults(lost))
        am = attempt.ours()
        async with running(attempt):
            if not after:
                with pytest.raises(CommitUnknownError):
                    await am.commit(attempt.publish)
                assert published(world) == 0
            assert (await am.commit(attempt.publish)).digest == DIGEST

    play(scene)


# --- what has failed ----------------------------------------------------------------------------


def test_a_commit_that_fails() -> None:
    """Scenario 48: the error is the caller's, and COMMIT_FAIL says it; nobody commits the job
    again."""

    async def scene(world: ModelWorld) -> None:
        first, second = Attempt(world, 1), Attempt(world, 2)
        am = first.ours()
        async with running(first, second):
            with pytest.raises(ValueError, match="disk full"):
                await am.commit(raises(ValueError("disk full"), 40))
            with pytest.raises(CommitError, match="failed before: ValueError: disk full"):
                await commits(second, repeatable=True)
            assert await am.abort(undone) == "undone"

        end = decode_end(content(world, FAIL), "x")
        assert end is not None
        assert (end.owner, end.error) == (am.owner, "ValueError: disk full")
        assert left(world) == {STARTED, FAIL}

    play(scene)


@pytest.mark.parametrize(
    "error",
    [
        CommitUnknownError(JOB, "x", ()),
        OwnedError(JOB, "x", ()),
        CommittedError(JOB, "x", ()),
        LeaseLostError(JOB, "x", ()),
        OutcomeUnknownError("rename", "/out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_may_have_succeeded_has_not_failed(error: AsyncCommitError) -> None:
    """Where nobody knows whether the job is committed, COMMIT_FAIL is not written, nor undone."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1)
        am = attempt.ours()
        async with running(attempt):
            with pytest.raises(type(error)):
                await am.commit(raises(error))
            with pytest.raises(CommitUnknownError, match="it is unknown whether it is committed"):
                await am.abort(undone)
            with pytest.raises(OwnedError, match="a commit that cannot be repeated"):
                await am.commit(attempt.publish)
            assert left(world) == {STARTED}
            done = await am.commit(attempt.publish, repeatable=True)

        assert done.digest == DIGEST

    play(scene)


def test_a_commit_that_cancels_itself() -> None:
    """A cancellation that nobody asked for is a failure like any other."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1)

        async def work(check: Check) -> str:
            raise asyncio.CancelledError

        async with running(attempt):
            with pytest.raises(CommitError, match="a cancellation stopped the commit"):
                await attempt.ours().commit(work)

        assert left(world) == {STARTED, FAIL}

    play(scene)


def test_a_failure_that_cannot_be_said() -> None:
    """The error of the commit is raised, with a note; this process may undo the job."""

    async def scene(world: ModelWorld) -> None:
        down = Fault("put", lambda op, path: DeniedError(op, path, "no"), FAIL)
        attempt = Attempt(world, 1, Faults(down))
        am = attempt.ours()
        async with running(attempt):
            with pytest.raises(ValueError, match="disk full") as failed:
                await am.commit(raises(ValueError("disk full")))
            assert await am.abort(undone) == "undone"

        assert "COMMIT_FAIL was not written: put" in failed.value.__notes__[0]

    play(scene)


# --- aborts -------------------------------------------------------------------------------------


def test_an_abort_before_any_commit() -> None:
    """A job whose commit has not begun is undone, and this process commits it no more."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1)
        am = attempt.ours()
        async with running(attempt):
            assert await am.abort(undone) == "undone"
            with pytest.raises(CommitError, match="an abort stopped the commit"):
                await am.commit(attempt.publish)

        assert left(world) == set()

    play(scene)


def test_an_abort_while_the_window_is_waited_for() -> None:
    """Who waits to be heard by the resource manager is stopped as well, and has written nothing."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1, connected=False)
        am = attempt.ours()
        async with running(attempt):
            committing = asyncio.create_task(am.commit(attempt.publish))
            await asyncio.sleep(30)
            assert await am.abort(undone) == "undone"
            with pytest.raises(CommitError, match="an abort stopped the commit"):
                await committing

        assert left(world) == set()

    play(scene)


def test_an_abort_of_what_is_committed() -> None:
    """Nothing is undone, by the owner neither, also where COMMIT_SUCCESS could not be written."""

    async def scene(world: ModelWorld) -> None:
        down = Fault("put", lambda op, path: DeniedError(op, path, "no"), SUCCESS)
        first, second = Attempt(world, 1, Faults(down)), Attempt(world, 2)
        am = first.ours()
        async with running(first, second):
            with pytest.raises(CommitUnknownError):
                await am.commit(first.publish)
            with pytest.raises(CommittedError, match="nothing was undone"):
                await am.abort(undone)
            down.times = 0
            with pytest.raises(OwnedError, match=r"attempt 1 .*is committing it: nothing was und"):
                await second.ours().abort(undone)

    play(scene)


def test_a_cancelled_caller() -> None:
    """A process that ends says nothing of the job: the next one finds a commit to repeat."""

    async def scene(world: ModelWorld) -> None:
        attempt = Attempt(world, 1)
        async with running(attempt):
            committing = asyncio.create_task(commits(attempt, repeatable=True))
            await asyncio.sleep(0.5)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing

        assert left(world) == {STARTED}

    play(scene)


# --- with a committer of this package ---------------------------------------------------------


async def test_a_job_of_ours(tmp_path: Path) -> None:
    """A commit that was cut short is gone on with by the next attempt, and the markers say so."""
    lost = Fault("rename", lambda op, path: OutcomeUnknownError(op, path, "no answer"), "/b")
    dest, place = tmp_path / "table", tmp_path / "staging"
    place.mkdir()
    first, second = committer(dest, Faults(lost), workers=1), committer(dest)
    await first.setup_job()
    tasks = [await run_task(first, task, {name: name}) for task, name in enumerate("ab")]
    host = this_host()
    heartbeat = Heartbeat(host.clock)
    heartbeat.beat()

    async def attempt(epoch: int, job: ManifestCommitter, **how: bool) -> Committed:
        async def work(check: Check) -> str:
            check()
            return f"{(await job.commit_job(tasks)).files} files"

        directory = Address("file", "", str(place))
        am = CommitMarkers(job.store, directory, JOB, epoch=epoch, host=host, heartbeat=heartbeat)
        return await am.commit(work, repeatable=True, **how)

    with pytest.raises(CommitUnknownError):
        await attempt(1, first)
    assert [path.name for path in place.iterdir()] == [STARTED]
    with pytest.raises(OwnedError):
        await attempt(2, second)
    done = await attempt(2, second, force=True)
    for job in (first, second):
        await job.store.aclose()

    assert (done.digest, visible(dest)) == ("2 files", {"a": "a", "b": "b"})
    assert {path.name for path in place.iterdir()} == {STARTED, later_start(2), SUCCESS}

"""The commit of a MapReduce job: what Hadoop's order gets wrong, and that ours does not.

Each flaw is shown twice: in a model of Hadoop's order, and gone. Then an application master of ours
dies, or stands still, at every single request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from asynccommit.errors import (
    CommitError,
    CommitUnknownError,
    DeniedError,
    LeaseLostError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
    UnavailableError,
)
from asynccommit.mapreduce.commit_window import MarkerSettings
from asynccommit.mapreduce.committer import Check
from asynccommit.mapreduce.marker_store import Committed
from asynccommit.mapreduce.markers import SUCCESS, Action, start_up
from asynccommit.testing.models.crashes import Crash, Suspension, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.worlds import KINDS, new_world
from tests.support.am import (
    DIGEST,
    PARTS,
    Attempt,
    commits,
    left,
    markers,
    published,
    running,
    staged,
    until_death,
)
from tests.support.crashes import ModelWorld
from tests.support.faults import Fault, Faults
from tests.support.selection import amount
from tests.support.storms import STORM

LEASE = 60.0
LATER = 2 * LEASE
SEEDS = amount("ASYNCCOMMIT_MARKER_SEEDS", quick=3, full=10)
BETWEEN = 0.5  # seconds at which one looks while another commits
Scene = Callable[[], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    """Run a scene in virtual time."""
    run_virtual(scene())


def starts(world: ModelWorld, *, repeatable: bool = False) -> Action:
    """Return what the next application master of Hadoop's would do."""
    return start_up(markers(world), repeatable=repeatable)


# --- 1. who is cut off says that it commits ------------------------------------------------------


def test_a_cut_off_reference_blocks_its_successor() -> None:
    """Hadoop's writes COMMIT_STARTED and then waits to be connected: nobody may run the job."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1, connected=False)
        async with running(first):
            waiting = asyncio.create_task(first.reference().commit(first.publish))
            await asyncio.sleep(3600)

            assert published(world) == 0
            assert starts(world) is Action.ERROR
            waiting.cancel()
            await asyncio.wait([waiting])

    play(scene)


def test_who_is_cut_off_says_nothing() -> None:
    """Ours waits to be heard first: it writes nothing, gives up, and the next one commits."""

    async def scene() -> None:
        world = staged(new_world())
        first, second = Attempt(world, 1, connected=False), Attempt(world, 2)
        async with running(first, second):
            waiting = asyncio.create_task(commits(first))
            await asyncio.sleep(100)

            assert left(world) == set()
            assert starts(world) is Action.RUN
            assert (await commits(second)).digest == DIGEST
            with pytest.raises(PreflightError, match=r"has not answered for 600 s.*nothing was"):
                await waiting
            assert starts(world) is Action.SUCCEEDED

    play(scene)


def test_who_is_cut_off_while_it_begins_takes_that_back() -> None:
    """A start whose writing took longer than the window does not stay."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1, connected=False)
        first.heartbeat.beat()
        slow = asyncio.Event()
        first.process.hooks[1] = slow.wait
        async with running(first):
            committing = asyncio.create_task(commits(first))
            await asyncio.sleep(30)
            slow.set()
            await asyncio.sleep(1)

            assert left(world) == set()
            first.connected = True
            assert (await committing).digest == DIGEST

    play(scene)


# --- 2. the loser of the race says that the commit has failed -------------------------------------


def test_the_loser_of_the_reference_fails_the_winner() -> None:
    """Of two of Hadoop's the later writes COMMIT_FAIL while the first is committing."""

    async def scene() -> None:
        world = staged(new_world())
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            winner = asyncio.create_task(first.reference().commit(first.publish))
            await asyncio.sleep(BETWEEN)
            assert not await second.reference().commit(second.publish)

            assert starts(world) is Action.FAILED
            assert await winner
            assert markers(world).fail

    play(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loser_is_told_who_won(kind: str) -> None:
    """Ours learns who commits, and writes nothing; the winner is not disturbed."""

    async def scene() -> None:
        world = staged(new_world(kind))
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            winner = asyncio.create_task(commits(first, repeatable=True))
            await asyncio.sleep(BETWEEN)
            before = left(world)
            with pytest.raises(OwnedError, match=r"attempt 1 \(alice@node-1.*is committing it"):
                await commits(second, repeatable=True)

            assert second.process.writes == []
            assert left(world) == before
            assert (await winner).digest == DIGEST
            assert starts(world) is Action.SUCCEEDED
            assert not markers(world).fail

    play(scene)


@pytest.mark.sample(12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(12))
def test_of_two_at_once_one_begins(kind: str, number: int) -> None:
    """However two meet that begin together, exactly one commits and none writes COMMIT_FAIL."""

    async def scene() -> None:
        world = staged(new_world(kind))
        first, second = Attempt(world, 1), Attempt(world, 2)
        held = asyncio.Event()
        first.process.hooks[number % 6 + 1] = held.wait
        second.process.hooks[number // 6 * 3 + 1] = held.wait
        async with running(first, second):
            both = [
                asyncio.create_task(until_death(one, commits(one, repeatable=True)))
                for one in (first, second)
            ]
            await asyncio.sleep(BETWEEN)
            held.set()
            told = await asyncio.gather(*both)

        assert sum(isinstance(one, Committed) and not one.already for one in told) == 1
        assert all(isinstance(one, Committed | OwnedError) for one in told)
        assert markers(world).success
        assert not markers(world).fail

    play(scene)


# --- 3. the abort does not wait -------------------------------------------------------------------


class Stubborn:
    """A commit that is told to stop, and needs its time for that."""

    def __init__(self, attempt: Attempt, seconds: float) -> None:
        self.at_work = False
        self._attempt, self._seconds = attempt, seconds

    async def __call__(self, check: Check = lambda: None) -> str:
        """Publish; once cancelled, finish what is under way, and fail."""
        self.at_work = True
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(self._seconds)
            await self._attempt.publish()
            raise
        finally:
            self.at_work = False
        return DIGEST


def test_the_reference_aborts_beside_its_commit() -> None:
    """Hadoop's undoes the job while its own commit is still publishing: half of it stays."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1)
        work, am = Stubborn(first, 5), first.reference()
        seen: list[bool] = []

        async def undo() -> None:
            seen.append(work.at_work)

        async with running(first):
            committing = asyncio.create_task(am.commit(work))
            await asyncio.sleep(BETWEEN)
            await am.abort(undo)
            assert not await committing

        assert seen == [True]
        assert published(world) == PARTS  # after the abort

    play(scene)


def test_an_abort_waits_for_the_commit() -> None:
    """Ours begins to undo when the commit has ended, and said that it failed."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1)
        work, am = Stubborn(first, 5), first.ours()
        seen: list[object] = []

        async def undo() -> str:
            seen.extend([work.at_work, starts(world), published(world)])
            return "undone"

        async with running(first):
            committing = asyncio.create_task(am.commit(work))
            await asyncio.sleep(BETWEEN)
            assert await am.abort(undo) == "undone"
            with pytest.raises(CommitError, match="an abort stopped the commit"):
                await committing

        assert seen == [False, Action.FAILED, PARTS]

    play(scene)


def test_a_commit_that_does_not_stop_is_not_aborted() -> None:
    """After the timeout the abort is an error; nothing is undone beside a commit."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1)
        am = first.ours(MarkerSettings(cancel_timeout=7))

        async def undo() -> None:
            pytest.fail("undone beside the commit")

        async with running(first):
            committing = asyncio.create_task(am.commit(Stubborn(first, 100)))
            await asyncio.sleep(BETWEEN)
            with pytest.raises(CommitError, match=r"did not stop within 7 s: nothing was undone"):
                await am.abort(undo)
            with pytest.raises(CommitError):
                await committing

    play(scene)


# --- 4. the job is committed, and called failed ---------------------------------------------------

DENIED = Fault("put", lambda op, path: DeniedError(op, path, "quota"), SUCCESS)


def once(kind: type[Exception], *, after: bool = False) -> Fault:
    """Return a fault that strikes the first COMMIT_SUCCESS only."""
    return Fault("put", lambda op, path: kind(op, path, "down"), SUCCESS, after=after, times=1)


def test_the_reference_fails_a_job_that_is_committed() -> None:
    """Hadoop's writes COMMIT_FAIL when COMMIT_SUCCESS could not be: the output is published."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1, Faults(once(UnavailableError)))
        async with running(first):
            assert not await first.reference().commit(first.publish)

        assert published(world) == PARTS
        assert starts(world) is Action.FAILED

    play(scene)


@pytest.mark.parametrize(
    "fault",
    [
        once(UnavailableError),
        once(OutcomeUnknownError),
        once(OutcomeUnknownError, after=True),
        once(DeniedError),
    ],
    ids=["refused", "lost", "lost after", "denied"],
)
def test_the_word_of_a_success_is_repeated(fault: Fault) -> None:
    """Ours looks what is there and says it again: the job is committed."""

    async def scene() -> None:
        world = staged(new_world())
        fault.struck = 0
        first = Attempt(world, 1, Faults(fault))
        async with running(first):
            assert (
                await commits(first)
                == Committed(first.place.job_id, DIGEST, first.ours().owner, already=False)
                or published(world) == PARTS
            )

        assert starts(world) is Action.SUCCEEDED
        assert not markers(world).fail

    play(scene)


def test_a_success_that_cannot_be_said_is_no_failure() -> None:
    """Where it is never written the error says what is true, and it can be said again later."""

    async def scene() -> None:
        world = staged(new_world())
        first = Attempt(world, 1, Faults(fault := once(DeniedError)))
        fault.times = 1_000_000
        am = first.ours()
        async with running(first):
            with pytest.raises(CommitUnknownError, match="the job is committed, and its output"):
                await am.commit(first.publish)
            assert published(world) == PARTS
            assert not markers(world).fail
            fault.times = 0
            assert (await am.commit(Stubborn(first, 0))).digest == DIGEST

        assert starts(world) is Action.SUCCEEDED

    play(scene)


# --- 5. what an earlier attempt says stays --------------------------------------------------------


def fails_late(attempt: Attempt, seconds: float) -> Callable[..., Coroutine[Any, Any, str]]:
    """Return a commit that fails after so many seconds: what it was to move is gone."""

    async def work(check: Check = lambda: None) -> str:
        await asyncio.sleep(seconds)
        check()
        raise FileNotFoundError("part-0")

    return work


def test_what_an_old_attempt_of_the_reference_says_stays() -> None:
    """Of a commit that is repeated, the first attempt's late COMMIT_FAIL fails the job."""

    async def scene() -> None:
        world = staged(new_world())
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            old = asyncio.create_task(
                first.reference().commit(fails_late(first, 2), repeatable=True)
            )
            await asyncio.sleep(BETWEEN)
            am = second.reference()
            assert await am.start(repeatable=True) is Action.REPEAT
            new = asyncio.create_task(am.commit(second.publish, repeatable=True))
            await old

            assert starts(world, repeatable=True) is Action.FAILED  # while it is being committed
            await new
            assert markers(world).success
            assert markers(world).fail

    play(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_who_was_replaced_says_nothing(kind: str) -> None:
    """Ours is replaced when its lease is over; what it was to say then, it does not."""

    async def scene() -> None:
        world = staged(new_world(kind))
        first, second = Attempt(world, 1), Attempt(world, 2)
        async with running(first, second):
            old = asyncio.create_task(first.ours().commit(fails_late(first, 2), repeatable=True))
            await asyncio.sleep(BETWEEN)
            first.process.suspend()
            await asyncio.sleep(LATER)
            new = asyncio.create_task(commits(second, repeatable=True))
            await asyncio.sleep(1)
            first.process.awaken()
            with pytest.raises(LeaseLostError):
                await old

            assert starts(world, repeatable=True) is Action.REPEAT
            assert (await new).digest == DIGEST
            assert not markers(world).fail
            names = {name for name in left(world) if not name.startswith("COMMIT_ALIVE.000001")}
            assert names == {"COMMIT_STARTED", "COMMIT_STARTED.000002", "COMMIT_SUCCESS"}

    play(scene)


# --- every request --------------------------------------------------------------------------------


async def rehearse(kind: str) -> tuple[int, int]:
    """Return how many writes and requests an undisturbed commit takes."""
    world = staged(new_world(kind))
    attempt = Attempt(world, 1)
    async with running(attempt):
        await commits(attempt)
    return len(attempt.process.writes), attempt.process.requests


def truth(world: ModelWorld, told: object) -> list[str]:
    """Return what is wrong with what the markers, and a process, say."""
    there, whole = markers(world), published(world) == PARTS
    problems = []
    if there.success and not whole:
        problems.append("COMMIT_SUCCESS on half of the output")
    if there.fail:
        problems.append("COMMIT_FAIL on a job that has not failed")
    if isinstance(told, Committed) and not there.success:
        problems.append(f"{told} and no COMMIT_SUCCESS")
    return problems


async def dies_and_is_repeated(kind: str, crash: Crash, *, repeatable: bool) -> list[str]:
    """Let an attempt die at a write, and the next one go on; return what is wrong."""
    world = staged(new_world(kind))
    first, second, third = Attempt(world, 1, crash=crash), Attempt(world, 2), Attempt(world, 3)
    async with running(first, second, third):
        told = await until_death(first, commits(first, repeatable=repeatable))
        first.process.kill()
        problems = truth(world, told)
        soon = await until_death(second, commits(second, repeatable=repeatable))
        if isinstance(soon, OwnedError) and second.process.writes:
            problems.append(f"wrote {second.process.writes}, and then {soon}")
        await asyncio.sleep(LATER)
        last = await until_death(third, commits(third, repeatable=repeatable))
        problems += truth(world, last)
        if repeatable and not isinstance(last, Committed):
            problems.append(f"not committed in the end: {last!r}")
        if not repeatable and not isinstance(last, Committed | OwnedError):
            problems.append(f"{last!r}")
        if isinstance(last, OwnedError) and starts(world) is not Action.ERROR:
            problems.append(f"{last!r} and {markers(world)}")
    return [f"{kind}, {crash}: {problem}" for problem in problems]


@pytest.mark.sample(4)
@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_death_at_every_write(kind: str, repeatable: bool) -> None:
    """Who comes after a death repeats the commit if it may be, and never says what is not so."""

    async def scene() -> None:
        writes, _ = await rehearse(kind)
        problems = [
            problem
            for write in range(1, writes + 1)
            for when in When
            for problem in await dies_and_is_repeated(
                kind, Crash(write, when), repeatable=repeatable
            )
        ]
        assert writes >= 2 + PARTS
        assert problems == []

    play(scene)


async def sleeps_and_is_replaced(kind: str, stop: Suspension) -> list[str]:
    """Let an attempt stand still while another commits, and wake; return what is wrong."""
    world = staged(new_world(kind))
    first, second = Attempt(world, 1, stop=stop), Attempt(world, 2)
    problems = []
    async with running(first, second):
        old = asyncio.create_task(until_death(first, commits(first, repeatable=True)))
        await asyncio.sleep(LATER + 10)
        new = await until_death(second, commits(second, repeatable=True))
        problems += truth(world, new)
        told = await old
        problems += truth(world, told)
        if not isinstance(new, Committed):
            problems.append(f"not committed by the second: {new!r}")
        if not isinstance(told, Committed | LeaseLostError | OwnedError):
            problems.append(f"the first was told {told!r}")
    return [f"{kind}, {stop}: {problem}" for problem in problems]


@pytest.mark.sample(4)
@pytest.mark.parametrize("seconds", [LATER + 11.5, 4 * LATER])
@pytest.mark.parametrize("kind", KINDS)
def test_sleep_at_every_request(kind: str, seconds: float) -> None:
    """Who wakes after another has begun to commit, or has committed, harms nothing."""

    async def scene() -> None:
        _, requests = await rehearse(kind)
        problems = [
            problem
            for request in range(1, requests + 1)
            for after in (False, True)
            for problem in await sleeps_and_is_replaced(kind, Suspension(request, seconds, after))
        ]
        assert problems == []

    play(scene)


# --- an end that comes late ----------------------------------------------------------------------


async def fails_and_sleeps(kind: str, stop: Suspension | None, crash: Crash | None) -> list[str]:
    """Let a commit fail, and stand still or die meanwhile; another commits; say what is wrong."""
    world = staged(new_world(kind))
    first, second = Attempt(world, 1, stop=stop, crash=crash), Attempt(world, 2)
    async with running(first, second):
        work = fails_late(first, 1)
        old = asyncio.create_task(until_death(first, first.ours().commit(work, repeatable=True)))
        await asyncio.sleep(LATER + 10)
        new = await until_death(second, commits(second, repeatable=True))
        told = await old
        await asyncio.sleep(LATER)
        last = starts(world, repeatable=True)
    if isinstance(new, Committed):
        wanted, fine = Action.SUCCEEDED, not markers(world).fail or first.process.dead
    else:
        wanted, fine = Action.FAILED, isinstance(new, CommitError)
    if last is wanted and fine:
        return []
    return [f"{kind}, {stop}, {crash}: {last}, {markers(world)}, told {told!r} and {new!r}"]


@pytest.mark.parametrize("kind", ["adls", "flat"])
def test_a_late_failure_does_not_fail_a_commit(kind: str) -> None:
    """Who was replaced just when it was to say that it failed does not undo its successor."""

    async def scene() -> None:
        world = staged(new_world(kind))
        attempt = Attempt(world, 1)
        async with running(attempt):
            work = fails_late(attempt, 1)
            await until_death(attempt, attempt.ours().commit(work, repeatable=True))
        problems: list[str] = []
        for request in range(1, attempt.process.requests + 1):
            for seconds in (LATER + 11.5, 4 * LATER):
                for after in (False, True):
                    problems += await fails_and_sleeps(
                        kind, Suspension(request, seconds, after), None
                    )
        for write in range(1, len(attempt.process.writes) + 1):
            for late in (LATER + 11.5, 4 * LATER):
                problems += await fails_and_sleeps(kind, None, Crash(write, When.LATE, late))
        assert problems == []

    play(scene)


# --- a storm --------------------------------------------------------------------------------------

UNDECIDED = (OwnedError, LeaseLostError, CommitUnknownError)


async def weathered(kind: str, seed: int) -> list[str]:
    """Let three attempts commit in a storm, some of which die or sleep; say what is wrong."""
    rng, world = random.Random(f"{kind} {seed}"), staged(new_world(kind, seed))
    world.storm(rng, STORM)
    stop = Suspension(rng.randint(1, 25), rng.uniform(1, 2 * LATER)) if rng.random() < 0.5 else None
    crash = Crash(rng.randint(1, 20), rng.choice([*When]), 30.0) if rng.random() < 0.5 else None
    attempts = [
        Attempt(world, 1, crash=crash, stop=stop, whole=True),
        *(Attempt(world, number, whole=True) for number in (2, 3)),
    ]

    async def act(attempt: Attempt, begin: float) -> object:
        await asyncio.sleep(begin)
        return await until_death(attempt, commits(attempt, repeatable=True))

    async with running(*attempts):
        begins = (0.0, rng.uniform(0, LATER), rng.uniform(0, 2 * LATER))
        told = await asyncio.gather(*map(act, attempts, begins))
        await asyncio.sleep(3 * LATER)
        world.weather = None
        last = Attempt(world, 4)
        async with running(last):
            told.append(await act(last, 0))
    failed = [one for one in told if isinstance(one, Exception) and not isinstance(one, UNDECIDED)]
    done = [one for one in told if isinstance(one, Committed)]
    problems = [] if failed else truth(world, told[-1])
    if markers(world).success and published(world) < PARTS:
        problems.append("COMMIT_SUCCESS on half of the output")
    if not failed and not done:
        problems.append("not committed in the end")
    return [f"{kind}, seed {seed}: {problem}, {told}" for problem in problems]


@pytest.mark.more
@pytest.mark.parametrize("kind", KINDS)
def test_no_storm_makes_the_markers_lie(kind: str) -> None:
    """With answers lost, requests late and attempts dying, what the markers say is so."""

    async def scene() -> None:
        problems = [text for seed in range(SEEDS) for text in await weathered(kind, seed)]
        assert problems == []

    play(scene)

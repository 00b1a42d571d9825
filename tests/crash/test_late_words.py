"""What is said of a commit comes late, or twice: to its end, or to another commit of the job."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, CommittedError, LeaseLostError, PreflightError
from asynccommit.options.job import Mode
from asynccommit.testing.models.crashes import Crash, Suspension, When
from asynccommit.testing.models.fault_rules import Climate, Fault
from asynccommit.testing.models.invariants import visible
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.jobs import JOB_DIR, Driver, Scenario, commit, driver, run_tasks
from tests.crash.recovery import patiently, until_death
from tests.crash.worlds import KINDS, new_world
from tests.support.crashes import DEST, World
from tests.support.gcs_crashes import BUCKET, GcsWorld

NEW = Scenario("new", ({"p=1/new": "2"},), {f"{DEST}/p=1/old": "1"}, Mode.REPLACE_PARTITIONS)
BEFORE, AFTER = {"p=1/old": b"1"}, {"p=1/new": b"2"}
"""What readers see before the job, and after it."""
RECORD = f"{JOB_DIR}/00/commit-record.json"
BUCKETS = ("flat", "hns")


def seen(world: World) -> dict[str, bytes | None]:
    """Return what readers see: relative path -> content."""
    return {path[len(DEST) + 1 :]: item.data for path, item in visible(world.tree(), DEST).items()}


def words(world: World) -> list[str]:
    """Return the files that are left of commits."""
    tree = world.tree().items()
    return [path for path, item in tree if "/00/commit-" in path and item.data is not None]


def write_of(who: Driver, word: str) -> int:
    """Return the number of the first write of a process that names ``word``."""
    return next(number for number, what in enumerate(who.process.writes, 1) if word in what)


async def told(act: Awaitable[Any]) -> Any:
    """Return what an act gives, or how it fails."""
    try:
        return await act
    except CommitError as error:
        return error


async def prepared(kind: str = "flat", scenario: Scenario = NEW) -> tuple[GcsWorld, list[Any]]:
    """Return a bucket in which the tasks of a job have committed."""
    world = GcsWorld.new(kind)
    for path, text in scenario.before.items():
        world.place(path, text)
    return world, await run_tasks(world, scenario)


async def whole(world: GcsWorld, tasks: list[TaskCommit]) -> Driver:
    """Return a process that has committed the job, in another world like this one."""
    who = driver(world.copy(), NEW, "whole")
    await commit(NEW, who, tasks)
    return who


# --- a word of an earlier commit under the same id --------------------------------------------


async def said_late(kind: str, word: str) -> tuple[GcsWorld, list[Any]]:
    """Return a job that runs again after a rollback, of whose words one came late.

    Its new commit has moved the old file aside and its own in, and has died.
    """
    world, tasks = await prepared(kind)
    decides = write_of(await whole(world, tasks), "commit-outcome")
    first = driver(world, NEW, "first", crash=Crash(decides))
    await until_death(first, commit(NEW, first, tasks))
    probe = driver(world.copy(), NEW, "probe")
    await probe.job.rollback_job()
    late = Crash(write_of(probe, word), When.LATE, late=60.0)
    second = driver(world, NEW, "second", crash=late)
    await until_death(second, second.job.rollback_job())
    await driver(world, NEW, "third").job.rollback_job()
    assert seen(world) == BEFORE

    tasks = await run_tasks(world, NEW, "again")
    await asyncio.sleep(120)
    assert [word in path for path in words(world)] == [True]
    again = driver(world, NEW, "fourth", crash=Crash(decides))
    assert await until_death(again, told(commit(NEW, again, tasks))) is None
    assert seen(world) == AFTER
    return world, tasks


@pytest.mark.rotate("act")
@pytest.mark.parametrize("act", ["resume", "rollback", "commit"])
@pytest.mark.parametrize("word", ["/commit-owner-", "/commit-outcome", ".done"])
@pytest.mark.parametrize("kind", BUCKETS)
def test_a_word_of_an_earlier_commit(kind: str, word: str, act: str) -> None:
    """A commit is finished or undone whatever was said of another under its id."""

    async def main() -> None:
        world, tasks = await said_late(kind, word)
        last = driver(world, NEW, "last")
        acts: dict[str, Callable[[], Awaitable[Any]]] = {
            "resume": last.job.resume_job,
            "rollback": last.job.rollback_job,
            "commit": lambda: commit(NEW, last, tasks),
        }
        await patiently(world, acts[act])
        assert seen(world) == (BEFORE if act == "rollback" else AFTER)
        assert words(world) == []

    run_virtual(main())


def test_what_nobody_can_read_is_no_nothing() -> None:
    """An outcome that is damaged stops a resume, which does not say that nothing was changed."""

    async def main() -> None:
        world, tasks = await prepared()
        moves = write_of(await whole(world, tasks), "commit-outcome")
        first = driver(world, NEW, "first", crash=Crash(moves, When.AFTER))
        await until_death(first, commit(NEW, first, tasks))
        outcome = next(path for path in words(world) if "outcome" in path)
        world.place(outcome, "{}")

        said = await told(driver(world, NEW, "last").job.resume_job())
        assert isinstance(said, CommitError)
        assert not isinstance(said, PreflightError)
        assert outcome in str(said)
        assert "was changed" not in str(said)
        assert "A commit of this job has begun" in str(said)

    run_virtual(main())


# --- a record that came late ------------------------------------------------------------------


async def void(kind: str) -> tuple[GcsWorld, list[Any]]:
    """Return a job that is set up again after an abort; the record of before has come late."""
    world, tasks = await prepared(kind)
    begins = write_of(await whole(world, tasks), RECORD)
    first = driver(world, NEW, "first", crash=Crash(begins, When.LATE, late=30.0))
    await until_death(first, commit(NEW, first, tasks))
    await driver(world, NEW, "second").job.abort_job()
    tasks = await run_tasks(world, NEW, "again")
    await asyncio.sleep(60)
    assert words(world) == [RECORD]
    return world, tasks


async def beside(kind: str, act: str, request: int) -> list[str]:
    """Let an act stand still before a request, until a commit beside it has moved a file."""
    world, tasks = await void(kind)
    moves = write_of(await whole(world, tasks), "/tasks/")
    slow = driver(world, NEW, "slow", machine="one", stop=Suspension(request, 900.0))
    quick = driver(world, NEW, "quick", machine="two")

    async def wake() -> None:
        slow.process.awaken()
        await asyncio.sleep(30)

    quick.process.hooks[moves] = wake
    acting = slow.job.abort_job() if act == "abort" else commit(NEW, slow, tasks)
    running = asyncio.create_task(told(acting))
    await asyncio.sleep(20)
    assert slow.process.is_stopped
    committed = await told(commit(NEW, quick, tasks))
    slow.process.awaken()
    said = await running
    slow.process.kill()
    quick.process.kill()
    if isinstance(committed, LeaseLostError) or isinstance(said, LeaseLostError):
        return [f"{request}: two were the first owner, {said}, {committed}"]
    if not isinstance(committed, CommitError):
        return [] if seen(world) == AFTER else [f"{request}: {seen(world)}, {said}"]
    if not isinstance(said, CommitError) and act == "commit":
        return [] if seen(world) == AFTER else [f"{request}: {seen(world)}, {committed}"]
    await told(patiently(world, driver(world, NEW, "last").job.rollback_job))
    return [] if seen(world) == BEFORE else [f"{request}: {seen(world)}, {said}, {committed}"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("act", ["commit", "abort"])
@pytest.mark.parametrize("kind", BUCKETS)
def test_what_is_judged_is_what_is_deleted(kind: str, act: str) -> None:
    """Who finds a record that counts for nothing deletes that one, and no other that came since."""

    async def main() -> None:
        world, tasks = await void(kind)
        probe = driver(world, NEW, "probe")
        await (probe.job.abort_job() if act == "abort" else commit(NEW, probe, tasks))
        begins = probe.process.moments[write_of(probe, RECORD) - 1]
        for request in range(begins - 1, begins + 12):
            assert await beside(kind, act, request) == []

    run_virtual(main())


def test_a_job_is_aborted_while_its_record_is_looked_at() -> None:
    """A record that an abort has refused leaves no plan that would make a late one count."""

    async def main() -> None:
        world, tasks = await prepared()
        clean = await whole(world, tasks)
        begins = write_of(clean, RECORD)
        probe = driver(world.copy(), NEW, "probe")
        await probe.job.abort_job()
        listed, saved, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()
        stop = Suspension(clean.process.moments[begins - 1] + 1, 900.0)
        first, second = driver(world, NEW, "first", stop=stop), driver(world, NEW, "second")
        aborting: list[asyncio.Task[Any]] = []

        async def before_the_plan() -> None:
            aborting.append(asyncio.create_task(second.job.abort_job()))
            await listed.wait()

        async def before_its_deletes() -> None:
            listed.set()
            await saved.wait()

        async def before_the_record() -> None:
            saved.set()
            await refused.wait()

        async def before_the_place_is_free() -> None:
            refused.set()
            await asyncio.sleep(20)  # by then the first one has been refused, and stands still
            assert first.process.is_stopped

        first.process.hooks[write_of(clean, "commit-plan")] = before_the_plan
        first.process.hooks[begins] = before_the_record
        second.process.hooks[2] = before_its_deletes
        second.process.hooks[write_of(probe, f"delete {RECORD}")] = before_the_place_is_free
        said = await told(commit(NEW, first, tasks))
        await aborting[0]

        assert "the job was aborted" in str(said)
        assert words(world) == []

    run_virtual(main())


@pytest.mark.rotate("act")
@pytest.mark.parametrize("act", ["resume", "rollback"])
@pytest.mark.parametrize("ends", ["committed", "rolled back"])
@pytest.mark.parametrize("kind", BUCKETS)
def test_a_record_that_comes_to_half_a_clean_up(kind: str, ends: str, act: str) -> None:
    """The end says how the commit ended, so that the clean-up can be done."""

    async def main() -> None:
        world, tasks = await prepared(kind)
        moves = write_of(await whole(world, tasks), "/tasks/")
        record = b""

        async def run(name: str, crash: Crash | None, there: GcsWorld) -> Driver:
            nonlocal record
            dies = Crash(moves) if ends == "rolled back" else crash
            first = driver(there, NEW, f"first-{name}", crash=dies)

            async def keep() -> None:
                nonlocal record
                record = there.tree()[RECORD].data or b""

            first.process.hooks[moves] = keep
            await until_death(first, commit(NEW, first, tasks))
            if ends == "committed":
                return first
            second = driver(there, NEW, f"second-{name}", crash=crash)
            await until_death(second, second.job.rollback_job())
            return second

        probe = await run("probe", None, world.copy())
        cleans = write_of(probe, f"delete {RECORD}")
        await run("real", Crash(cleans + 2), world)
        assert [path.endswith(".done") for path in words(world)] == [True]
        world.service.insert(BUCKET, RECORD[1:], record)

        last = driver(world, NEW, "last")
        act_of = last.job.resume_job if act == "resume" else last.job.rollback_job
        said = await told(patiently(world, act_of))
        if ends == "committed" and act == "rollback":
            assert isinstance(said, CommittedError)
            await driver(world, NEW, "finally").job.resume_job()
        else:
            assert not isinstance(said, CommitError)
        assert seen(world) == (AFTER if ends == "committed" else BEFORE)
        assert words(world) == []

    run_virtual(main())


# --- a marker that is written twice -----------------------------------------------------------


@pytest.mark.parametrize("late", [0.2, 1.0, 3.0, 30.0])
def test_a_marker_whose_first_writing_comes_late(late: float) -> None:
    """What is moved to its place is the version that was written, whichever sending made it."""

    async def main() -> None:
        world, tasks = await prepared()
        rule = Fault("late", path=r"_SUCCESS.*\.tmp", times=1, delay=Latency("constant", late))
        world.storm(random.Random(0), Climate((rule,)))
        report = await commit(NEW, driver(world, NEW, "first"), tasks)
        assert world.weather is not None
        assert world.weather.struck.total() == 1
        assert report.warnings == ()
        assert seen(world) == AFTER
        assert f"{DEST}/_SUCCESS" in world.tree()

    run_virtual(main())


# --- another attempt of the job ---------------------------------------------------------------


TWICE = Scenario("twice", ({"p=1/f": "rows"},), {f"{DEST}/other": "x"})


def attempt(world: World, name: str, number: int) -> Driver:
    """Return a process of one attempt of the job."""
    who = driver(world, TWICE, name, machine=name)
    who.job.layout = replace(who.job.layout, attempt=number)
    return who


async def tasks_of(world: World, number: int) -> list[TaskCommit]:
    """Run the task of one attempt of the job, which writes a file of its own."""
    who = attempt(world, f"setup-{number}", number)
    await who.job.setup_job()
    task_id, attempt_id = who.job.layout.ids(0)
    base = await who.job.setup_task(attempt_id)
    place = base.removeprefix(world.address("/").path.rstrip("/"))
    world.place(f"{place}/p=1/of-{number}", "rows")
    made = await who.job.commit_task(task_id, attempt_id)
    who.process.kill()
    return [made]


async def woken(kind: str, number: int, *, dies: bool = False) -> list[str]:
    """Let attempt 1 stand still before a write, while attempt 0 writes its record and goes on.

    Returns what is wrong then; ``["done"]`` if there is no such write.
    """
    world = new_world(kind)
    world.place(f"{DEST}/other", "x")
    old, new = await tasks_of(world, 0), await tasks_of(world, 1)
    probe = attempt(world.copy(), "probe", 0)
    await commit(TWICE, probe, old)
    begins = write_of(probe, "commit-record")

    crash = Crash(begins + 1) if dies else None
    first, second = attempt(world, "first", 0), attempt(world, "second", 1)
    first.process.crash = crash
    reached, go = asyncio.Event(), asyncio.Event()
    running: list[asyncio.Task[Any]] = []

    async def hold() -> None:
        reached.set()
        await go.wait()

    async def let_the_other() -> None:
        running.append(asyncio.create_task(told(commit(TWICE, second, new))))
        running[0].add_done_callback(lambda _: reached.set())
        await reached.wait()

    second.process.hooks[number] = hold
    first.process.hooks[begins] = let_the_other
    said = [await until_death(first, told(commit(TWICE, first, old)))]
    go.set()
    said.append(await running[0])
    if number > len(second.process.writes):
        return ["done"]
    second.process.kill()
    for again in (0, 1):  # whoever goes on afterwards
        who = attempt(world, f"again-{again}", again)
        await told(patiently(world, who.job.resume_job))
    rows = [path for path in seen(world) if path != "other"]
    told_of = [path for path in rows if path != "p=1/of-1"]
    if any(not isinstance(report, CommitError) for report in said[1:]) and told_of:
        return [f"{kind}, write {number}: attempt 1 is committed, and there is {told_of}"]
    return [] if len(rows) <= 1 else [f"{kind}, write {number}: {rows}, {said}"]


@pytest.mark.every(3)
@pytest.mark.sample(2)
@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_older_attempt_wakes_beside_a_later_one(kind: str, dies: bool) -> None:
    """Wherever in its commit or clean-up the later one is, no row is there twice."""

    async def main() -> None:
        for number in range(1, 100):
            problems = await woken(kind, number, dies=dies)
            if problems == ["done"]:
                assert number > 5
                return
            assert problems == []

    run_virtual(main())

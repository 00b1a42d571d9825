"""What others do meanwhile: jobs of the same bytes, ids used again, late tasks, drivers that wake.

Nothing is deleted or overwritten that this job has not completed, and nobody is told more than is
true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from asynccommit.errors import (
    CommitError,
    DeniedError,
    PreflightError,
    RejectedError,
    UnfinishedError,
)
from asynccommit.options.job import Mode
from asynccommit.results import JobState
from asynccommit.testing.models.crashes import Crash, Suspension, When
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash.test_uploads_points import until_death
from tests.support.faults import Fault, Faults
from tests.support.upload_jobs import (
    BESIDE,
    JOB,
    OTHER,
    ROOT,
    Driver,
    Scenario,
    World,
    commit,
    commit_task,
    committer,
    driver,
    run_tasks,
)

OWN = Scenario("own", ({"p=1/a": "hello world", "b": "x"},))
AGAIN = replace(OWN, options={"delete_target_files": True})
ASLEEP = 100.0
Act = Callable[[Driver], Awaitable[Any]]


def seen(world: World) -> dict[str, bytes]:
    """Return what readers see."""
    files = world.state().files
    return {path: data for path, data in files.items() if "__magic" not in path and "/t/" in path}


async def whole(world: World, scenario: Scenario, job_id: str) -> None:
    """Run a job from its tasks to its end."""
    tasks = run_tasks(world, scenario, job_id)
    await commit(scenario, driver(world, scenario, f"whole-{job_id}", job_id=job_id), tasks)


async def cut_short(world: World, scenario: Scenario, after: str, job_id: str = JOB) -> None:
    """Run a job whose driver dies right after its first write of some kind."""
    tasks = run_tasks(world, scenario, job_id)
    there = world.copy()
    probe = driver(there, scenario, f"probe-{job_id}", job_id=job_id)
    await commit(scenario, probe, tasks)
    write = next(at for at, text in enumerate(probe.process.writes, 1) if after in text)
    who = driver(world, scenario, f"dies-{job_id}", crash=Crash(write, When.AFTER), job_id=job_id)
    await until_death(who, commit(scenario, who, tasks))


async def requests_of(world: World, scenario: Scenario, act: Act) -> int:
    """Return how many requests an act takes that nobody disturbs."""
    who = driver(world.copy(), scenario, "undisturbed")
    await act(who)
    return who.process.requests


async def told(act: Awaitable[Any]) -> str:
    """Return what an act says, or its error."""
    try:
        return repr(await act)
    except CommitError as error:
        return str(error)


# --- whose file it is --------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("after", ["commit-record", "commit-start"])
def test_a_rollback_run_twice_after_a_run_of_the_same_bytes(after: str, tokens: bool) -> None:
    """Files of the night before stay when a repeat that completed nothing is rolled back."""

    async def run() -> tuple[Any, Any]:
        world, scenario = World.new(), replace(AGAIN, tokens=tokens)
        await whole(world, scenario, OTHER)
        before = seen(world)
        await cut_short(world, scenario, after)
        first = driver(world, scenario, "back", crash=Crash(3, When.AFTER))
        await until_death(first, first.job.rollback_job())
        report = await driver(world, scenario, "back again").job.rollback_job()
        now = seen(world)
        marker = f"{ROOT}/_SUCCESS"
        now[marker] = now[marker].removesuffix(b"\n")
        return (now, report.not_restored), (before, ())

    now, wanted = run_virtual(run())
    assert now == wanted


@pytest.mark.parametrize("tokens", [True, False])
def test_lost_answers_of_a_rollback(tokens: bool) -> None:
    """Another job's files of the same bytes stay, whatever becomes of the aborts' answers."""

    async def run() -> tuple[Any, Any]:
        world, scenario = World.new(), replace(OWN, tokens=tokens, committer="directory")
        await cut_short(world, scenario, "commit-start")
        await asyncio.sleep(5)
        await whole(world, scenario, OTHER)
        before = seen(world)
        gone = [(f"/{u.key}", u.upload_id) for u in world.bucket.uploads.open.values()]
        back = committer(world, scenario, _AbortedBefore(world, gone))
        await back.rollback_job()
        return seen(world), before

    now, before = run_virtual(run())
    assert now == before


class _AbortedBefore:
    """A policy under which every abort is done, and then answered that there is no upload."""

    def __init__(self, world: World, uploads: list[tuple[str, str]]) -> None:
        self.world, self.uploads = world, uploads

    def around(self, call: Any) -> Any:
        """See ``Policy.around``."""

        async def around(op: Any) -> Any:
            if op.name == "abort_upload" and op.args in self.uploads:
                self.uploads.remove(op.args)
                await call(op)
            return await call(op)

        return around


def test_a_rollback_that_wakes() -> None:
    """A rollback that stood still deletes nothing of the job that was run again since."""

    async def run() -> list[int]:
        base = World.new()
        await cut_short(base, OWN, "complete_upload")

        async def back(who: Driver) -> Any:
            return await who.job.rollback_job()

        lost = []
        for request in range(1, await requests_of(base, OWN, back) + 1):
            world = base.copy()
            sleeper = driver(world, OWN, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(back(sleeper)))
            await asyncio.sleep(ASLEEP / 2)
            await told(back(driver(world, OWN, "second")))
            await whole(world, OWN, OTHER)
            before = seen(world)
            await task
            if seen(world) != before:
                lost.append(request)
        return lost

    # What is left is one request: the deletion itself, of a file of just the same bytes.
    assert len(run_virtual(run())) <= 1


def test_an_abort_that_tells_nothing() -> None:
    """On a service that says yes to the abort of a completed upload all is taken back as well."""

    async def run() -> dict[str, bytes]:
        world = World.new(abort_tells=False)
        world.place(f"{ROOT}/b", "precious")
        await cut_short(world, AGAIN, "complete_upload")
        await driver(world, AGAIN, "back").job.rollback_job()
        return seen(world)

    assert run_virtual(run()) == {f"{ROOT}/b": b"precious"}


# --- ids that are used again -------------------------------------------------------------------

OLD = Scenario("old", ({"p=1/a": "hello world", "b": "x"},))
NEW = Scenario(
    "new",
    ({"m": "y", "p=1/n": "night two", "o": "zz"},),
    {f"{ROOT}/m": "precious"},
    options={"delete_target_files": True},
)
ACTS: dict[str, Act] = {
    "abort": lambda who: who.job.abort_job(),
    "rollback": lambda who: who.job.rollback_job(),
    "commit": lambda who: who.job.commit_job(),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ACTS)
def test_an_end_that_wakes_in_the_next_night(name: str) -> None:
    """Whoever wakes in its clean-up takes neither copies nor uploads of a job of the same id."""

    async def run() -> list[str]:
        base = World.new()
        base.place(f"{ROOT}/m", "precious")
        if name == "rollback":
            await cut_short(base, OLD, "complete_upload")
        else:
            run_tasks(base, OLD)
        problems = []
        for request in range(1, await requests_of(base, OLD, ACTS[name]) + 1):
            problems += await _next_night(base.copy(), request, ACTS[name])
        return problems

    assert run_virtual(run()) == []


async def _next_night(world: World, request: int, act: Act) -> list[str]:
    sleeper = driver(world, OLD, "sleeper", stop=Suspension(request, ASLEEP))
    task = asyncio.create_task(told(act(sleeper)))
    await asyncio.sleep(ASLEEP / 2)
    await told(act(driver(world, OLD, "second")))
    night = driver(world, NEW, "night")
    if not await _sets_up(night):
        task.cancel()
        return []
    tasks = run_tasks(world, NEW)
    probe = driver(world.copy(), NEW, "probe of the night")
    await commit(NEW, probe, tasks)
    write = next(i for i, text in enumerate(probe.process.writes, 1) if "complete_upload" in text)
    who = driver(world, NEW, "of the night", crash=Crash(write, When.AFTER))
    await until_death(who, commit(NEW, who, tasks))
    await task
    await told(driver(world, NEW, "back").job.rollback_job())
    there = seen(world)
    # One that slept before it knew anything finishes the commit that it finds under its id.
    complete = all(there.get(f"{ROOT}/{name}") == b.encode() for name, b in NEW.tasks[0].items())
    kept = there.get(f"{ROOT}/m")
    return [] if kept == b"precious" or complete else [f"asleep at {request}: m is {kept!r}"]


async def _sets_up(who: Driver) -> bool:
    try:
        await who.job.setup_job()
    except CommitError:
        return False
    return True


# --- late tasks and drivers --------------------------------------------------------------------


@pytest.mark.parametrize("end", ["commit", "abort", "rollback"])
def test_a_zombie_of_a_task(end: str) -> None:
    """A set that is written after the job's end is not committed by whoever repeats the commit."""

    async def run() -> tuple[Any, Any]:
        world = World.new()
        if end == "rollback":
            await cut_short(world, OWN, "complete_upload")
        else:
            run_tasks(world, OWN)
        await ACTS[end](driver(world, OWN, "ends it"))
        before = seen(world)
        commit_task(world, OWN.layout(), 0, {"p=1/zombie": "late"}, attempt=1)
        with pytest.raises(PreflightError):
            await driver(world, OWN, "again").job.commit_job()
        return seen(world), before

    now, before = run_virtual(run())
    assert now == before


def test_the_same_messages_after_a_zombie() -> None:
    """A commit that is repeated with its messages is done already, whatever lies there since."""

    async def run() -> bool:
        world = World.new()
        tasks = run_tasks(world, OWN)
        await commit(OWN, driver(world, OWN, "first"), tasks)
        commit_task(world, OWN.layout(), 0, {"p=1/zombie": "late"}, attempt=1)
        return (await commit(OWN, driver(world, OWN, "again"), tasks)).already_committed

    assert run_virtual(run())


def test_an_abort_that_is_cut_short() -> None:
    """What an abort leaves at any of its writes is not committed as a job without files."""

    async def run() -> list[int]:
        table = replace(OWN, mode=Mode.REPLACE_TABLE)
        base = World.new()
        base.place(f"{ROOT}/p=9/precious", "precious")
        run_tasks(base, table)
        probe = driver(base.copy(), table, "probe")
        await probe.job.abort_job()
        bad = []
        for write in range(1, len(probe.process.writes) + 1):
            world = base.copy()
            who = driver(world, table, "dies", crash=Crash(write, When.AFTER))
            await until_death(who, who.job.abort_job())
            again = driver(world, table, "commits")
            await told(again.job.commit_job(mode=table.mode))
            if seen(world) not in ({f"{ROOT}/p=9/precious": b"precious"},):
                bad.append(write)
        return bad

    assert run_virtual(run()) == []


def test_a_driver_that_wakes_after_its_decision() -> None:
    """It neither deletes a later job's file of the same bytes, nor replaces its marker."""
    old = Scenario("old", ({"p=1/x": "same bytes", "y": "y"},))
    table = Scenario("table", ({"m": "new m"},), mode=Mode.REPLACE_TABLE)
    later = Scenario("later", ({"p=1/x": "same bytes", "z": "z"},))

    async def run() -> list[tuple[int, list[str]]]:
        base = World.new()
        await whole(base, old, JOB[:-1] + "8")
        tasks, after = run_tasks(base, table), run_tasks(base, later, OTHER)
        bad = []
        count = await requests_of(base, table, lambda who: commit(table, who, tasks))
        for request in range(count // 2, count + 1):
            world = base.copy()
            sleeper = driver(world, table, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(commit(table, sleeper, tasks)))
            await asyncio.sleep(ASLEEP / 2)
            await told(commit(table, driver(world, table, "second"), tasks))
            await told(commit(later, driver(world, later, "later", job_id=OTHER), after))
            before = seen(world)
            await task
            now = seen(world)
            if f"{ROOT}/z" in before and now != before:
                bad.append((request, [path for path in before if now.get(path) != before[path]]))
        return bad

    # What is left is one request: the deletion itself.
    found = run_virtual(run())
    assert len(found) <= 1
    assert [paths for _, paths in found] in ([], [[f"{ROOT}/p=1/x"]])


# --- other jobs --------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", [Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS, Mode.FAIL])
def test_a_whole_commit_while_another_prepares(mode: Mode) -> None:
    """Of a job that commits between two requests of a replacing one all or none stays."""
    mine = Scenario("mine", ({"p=1/mine": "m", "p=2/mine": "m"},), mode=mode)
    other = Scenario("other", ({f"p={at % 2 + 1}/{n}": "x" for at, n in enumerate("aBcDnopz")},))
    other = replace(other, mode=Mode.FAIL if mode is Mode.FAIL else Mode.APPEND)

    async def run() -> list[int]:
        base = World.new(page=4)
        for name in "dk" if mode is not Mode.FAIL else "":
            base.place(f"{ROOT}/p=1/{name}", "old")
            base.place(f"{ROOT}/p=2/{name}", "old")
        tasks, theirs = run_tasks(base, mine), run_tasks(base, other, OTHER)
        bad = []
        for request in range(1, await requests_of(base, mine, lambda w: commit(mine, w, tasks))):
            world = base.copy()
            sleeper = driver(world, mine, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(commit(mine, sleeper, tasks)))
            await asyncio.sleep(ASLEEP / 2)
            they = driver(world, other, "other", job_id=OTHER)
            second = await told(commit(other, they, theirs))
            first = await task
            there = seen(world).keys()
            both = "JobReport" in first and "JobReport" in second
            left = len(there & other.files.keys())
            if both and (mode is Mode.FAIL or left not in (0, 8)):
                bad.append(request)
        return bad

    assert run_virtual(run()) == []


@pytest.mark.parametrize("tmp", [BESIDE, "/tmp/alice"])
def test_a_staging_job_that_dies_and_another(tmp: str) -> None:
    """Of two that replace the table all of one stays, wherever the first one dies."""
    mine = Scenario("mine", ({"p=1/x": "A", "a": "A"},), mode=Mode.REPLACE_TABLE)
    mine = replace(mine, committer="directory", tmp=tmp, options={"delete_target_files": True})
    other = replace(mine, name="other", tasks=({"p=1/x": "B", "b": "B"},), committer="partitioned")

    async def run() -> list[int]:
        base = World.new()
        base.place(f"{ROOT}/old", "old")
        tasks, theirs = run_tasks(base, mine), run_tasks(base, other, OTHER)
        probe = driver(base.copy(), mine, "probe")
        await commit(mine, probe, tasks)
        torn = []
        for write in range(1, len(probe.process.writes) + 1):
            world = base.copy()
            who = driver(world, mine, "dies", crash=Crash(write, When.AFTER))
            await until_death(who, commit(mine, who, tasks))
            await told(commit(other, driver(world, other, "other", job_id=OTHER), theirs))
            await told(driver(world, mine, "resumes").job.resume_job())
            own = f"{ROOT}/_"
            there = {path: text for path, text in seen(world).items() if not path.startswith(own)}
            if there not in [{p: t.encode() for p, t in s.files.items()} for s in (mine, other)]:
                torn.append(write)
        return torn

    assert run_virtual(run()) == []


def test_a_record_that_is_withdrawn() -> None:
    """A driver that takes its record back, and one that goes on with it, do not both have it."""

    async def run() -> list[str]:
        table = Scenario("table", ({"m": "m", "n": "n"},), mode=Mode.REPLACE_TABLE)
        base = World.new()
        base.place(f"{ROOT}/old", "old")
        tasks = run_tasks(base, table)
        problems = []
        for request in range(15, 45):
            world = base.copy()
            sleeper = driver(world, table, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(commit(table, sleeper, tasks)))
            await asyncio.sleep(ASLEEP / 2)
            await cut_short(world, OWN, "commit-record", OTHER)
            second = await told(commit(table, driver(world, table, "second"), tasks))
            first = await task
            visible = f"{ROOT}/m" in seen(world)
            said = "JobReport" in first or "JobReport" in second
            record = table.layout().record in world.state().files
            if visible and not said and not record:
                problems.append(f"{request}: {first} / {second}")
        return problems

    assert run_virtual(run()) == []


# --- what is overwritten, and what is said -----------------------------------------------------


def test_a_commit_that_stands_still_before_it_overwrites() -> None:
    """What another has written since the plan was made is never overwritten without a copy."""
    scenario = Scenario("m", ({"m": "new m"},), options={"delete_target_files": True})

    async def run() -> list[int]:
        base = World.new()
        base.place(f"{ROOT}/m", "old m")
        tasks = run_tasks(base, scenario)
        bad = []
        count = await requests_of(base, scenario, lambda who: commit(scenario, who, tasks))
        for request in range(1, count + 1):
            world = base.copy()
            who = driver(world, scenario, "sleeper", stop=Suspension(request, ASLEEP))
            task = asyncio.create_task(told(commit(scenario, who, tasks)))
            await asyncio.sleep(ASLEEP / 2)
            begun = scenario.layout().record in world.state().files
            world.place(f"{ROOT}/m", "of another")
            await task
            if begun and b"of another" not in world.state().files.values():
                bad.append(request)
        return bad

    assert run_virtual(run()) == []


@pytest.mark.parametrize("act", ["commit", "resume"])
async def test_a_record_that_cannot_be_read(act: str) -> None:
    """Nobody is told that nothing has changed while nobody knows."""
    world = World.new()
    tasks = run_tasks(world, OWN)
    world.bucket.put(OWN.layout().record[1:], b"of a commit")
    denied = Faults(Fault("get", DeniedError, OWN.layout().record))
    job = committer(world, OWN, denied)
    with pytest.raises(CommitError, match="unknown") as caught:
        await (job.commit_job(tasks) if act == "commit" else job.resume_job())

    assert not isinstance(caught.value, PreflightError)


def test_a_server_that_passes_conditions_over() -> None:
    """Where it is not known that conditions are kept, one that does not is refused at once."""

    async def run() -> dict[str, bytes]:
        world = World.new(conditional_writes=False)
        tasks = run_tasks(world, OWN)
        job = committer(world, OWN, known=False)
        with pytest.raises(PreflightError, match="ignores the condition") as caught:
            await job.commit_job(tasks)
        assert isinstance(caught.value.failures[0], RejectedError)
        return seen(world)

    assert run_virtual(run()) == {}


def test_a_commit_that_another_host_has_begun() -> None:
    """One that says nothing for an hour counts as cut short."""

    async def run() -> list[JobState]:
        world = World.new()
        await cut_short(world, OWN, "commit-start", OTHER)
        found = []
        for wait in (0.0, 4_000.0):
            await asyncio.sleep(wait)
            job = committer(world, OWN)
            job.host = replace(job.host, name="driver-1")
            found += [status.state for status in await job.job_statuses()]
        with pytest.raises(UnfinishedError):
            await job.check_job()
        return found

    assert run_virtual(run()) == [JobState.COMMITTING, JobState.EXPIRED]


@pytest.mark.parametrize("marker", [True, False])
def test_files_that_options_keep(marker: bool) -> None:
    """A finished job whose files are kept is no unfinished one."""
    kept = replace(OWN, options={"cleanup_skipped": True, "mark_success": marker})

    async def run() -> list[JobState]:
        world = World.new()
        await whole(world, kept, OTHER)
        return [status.state for status in await committer(world, OWN).job_statuses()]

    assert run_virtual(run()) == [JobState.ENDED]

"""What is done after a crash, and what must be true then."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, CommittedError, OwnedError
from asynccommit.testing.models.crashes import Crash, When
from asynccommit.testing.models.invariants import (
    Item,
    Tree,
    complete,
    exclusive,
    is_temporary,
    named_in_vain,
    no_leftovers,
    refused,
    restored,
    same,
    untouched,
    within,
)
from tests.crash.jobs import (
    JOB,
    JOB_DIR,
    REPORTS,
    Driver,
    Scenario,
    commit,
    driver,
    expected,
    run_tasks,
)
from tests.crash.worlds import new_world
from tests.support.crashes import DEST, ModelWorld, World

T = TypeVar("T")
ATTEMPT_DIR = f"{JOB_DIR}/00"
TRIES = 8


async def until_death(who: Driver, act: Awaitable[T]) -> T | None:
    """Return what ``act`` gives, ``None`` if the process died on the way."""
    try:
        return await act
    except BaseException:
        if not who.process.dead:
            raise
        return None


@dataclass(frozen=True)
class Job:
    """A job whose tasks have committed, and both ways in which it can end.

    Attributes:
        scenario: what it is.
        tasks: the commit messages.
        files: what it commits.
        before: the tree before the job.
        wanted: the tree that an undisturbed run ends with.
        words: whether late requests may leave words.
    """

    scenario: Scenario
    tasks: list[TaskCommit]
    files: Tree
    before: Tree
    wanted: Tree
    words: bool = False

    @property
    def apart(self) -> tuple[str, ...]:
        """Where each try may leave something of its own: reports, and what nobody cleans up."""
        skipped = self.scenario.options.get("cleanup_skipped")
        return (REPORTS, f"{DEST}/_temporary") if skipped else (REPORTS,)

    def committed(self, tree: Tree, *, late: bool = False) -> list[str]:
        """Return how ``tree`` differs from that of an undisturbed run; ``late`` allows rubbish."""
        # Without a marker nobody can tell that a job is committed once its directory is deleted.
        blind = late or not self.scenario.options.get("mark_success", True)
        problems = same(self.wanted, swept(tree), self.apart, late=blind, words=self.words)
        problems += complete(tree, self.files)
        kept = {path: self.before[path] for path in self.scenario.kept}
        problems += untouched(kept, tree)
        problems += exclusive(tree, DEST, [*kept, *self.files])
        if not self.scenario.options.get("cleanup_skipped"):
            problems += no_leftovers(tree, JOB_DIR, late=blind, words=self.words)
        if self.apart and REPORTS in self.wanted and not _reports(tree):
            problems.append("there is no report")
        return problems

    def undone(self, tree: Tree, *, made: bool = False, late: bool = False) -> list[str]:
        """Return how ``tree`` differs from that before the job; ``late`` allows rubbish.

        With ``made`` the destination may be there though the job made it: who knew that is dead.
        """
        there = dict(swept(tree))
        if (
            made
            and DEST not in self.before
            and not any(within(path, (DEST,)) for path in there if path != DEST)
        ):
            there.pop(DEST, None)
        return restored(self.before, there, self.apart, late=late, words=self.words)

    def neither(self, tree: Tree) -> list[str]:
        """Return how ``tree`` differs from the more alike of both ends, rubbish allowed."""
        undone, committed = self.undone(tree, made=True, late=True), self.committed(tree, late=True)
        if not (undone and committed):
            return []
        return [f"neither whole nor undone: {min(undone, committed, key=len)[:4]}"]


_MARKER = f"{DEST}/_SUCCESS"


def swept(tree: Tree) -> Tree:
    """Return ``tree`` without what a write that was cut short leaves beside our places."""
    return {
        path: item
        for path, item in tree.items()
        if not (is_temporary(path) and item.data is not None and not within(path, (DEST,)))
    }


def _reports(tree: Tree) -> list[str]:
    return [path for path in tree if path.startswith(f"{REPORTS}/summary-job")]


def has_begun(tree: Tree) -> bool:
    """Whether there is a commit record."""
    return f"{ATTEMPT_DIR}/commit-record.json" in tree


def has_tasks(tree: Tree) -> bool:
    """Whether FileOutputCommitter's committed tasks are there, and no abort has begun."""
    place = f"{DEST}/_temporary/0/task_{JOB.removeprefix('job_')}_"
    whole = f"{ATTEMPT_DIR}.aborted" not in tree
    return whole and any(path.startswith(place) for path in tree)


def decision(tree: Tree) -> str:
    """Return what was decided for the job, ``""`` if nothing was."""
    record = tree.get(f"{ATTEMPT_DIR}/commit-record.json", Item())
    commit_id = hashlib.sha256(record.data or b"").hexdigest()
    names = ("commit-outcome.json", f"commit-outcome-{commit_id[:12]}.json")
    said = [item.data for name in names if (item := tree.get(f"{ATTEMPT_DIR}/{name}")) is not None]
    return str(json.loads(said[0])["outcome"]) if said and said[0] else ""


async def patiently(world: World, act: Callable[[], Awaitable[T]]) -> T:
    """Act as soon as nobody else is said to be the owner."""
    for _ in range(TRIES):
        try:
            return await act()
        except OwnedError:
            await asyncio.sleep(100)
    return await act()


async def ready(scenario: Scenario, kind: str = "adls") -> tuple[Job, ModelWorld]:
    """Return a job whose tasks have committed, in one of the worlds."""
    world = new_world(kind)
    for path, text in scenario.before.items():
        world.place(path, text)
    before = world.tree()
    tasks = await run_tasks(world, scenario)
    files = expected(world.tree(), scenario)
    end = world.copy()
    await commit(scenario, driver(end, scenario, "undisturbed"), tasks)
    return Job(scenario, tasks, files, before, end.tree(), world.words), world


class Hand:
    """Somebody who acts on a job after a crash, each time in a fresh process.

    Args:
        job: the job.
        world: where it is.
        name: a prefix of the names of the processes.
    """

    def __init__(self, job: Job, world: World, name: str) -> None:
        self.job = job
        self.world = world
        self.name = name
        self._acts = 0

    def driver(self, crash: Crash | None = None) -> Driver:
        """Return a fresh process."""
        self._acts += 1
        return driver(self.world, self.job.scenario, f"{self.name}{self._acts}", crash=crash)

    async def act(self, name: str, who: Driver | None = None) -> Any:
        """Resume the job, roll it back, or commit it again with the same messages.

        A fresh process does it unless one is given, and has ended afterwards.
        """
        actor = who or self.driver()
        # What a clean-up has left that was cut short sends no heartbeats any more.
        unknown = not has_begun(self.world.tree())
        acts: dict[str, Callable[[], Awaitable[Any]]] = {
            "resume": actor.job.resume_job,
            "rollback": lambda: actor.job.rollback_job(force=unknown),
            "commit": lambda: commit(self.job.scenario, actor, self.job.tasks),
        }
        try:
            return await patiently(self.world, acts[name])
        finally:
            actor.process.kill()

    async def end(self, name: str) -> list[str]:
        """Do one of the three, and return what is then not as it should be."""
        tree = self.world.tree()
        begun, decided = has_begun(tree), decision(tree)
        try:
            report = await self.act(name)
        except CommittedError:
            return self._refused(tree, decided) + await self._resumed()
        except CommitError as error:
            return await self._nothing_begun(name, tree, begun, error)
        back = name == "rollback" or bool(getattr(report, "rolled_back", False))
        if back and self._is_unknown(tree):
            return self.job.committed(self.world.tree())
        problems = self._ended(back, begun, decided)
        problems += self._told(report) if back else []
        return problems or await self._again(name, back)

    def _is_unknown(self, tree: Tree) -> bool:
        """Whether the job is committed and cleaned up, and no marker says so."""
        marked = self.job.scenario.options.get("mark_success", True)
        held = [path for path, item in tree.items() if item.data is not None]
        ended = not any(within(path, (ATTEMPT_DIR,)) for path in held)
        return not marked and ended and not complete(tree, self.job.files)

    def _ended(self, back: bool, begun: bool, decided: str) -> list[str]:
        tree = self.world.tree()
        if decided == "committed" and back:
            return ["it was decided to commit, and rolled back"]
        if decided == "rollback" and not back:
            return ["it was decided to roll back, and committed"]
        return self.job.undone(tree, made=not begun) if back else self.job.committed(tree)

    def _told(self, report: Any) -> list[str]:
        """Check what a rollback says that it has left; nobody else was here."""
        left = [self._bare(path) for path in report.not_restored]
        problems = named_in_vain(self.job.before, self.world.tree(), left)
        return problems or [f"{path} was left" for path in left]

    def _bare(self, path: str) -> str:
        """Return the path of the scenario for one on the store."""
        return path.removeprefix(self.world.address("/").path.rstrip("/"))

    def _refused(self, before: Tree, decided: str) -> list[str]:
        """Check a rollback that was refused because the job is committed."""
        marker = before.get(_MARKER)
        marked = marker is not None and marker != self.job.before.get(_MARKER)
        problems = (
            []
            if decided == "committed" or marked or not has_begun(before)
            else ["a rollback was refused, and the job is not committed"]
        )
        return problems

    async def _resumed(self) -> list[str]:
        """Check that what could not be rolled back can be finished."""
        with suppress(CommitError):  # all is over
            await self.act("resume")
        return self.job.committed(self.world.tree())

    async def _nothing_begun(
        self, name: str, before: Tree, begun: bool, error: CommitError
    ) -> list[str]:
        """Check an act that was refused because no commit had begun, or all is over."""
        after = self.world.tree()
        if begun:
            return [f"{name} failed: {type(error).__name__}: {error}"]
        problems = refused(before, after, DEST, self.job.apart) + same(
            before, after, self.job.apart
        )
        if problems or not self.job.committed(after):
            return problems
        if f"{ATTEMPT_DIR}/manifests" in after or has_tasks(after):
            await self.act("commit")
            return self.job.committed(self.world.tree())
        await self.act("rollback")
        return self.job.undone(self.world.tree(), made=True, late=self.world.words)

    async def _again(self, name: str, back: bool) -> list[str]:
        """Check that a second time changes nothing, whatever it answers."""
        before = self.world.tree()
        with suppress(CommitError):
            await self.act(name)
        if self.job.scenario.options.get("cleanup_skipped"):
            return (
                self.job.undone(self.world.tree())
                if back
                else self.job.committed(self.world.tree())
            )
        return [f"again: {text}" for text in same(before, self.world.tree(), self.job.apart)]


def places(count: int, *, once: bool = False) -> list[Crash]:
    """Return every way to die in a run of so many writes.

    Args:
        count: of the writes.
        once: before a write is after the one before it, as long as nothing else happens: leave
            out what leaves the same behind.
    """
    whens = (When.AFTER,) if once else (When.BEFORE, When.AFTER)
    first = [Crash(1, When.BEFORE)] if once and count else []
    return first + [Crash(write, when) for write in range(1, count + 1) for when in whens]


def state(tree: Tree) -> int:
    """Return what tells two trees apart."""
    return hash(frozenset(tree.items()))

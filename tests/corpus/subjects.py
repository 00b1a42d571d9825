"""Work that dies half-way, and what ends it: jobs, moves, and jobs of uploads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.engine import BulkError
from asynccommit.errors import AsyncCommitError
from asynccommit.testing.models.crashes import Crash, Process
from tests.crash import jobs, moves, recovery, test_uploads_points
from tests.crash import scenarios as of_jobs
from tests.crash.test_file_points import SCENARIOS as OF_FILE_OUTPUT
from tests.crash.test_journaled_moves import SCENARIOS as OF_MOVES
from tests.crash.test_uploads_points import SCENARIOS as OF_UPLOADS
from tests.support import upload_jobs
from tests.support.crashes import DEST

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Subject(ABC):
    """A kind of work.

    Attributes:
        acts: the ways to end it.
        name: of the work.
        apart: places where each try leaves something of its own.
    """

    acts: ClassVar[tuple[str, ...]]
    name: str
    apart: tuple[str, ...]

    @abstractmethod
    async def prepare(self, world: Any) -> Messages:
        """Put what is there before, and return the commit messages of the tasks."""

    @abstractmethod
    async def begin(self, world: Any, messages: Messages, crash: Crash | None) -> Process:
        """Do the work until it ends, or the process dies; return the process."""

    @abstractmethod
    async def end(self, world: Any, messages: Messages, act: str) -> str:
        """Act after a death, in a process of its own; return ``done`` or the error's name."""


async def _answer(act: Callable[[], Awaitable[object]]) -> str:
    try:
        await act()
    except (AsyncCommitError, BulkError) as error:
        return type(error).__name__
    return "done"


@dataclass(frozen=True)
class Job(Subject):
    """A job commit by renames."""

    acts = ("resume", "rollback", "commit")
    scenario: jobs.Scenario

    @classmethod
    def of(cls, scenario: jobs.Scenario) -> Job:
        """Return the job of a scenario."""
        skipped = scenario.options.get("cleanup_skipped")
        apart = (jobs.REPORTS, f"{DEST}/_temporary") if skipped else (jobs.REPORTS,)
        return cls(str(scenario), apart, scenario)

    async def prepare(self, world: Any) -> Messages:
        """See ``Subject.prepare``."""
        for path, text in self.scenario.before.items():
            world.place(path, text)
        return [task.to_json() for task in await jobs.run_tasks(world, self.scenario)]

    async def begin(self, world: Any, messages: Messages, crash: Crash | None) -> Process:
        """See ``Subject.begin``."""
        who = jobs.driver(world, self.scenario, "first", crash=crash)
        tasks = [TaskCommit.from_json(task) for task in messages]
        await recovery.until_death(who, jobs.commit(self.scenario, who, tasks))
        return who.process

    async def end(self, world: Any, messages: Messages, act: str) -> str:
        """See ``Subject.end``."""
        tasks = [TaskCommit.from_json(task) for task in messages]
        job = recovery.Job(self.scenario, tasks, {}, {}, {})
        return await _answer(lambda: recovery.Hand(job, world, "second").act(act))


@dataclass(frozen=True)
class Move(Subject):
    """A move with a journal."""

    acts = ("finish", "undo")
    move: moves.Move

    async def prepare(self, world: Any) -> Messages:
        """See ``Subject.prepare``."""
        self.move.place(world)
        return []

    async def begin(self, world: Any, messages: Messages, crash: Crash | None) -> Process:
        """See ``Subject.begin``."""
        mover = moves.Mover.new(world, self.move, "first", crash)
        await mover.until_death(mover.begin)
        return mover.process

    async def end(self, world: Any, messages: Messages, act: str) -> str:
        """See ``Subject.end``."""
        mover = moves.Mover.new(world, self.move, "second")
        acts = {"finish": mover.finish, "undo": mover.undo}
        try:
            return await _answer(lambda: moves.patiently(acts[act]))
        finally:
            await mover.store.aclose()


@dataclass(frozen=True)
class Uploads(Subject):
    """A job commit that completes uploads."""

    acts = ("resume", "rollback", "commit")
    scenario: upload_jobs.Scenario

    async def prepare(self, world: Any) -> Messages:
        """See ``Subject.prepare``."""
        for path, text in self.scenario.before.items():
            world.place(path, text)
        return [task.to_json() for task in upload_jobs.run_tasks(world, self.scenario)]

    async def begin(self, world: Any, messages: Messages, crash: Crash | None) -> Process:
        """See ``Subject.begin``."""
        who = upload_jobs.driver(world, self.scenario, "first", crash=crash)
        tasks = [TaskCommit.from_json(task) for task in messages]
        await test_uploads_points.until_death(who, upload_jobs.commit(self.scenario, who, tasks))
        return who.process

    async def end(self, world: Any, messages: Messages, act: str) -> str:
        """See ``Subject.end``."""
        who = upload_jobs.driver(world, self.scenario, "second")
        tasks = [TaskCommit.from_json(task) for task in messages]
        job = upload_jobs.Job(self.scenario, tasks, world.state())
        try:
            return await _answer(lambda: test_uploads_points.act(job, world, act, who))
        finally:
            who.process.kill()


JOBS = tuple(map(Job.of, (*of_jobs.SCENARIOS, of_jobs.DIRECTORIES)))
OF_FILES = tuple(map(Job.of, OF_FILE_OUTPUT))
MOVES = tuple(Move(f"move_{name}", (), move) for name, move in OF_MOVES.items())
UPLOADS = tuple(Uploads(str(one), (), one) for one in OF_UPLOADS)
SUBJECTS: Mapping[str, tuple[Subject, ...]] = {
    "adls": (*JOBS, *OF_FILES, *MOVES),
    "adls-format-2": (*JOBS, *OF_FILES),
    "hdfs": (*JOBS, *OF_FILES, *MOVES),
    "flat": (*JOBS, *MOVES),
    "hns": (*JOBS, *MOVES),
    "steps": (*JOBS, *MOVES),
    "s3": UPLOADS,
    "disk": (*JOBS, *OF_FILES, *MOVES),
}
"""The work that dies on each store; in ``adls-format-2`` a plan has a file of its own."""

"""A call of a clean-up fails, once or for ever: whoever comes next ends the job clean."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import CommitError, UnfinishedError
from asynccommit.options.job import Mode, Options
from asynccommit.runtime.host import this_host
from asynccommit.stores.local.files import translate
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import Address
from tests.cli.support import TASKS, Command
from tests.support.commits import paths_of, request_of
from tests.support.faults import Apart
from tests.support.jobs import JOB, left, run_task, visible, write
from tests.support.selection import amount, day

ERRORS = (errno.EIO, errno.ESTALE, errno.EBUSY, errno.EACCES, errno.EDQUOT)
OLD = {"day=1/old": "old"}
NEW = {name: text for files in TASKS for name, text in files.items()}
NEXT = {"day=9/next": "next"}
SHARED = ("_temporary/0", "_temporary/0/_temporary")
"""Empty directories of FileOutputCommitter, which any job may be about to use."""
FINISHERS = ("resume", "abort", "gc", "next")
ROUNDS = 6
FEWEST = 5
POINTS = amount("ASYNCCOMMIT_CLEAN_UPS", quick=2, full=1_000)
"""The number of failures that are tried for each clean-up."""


@dataclass
class Disk:
    """A policy that fails one call of a clean-up with an error of the disk.

    Attributes:
        begins: part of the request with which the clean-up begins; ``""`` for the first of all.
        at: the number of the call that fails; -1 for none.
        code: how.
        ever: the same call fails whenever it is made again.
        seen: the calls of the clean-up.
        strikes: how often one has failed.
    """

    begins: str
    at: int = -1
    code: int = errno.EIO
    ever: bool = False
    seen: list[Op] = field(default_factory=list)
    strikes: int = 0

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def failing(op: Op) -> Any:
            if self.seen or self.begins in " ".join(request_of(op)):
                self.seen.append(op)
                self._strike(op)
            return await call(op)

        return failing

    def _strike(self, op: Op) -> None:
        struck = len(self.seen) - 1 == self.at
        again = self.ever and 0 <= self.at < len(self.seen) and _same(op, self.seen[self.at])
        if struck or again:
            self.strikes += 1
            raise translate(op.name, op.path, OSError(self.code, os.strerror(self.code)))


def _same(one: Op, other: Op) -> bool:
    return (one.name, paths_of(one)) == (other.name, paths_of(other))


@dataclass(frozen=True)
class Case:
    """A clean-up: of what, and what the table has after it.

    Attributes:
        name: of the test case.
        begins: see ``Disk``.
        act: ends the job.
        after: the files of the table.
        cut: whether the commit was cut short before.
        classic: whether it is a job of FileOutputCommitter.
    """

    name: str
    begins: str
    act: Callable[[ManifestCommitter], Awaitable[Any]]
    after: Mapping[str, str]
    cut: Mode | None = None
    classic: bool = False

    def __str__(self) -> str:
        return self.name

    def job(self, dest: Path, *policies: Any) -> ManifestCommitter:
        """Return the committer of a process."""
        made, layout = (
            (FileV1Committer, FileLayout) if self.classic else (ManifestCommitter, Layout)
        )
        store = Wrapped(LocalStore(), Apart(), *policies)
        place = layout(Address("file", "", str(dest)), JOB)
        return made(store, place, Options(workers=1), this_host())

    async def prepare(self, dest: Path) -> None:
        """Leave the job as its tasks, and perhaps the first commit, leave it."""
        write(dest, OLD)
        job = self.job(dest)
        await job.setup_job()
        for number, files in enumerate(TASKS):
            await run_task(job, number, files)
        write(await job.setup_task(job.layout.ids(7, 3)[1]), {"day=1/lost": "failed"})
        await job.store.aclose()
        if self.cut is not None:
            disk = Disk(f" {dest}/day=2", 0)
            job = self.job(dest, disk)
            with pytest.raises(CommitError):
                await job.commit_job(mode=self.cut)
            assert disk.strikes
            await job.store.aclose()

    async def end(self, dest: Path, disk: Disk) -> None:
        """End the job on a failing disk."""
        job = self.job(dest, disk)
        with suppress(CommitError):
            await self.act(job)
        await job.store.aclose()


def _committing(mode: Mode) -> Callable[[ManifestCommitter], Awaitable[Any]]:
    return lambda job: job.commit_job(mode=mode)


def _resume(job: ManifestCommitter) -> Awaitable[Any]:
    return job.resume_job()


def _roll_back(job: ManifestCommitter) -> Awaitable[Any]:
    return job.rollback_job()


def _abort(job: ManifestCommitter) -> Awaitable[Any]:
    return job.abort_job("enough")


DECIDED = "commit-outcome"
CLOSED = ".done"
CASES = (
    Case("append", DECIDED, _committing(Mode.APPEND), OLD | NEW),
    Case("replace", DECIDED, _committing(Mode.REPLACE_TABLE), NEW),
    Case("classic", DECIDED, _committing(Mode.APPEND), OLD | NEW, classic=True),
    Case("resume", DECIDED, _resume, NEW, cut=Mode.REPLACE_TABLE),
    Case("rollback", CLOSED, _roll_back, OLD, cut=Mode.REPLACE_TABLE),
    Case("abort", "", _abort, OLD),
    Case("classic abort", "", _abort, OLD, classic=True),
)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command."""
    return Command(capsys)


def settle(run: Command, dest: Path, case: Case) -> list[str]:
    """Type what ``status`` prints until nothing is left to do; return what went wrong."""
    for _ in range(ROUNDS):
        seen = run.json("status", dest)
        jobs = [_command(job, case) for job in seen["jobs"]]
        typed = [*filter(None, jobs), *(one["command"] for one in seen["rubbish"])]
        if not typed and JOB in seen["classic"]:
            typed.append(f"asynccommit abort {dest} --committer file_v1 --force")
        if not typed:
            remains = [name for name in left(dest) if name not in SHARED]
            return [f"status shows nothing to do: {remains}"] if remains else []
        for line in typed:
            if run(*shlex.split(line)[1:], "--yes" if " abort " in line else "--quiet"):
                return [f"{line}: {run.err}"]
    return [f"status goes on asking: {typed}"]


def _command(job: dict[str, Any], case: Case) -> str:
    """Return what an operator types who wants the end that the driver wanted."""
    verbs = ("abort", "resume") if case.cut is None and case.after == OLD else ("resume", "abort")
    return next(filter(None, (job[verb]["command"] for verb in verbs)), "")


def finish(run: Command, how: str, dest: Path, case: Case) -> list[str]:
    """Let somebody come who knows nothing of the failure; return what is wrong then."""
    named = ["--committer", "file_v1"] if case.classic else []
    words: dict[str, list[str | Path]] = {
        "resume": ["resume", dest, "--job-id", JOB],
        "abort": ["abort", dest, "--job-id", JOB, "--force", *named],
        "gc": ["gc", dest, "--older-than", "0s", "--yes"],
    }
    problems, files = [], dict(case.after)
    if how == "next":
        with nullcontext() if _is_told(dest, case) else suppress(UnfinishedError):
            asyncio.run(_next(dest))
            files |= NEXT
    else:
        run(*words[how])
        problems += [f"{how}: {run.err}"] * ("was kept" in run.err)
    problems += settle(run, dest, case)
    if visible(dest) != files:
        problems.append(f"the table has {visible(dest)}")
    return problems


def _is_told(dest: Path, case: Case) -> bool:
    """Return whether the next job must go on: no commit, or only a clean-up, is left."""
    return (dest / "_SUCCESS").exists() or case.act is _abort


async def _next(dest: Path) -> None:
    layout = Layout(Address("file", "", str(dest)), "job_202601020000_0001")
    job = ManifestCommitter(Wrapped(LocalStore()), layout, Options(), this_host())
    await job.setup_job()
    await run_task(job, 0, NEXT)
    await job.commit_job()
    await job.store.aclose()


def calls(case: Case, root: Path) -> list[Op]:
    """Return the calls of an undisturbed clean-up."""
    disk = Disk(case.begins)
    asyncio.run(case.prepare(root / "whole"))
    asyncio.run(case.end(root / "whole", disk))
    return disk.seen


def points(case: Case, root: Path) -> list[tuple[int, bool]]:
    """Return the calls that fail, and whether for ever: all of them, or some of today's."""
    count = len(calls(case, root))
    assert count > FEWEST
    found = [(at, ever) for at in range(count) for ever in (False, True)]
    return random.Random(f"{case} {day()}").sample(found, min(POINTS, len(found)))


@pytest.mark.every(3)
@pytest.mark.more
@pytest.mark.rotate("how")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", FINISHERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_call_of_a_clean_up_fails(
    case: Case, how: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes next ends the job clean, or is told the command that does."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nobody pulls a plug here
    problems, struck = list[str](), 0
    for number, (at, ever) in enumerate(points(case, tmp_path)):
        dest = tmp_path / f"{at}-{ever}"
        disk = Disk(case.begins, at, ERRORS[number % len(ERRORS)], ever)
        asyncio.run(case.prepare(dest))
        asyncio.run(case.end(dest, disk))
        struck += disk.strikes  # 0 if this run has a call less than the first
        found = finish(command, how, dest, case)
        what = f"{disk.seen[min(at, len(disk.seen) - 1)]} {'always' if ever else 'once'}"
        problems += [f"{what}: {text}" for text in found]

    assert struck
    assert problems == []


def test_a_marker_that_could_not_be_written_tells_of_no_end(tmp_path: Path) -> None:
    """Before readers see that a job is committed, the next one is refused: it may be a rerun."""
    case = CASES[0]
    disk = Disk("_SUCCESS.tmp ", 0)
    asyncio.run(case.prepare(tmp_path))
    asyncio.run(case.end(tmp_path, disk))

    assert disk.strikes
    with pytest.raises(UnfinishedError, match="asynccommit resume"):
        asyncio.run(_next(tmp_path))


@pytest.mark.parametrize("case", [CASES[0], CASES[1], CASES[3]], ids=str)
def test_the_job_directory_cannot_be_renamed(case: Case, command: Command, tmp_path: Path) -> None:
    """Emptied task directories are no reason to keep a committed job: a resume deletes them."""
    disk = Disk("/00 ", 0)
    asyncio.run(case.prepare(tmp_path))
    asyncio.run(case.end(tmp_path, disk))
    assert disk.strikes
    assert left(tmp_path)

    assert finish(command, "resume", tmp_path, case) == []
    assert left(tmp_path) == []

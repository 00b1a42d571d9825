"""A disk fails one request of a job's life, or more from then on, and heals: from one seed.

Then somebody comes who knows nothing of it: the job is resumed, aborted, collected or run again,
the next job runs, and an operator types what ``status`` prints until nothing is left to do.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from asynccommit.cli import main
from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout
from asynccommit.errors import AsyncCommitError, CommitError, UnfinishedError
from asynccommit.inspect.collect import collect
from asynccommit.inspect.garbage import find_garbage
from asynccommit.options.job import Mode, Options
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores import registry
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Op, Policy, Wrapped
from asynccommit.stores.urls import Address
from tests.cli.support import TASKS
from tests.faults.test_clean_ups import DECIDED, ERRORS, Disk
from tests.support.faults import Apart
from tests.support.jobs import JOB, left, run_task, visible, write
from tests.support.strikes import strike

Files = Mapping[str, str]

OLD = {"day=1/old": "old"}
ROUNDS = 6
STAGES = ("set-up", "task", "commit", "clean-up", "resume", "rollback", "abort", "gc")
ACTORS = frozenset(f"disk in {stage}" for stage in STAGES)


@dataclass
class Failing(Disk):
    """A disk that may fail every request after the first one that fails, until it heals.

    Attributes:
        dead: whether it does.
    """

    dead: bool = False

    def _strike(self, op: Op) -> None:
        if self.dead and 0 <= self.at < len(self.seen):
            self.at = len(self.seen) - 1
        super()._strike(op)


@dataclass
class Story:
    """The story of one seed.

    Attributes:
        rng: draws what happens.
        dest: the table.
        stage: what meets the failing disk.
        mode: of the commit.
        ends: what the table may have in the end, further jobs aside.
        added: the files of further jobs.
        log: what has happened.
        born: number of drivers.
    """

    rng: random.Random
    dest: Path
    stage: str
    mode: Mode
    ends: list[Files] = field(default_factory=list)
    added: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    born: int = 0

    def __post_init__(self) -> None:
        self.ends = [OLD, self.committed]

    @property
    def committed(self) -> Files:
        """Return the files of the table after the commit."""
        return (OLD if self.mode is Mode.APPEND else {}) | _files(len(TASKS))

    @property
    def is_told(self) -> bool:
        """Return whether readers see that a job is committed."""
        return (self.dest / "_SUCCESS").exists()

    def host(self) -> Host:
        """Return the host of a new process, which is dead for all others."""
        self.born += 1
        host = this_host()
        number, start, rest = host.process.split(".", 2)
        return replace(host, process=f"{number}.{int(start) + self.born}.{rest}")

    def job(self, *policies: Policy, job_id: str = JOB) -> ManifestCommitter:
        """Return the committer of a new process."""
        store = Wrapped(LocalStore(), Apart(), *policies)
        layout = Layout(Address("file", "", str(self.dest)), job_id)
        return ManifestCommitter(store, layout, Options(workers=1), self.host())


# --- the life of a job --------------------------------------------------------------------------


async def prepare(story: Story) -> None:
    """Do what comes before the stage."""
    write(story.dest, OLD)
    if story.stage == "set-up":
        return
    job = story.job()
    await job.setup_job()
    for number, files in enumerate(TASKS[: 1 if story.stage == "task" else None]):
        await run_task(job, number, files)
    await job.store.aclose()
    if story.stage in ("resume", "rollback"):
        job = story.job(Disk(f" {story.dest}/day={story.rng.choice('12')}", 0))
        with pytest.raises(CommitError):
            await job.commit_job(mode=story.mode)
        await job.store.aclose()


async def live(story: Story, disk: Disk) -> None:
    """Live through the stage on a disk; without an error the end is what the driver was told."""
    if story.stage == "gc":
        await _collect(story, disk)
        return
    job = story.job(disk)
    acts: dict[str, tuple[Callable[[], Awaitable[Any]], list[Files]]] = {
        "set-up": (job.setup_job, story.ends),
        "task": (lambda: run_task(job, 1, TASKS[1]), story.ends),
        "resume": (job.resume_job, [story.committed]),
        "rollback": (job.rollback_job, [OLD]),
        "abort": (lambda: job.abort_job("enough"), [OLD]),
    }
    commit = (lambda: job.commit_job(mode=story.mode), [story.committed])
    act, ends = acts.get(story.stage, commit)
    try:
        await act()
        story.ends = ends
    finally:
        await job.store.aclose()


async def _collect(story: Story, disk: Disk) -> None:
    place = Address("file", "", str(story.dest))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "wrap", lambda store, _: Wrapped(store, Apart(), disk))
        await collect(await find_garbage(place, 0.0, story.host(), exact=True))
    story.ends = [OLD]


# --- who comes next -----------------------------------------------------------------------------


async def go_on(story: Story) -> list[str]:
    """Let the job go on with another attempt of the task."""
    job = story.job()
    try:
        await run_task(job, 1, TASKS[1], attempt=1)
        await job.commit_job(mode=story.mode)
        story.ends = [story.committed]
        return []
    except AsyncCommitError as error:
        return [f"the job cannot go on: {error}"]
    finally:
        await job.store.aclose()


async def next_job(story: Story) -> list[str]:
    """Run the next job, which may be refused if the first is neither over nor seen as committed."""
    told = story.is_told
    job = story.job(job_id=f"job_202601020000_{story.born:04}")
    files = {f"day=9/{story.born}": "next"}
    try:
        await job.setup_job()
        await run_task(job, 0, files)
        await job.commit_job()
        story.added |= files
    except UnfinishedError as error:
        return [f"the next job is refused after a commit: {error}"] * told
    finally:
        await job.store.aclose()
    return []


async def typed(story: Story, *words: str) -> tuple[int, str, str]:
    """Type a command; return its exit code, output and errors."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = await asyncio.to_thread(main, words)
    story.log.append(f"{' '.join(words)}: {code} {err.getvalue()}")
    return code, out.getvalue(), err.getvalue()


async def settle(story: Story) -> list[str]:
    """Type what ``status`` prints until nothing is left to do."""
    asked: list[str] = []
    for _ in range(ROUNDS):
        seen = json.loads((await typed(story, "status", str(story.dest), "--json"))[1])
        verbs = story.rng.sample(["resume", "abort"], 2)
        jobs = [next(filter(None, (job[v]["command"] for v in verbs)), "") for job in seen["jobs"]]
        asked = [*filter(None, jobs), *(one["command"] for one in seen["rubbish"])]
        if not asked:
            return [f"status shows nothing to do: {some}" for some in [left(story.dest)] if some]
        for line in asked:
            last = "--yes" if " abort " in line else "--quiet"
            code, _, err = await typed(story, *shlex.split(line)[1:], last)
            if code:
                return [f"{line}: {err}"]
            if " commit " in line:  # of the tasks that there are, in the default mode
                story.ends = [OLD | _files(int(line.rpartition("--tasks ")[2]))]
    return [f"status goes on asking: {asked}"]


def _files(tasks: int) -> dict[str, str]:
    return {name: text for files in TASKS[:tasks] for name, text in files.items()}


COMMANDS = {
    "resume": ("--job-id", JOB),
    "abort": ("--job-id", JOB, "--force", "--yes"),
    "gc": ("--older-than", "0s", "--yes"),
}


async def come(story: Story) -> list[str]:
    """Let some of them come, then the operator, then the next job."""
    found: list[str] = []
    if story.stage == "task" and story.rng.random() < 0.5:
        found += await go_on(story)
    for name in story.rng.choices([*COMMANDS, "next"], k=story.rng.randint(0, 3)):
        if name == "next":
            found += await next_job(story)
            continue
        _, _, err = await typed(story, name, str(story.dest), *COMMANDS[name])
        found += [f"{name}: {err}"] * ("was kept" in err)
    found += [*await settle(story), *await next_job(story)]
    return found


def judge(story: Story) -> list[str]:
    """Return what is wrong in the end."""
    found = [f"the next job leaves {some}" for some in [left(story.dest)] if some]
    ends = [{**end, **story.added} for end in story.ends]
    if visible(story.dest) not in ends:
        found.append(f"the table has {visible(story.dest)}, expected one of {ends}")
    return found


# --- the story ----------------------------------------------------------------------------------


async def tell(top: Path, seed: int, disk: Disk) -> Story:
    """Tell the story of a seed until the stage is over."""
    rng = random.Random(f"disk {seed}")
    mode = rng.choice([Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
    story = Story(rng, top, STAGES[seed % len(STAGES)], mode)
    await prepare(story)
    try:
        await live(story, disk)
    except AsyncCommitError as error:
        story.log.append(f"{story.stage}: {error}")
    return story


async def violations(seed: int) -> list[str]:
    """Return what one seed finds wrong, each with its seed; disks know real time only."""
    return await asyncio.to_thread(lambda: asyncio.run(_violations(seed)))


async def _violations(seed: int) -> list[str]:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)  # nobody pulls a plug here
        story, disk = await _struck(Path(name), seed)
        found = [*await come(story), *judge(story)]
    what = f"seed {seed}, {story.stage}, {disk.seen[disk.at]}"
    return [f"{what}: {text}; {story.log}" for text in found]


async def _struck(top: Path, seed: int) -> tuple[Story, Disk]:
    """Tell the story of a seed until a request has failed."""
    rng = random.Random(f"strike {seed}")
    begins = DECIDED if STAGES[seed % len(STAGES)] == "clean-up" else ""
    whole = Disk(begins)
    await tell(top / "whole", seed, whole)
    how, code = rng.choice(["once", "ever", "dead"]), ERRORS[seed % len(ERRORS)]
    for at in range(rng.randrange(len(whole.seen)), -1, -1):
        disk = Failing(begins, at, code, how == "ever", dead=how == "dead")
        story = await tell(top / f"{at}", seed, disk)
        if disk.strikes:  # a run may have a request less than the first
            strike(f"disk in {story.stage}")
            return story, disk
    raise AssertionError(f"seed {seed}: no request of {story.stage} failed")

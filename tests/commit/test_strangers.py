"""Others write to the table all the while, and the process may die: nobody's file is lost."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import CommitError, CommittedError
from asynccommit.options.job import Mode
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.testing.models.crashes import Crashed, Process
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.commits import DEST, Site, paths_of
from tests.support.crashes import SimWorld
from tests.support.faults import method_of

SEEDS = int(os.environ.get("ASYNCCOMMIT_SEEDS", "120"))
PLACES = (
    "day=1",
    "day=2",
    "day=3",
    "day=1/hour=1",
    "new",
    "new/x",
    "",
    ".hidden",
    "_under",
    "_p=1",
)
MODES = (Mode.APPEND, Mode.REPLACE_TABLE, Mode.REPLACE_PARTITIONS)
MARKER = f"{DEST}/_SUCCESS"


def some(rng: random.Random, prefix: str, most: int, least: int = 0) -> dict[str, str]:
    """Return names of files, each with itself as content."""
    names = [f"{prefix}{number}" for number in range(rng.randint(least, most))]
    return {f"{rng.choice(PLACES)}/{name}".lstrip("/"): name for name in names}


@dataclass
class Others:
    """What others have at the table: what was there, what they add, change and delete.

    Attributes:
        site: the table.
        rng: decides what they do.
        old: what was there before the job.
        files: what they have written.
        gone: what they have deleted.
        safe: how many had been written when the commit began; what a mode replaces is not lost.
    """

    site: Site
    rng: random.Random
    old: Mapping[str, str]
    files: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    safe: int | None = None

    async def act(self) -> None:
        """Do something, or nothing."""
        if self.rng.random() < 0.08:
            name = f"theirs{len(self.files)}"
            self._write(f"{DEST}/{self.rng.choice(PLACES)}/{name}".replace("//", "/"), name)
        olds = [path for path in self.old if path != MARKER]
        if olds and self.rng.random() < 0.05:
            path = self.rng.choice(olds)
            with suppress(Exception):
                await self.site.world.store(Process("another")).delete(path)
                self.files.pop(path, None)
                self.gone.add(path)
                if self.rng.random() < 0.7:
                    self._write(path, f"anew{self.rng.randint(0, 9)}")

    def _write(self, path: str, text: str) -> None:
        with suppress(Exception):  # something else is there
            self.site.place({path: text})
            self.files[path] = text


class Storm:
    """A policy under which others act between requests, and the process dies at one of them."""

    def __init__(self, others: Others, death: int) -> None:
        self.others = others
        self.death = death
        self.requests = 0

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def stormy(op: Op) -> Any:
            self.requests += 1
            if self.requests > self.death:
                raise Crashed
            await self.others.act()
            if self.requests == self.death:
                if op.writes and self.others.rng.random() < 0.5:
                    await self._send(call, op)
                raise Crashed
            return await self._send(call, op)

        return stormy

    async def _send(self, call: Call, op: Op) -> Any:
        answer = await call(op)
        if method_of(op) == "put" and paths_of(op).endswith("/commit-record.json"):
            self.others.safe = len(self.others.files)
        return answer


async def strip(job: ManifestCommitter) -> None:
    """Take the etags out of a task's manifest."""
    path = job.layout.manifest(job.layout.ids(0)[0])
    manifest = json.loads(await job.store.get(path, 1 << 20))
    for entry in manifest["files"]:
        entry.pop("e", None)
    await job.store.put(path, json.dumps(manifest).encode())


async def act(job: ManifestCommitter, verb: str, mode: Mode) -> None:
    """Commit, resume or roll back, however that ends."""
    with suppress(BaseException):
        if verb == "commit":
            await job.commit_job(mode=mode)
        else:
            await (job.resume_job() if verb == "resume" else job.rollback_job())


async def end(site: Site, verbs: list[str]) -> bool:
    """Finish or undo the job in peace; return whether that can be done."""
    for verb in verbs:
        job = site.job(process=f"9.{verb}")
        try:
            await (job.resume_job() if verb == "resume" else job.rollback_job())
        except CommittedError:
            with suppress(CommitError):
                await site.job(process="9.last").resume_job()
        except CommitError:
            continue
        return True
    return False


def lost(
    others: Others, before: Mapping[str, str | None], files: Mapping[str, str], mode: Mode
) -> list[str]:
    """Return what is not as it should be when all is over."""
    tree = others.site.tree(f"{DEST}/_temporary")
    committed = tree.get(MARKER, "old") != "old"
    safe = others.safe or 0 if committed and mode is not Mode.APPEND else 0
    problems = [
        f"{path} of others is lost"
        for number, (path, text) in enumerate(others.files.items())
        if number >= safe and path not in others.gone and tree.get(path) != text
    ]
    ours = {f"{DEST}/{name}": text for name, text in files.items()}
    if committed:
        problems += [f"{path} is missing" for path, text in ours.items() if tree.get(path) != text]
    else:
        touched = others.gone | others.files.keys()
        kept = {path: text for path, text in before.items() if path not in touched}
        problems += [f"{p} is not restored" for p in kept if p not in tree or tree[p] != kept[p]]
        problems += [f"{path} remains" for path in ours if path in tree]
    return problems + [f"{path} remains" for path in others.site.left()]


async def one(seed: int) -> list[str]:
    """Run one job through a storm, finish or undo it, and return what was lost."""
    rng = random.Random(seed)
    site, mode = Site(SimWorld.new()), rng.choice(MODES)
    old = {f"{DEST}/{name}": text for name, text in some(rng, "old", 8).items()}
    if rng.random() < 0.5:
        old[MARKER] = "old"
    site.place({f"{DEST}/": "", f"{DEST}/day=1/bare/": ""} | old)
    files = some(rng, "new", 5, least=1)
    if mode is Mode.REPLACE_PARTITIONS:
        files = {name if "/" in name else f"day=2/{name}": text for name, text in files.items()}
    job = await site.ready(files)
    if rng.random() < 0.4:
        await strip(job)
    before = site.tree(f"{DEST}/_temporary")
    others = Others(site, rng, old)
    for number in range(rng.randint(1, 3)):
        storm = Storm(others, rng.randint(1, 140))
        verb = rng.choice(("commit", "resume", "rollback")) if number else "commit"
        workers = rng.choice((1, 3))
        await act(site.job(storm, workers=workers, process=f"{number}.x"), verb, mode)
        site.alive[f"{number}.x"] = False
    if not await end(site, rng.choice((["resume", "rollback"], ["rollback"]))):
        there = set(site.tree().values())  # another's file is in the way of one of ours or theirs
        return [path for path, text in others.files.items() if text not in there]
    return lost(others, before, files, mode)


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(4))
def test_nobodys_file_is_lost(part: int) -> None:
    """Whatever others do meanwhile, and wherever the process dies, a seed at a time."""
    problems = {seed: run_virtual(one(seed)) for seed in range(part, SEEDS, 4)}

    assert {seed: found for seed, found in problems.items() if found} == {}

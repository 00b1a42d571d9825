"""A user of the same disk exchanges directories for links while a job commits and is recovered.

Every directory below the table and below the job is such a place, at any time: before a request is
looked at, and between its look-up and its system call.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from asynccommit.errors import AsyncCommitError, CommitError, DeniedError
from asynccommit.options.job import Mode
from asynccommit.stores.local import pins
from asynccommit.stores.policies.funnel import Call, Op, Policy
from tests.support.between import struck
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task, visible, write
from tests.support.selection import amount
from tests.support.strikes import strike

SEEDS = amount("ASYNCCOMMIT_SEEDS", quick=12, full=200)
OLD = {"day=1/a": "old", "day=4/z": "old"}
NEW = {"day=1/a": "1", "day=2/b": "2", "day=3/hour=1/c": "3", "day=3/hour=1/d": "4"}
SECRET = "s"


class LinkMaker:
    """A policy that now and then exchanges a directory for a link to another user's files.

    Args:
        dest: the table.
        private: the other user's directory.
        rng: draws times and places.
    """

    def __init__(self, dest: Path, private: Path, rng: random.Random) -> None:
        self._dest, self._private, self._rng = dest, private, rng
        self._kept: list[tuple[Path, str]] = []
        self._lock = Lock()
        self.strikes = 0
        self.rate = 0.0

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> Any:
            return await struck(call, op, self.act, self.act)

        return around

    def act(self) -> None:
        """Strike, or not."""
        with self._lock:
            if self._rng.random() < self.rate:
                places = sorted(self._places())
                if places:
                    self._exchange(self._rng.choice(places))

    def _places(self) -> Iterator[Path]:
        for folder, below, _ in os.walk(self._dest):
            for name in below:
                path = Path(folder, name)
                if name != "_temporary" and not path.is_symlink():
                    yield path

    def _exchange(self, path: Path) -> None:
        kept = self._private.with_name(f"kept-{self.strikes}")
        with suppress(FileNotFoundError):
            path.rename(kept)
            self.strikes += 1
            strike("link")
            link = f"{self._private}/{'./' * self.strikes}"
            path.symlink_to(link)
            self._kept.append((kept, link))

    def give_back(self) -> None:
        """Put every directory where its link is by now; one whose link is gone stays away.

        A link may be in a directory that comes back after it: a job that has opened a directory
        moves links there even while it is away.
        """
        while back := [(kept, path) for kept, link in self._kept for path in self._links(link)]:
            kept, path = back[0]
            path.unlink()
            kept.rename(path)
            self._kept = [pair for pair in self._kept if pair[0] != kept]
        self._kept.clear()

    def _links(self, target: str) -> Iterator[Path]:
        for top, names, _ in os.walk(self._dest):
            for path in (Path(top, name) for name in names):
                if path.is_symlink() and os.readlink(path) == target:
                    yield path


class Story:
    """One job at a table, with a link maker, to its end.

    Args:
        top: an empty directory.
        seed: draws everything.
    """

    def __init__(self, top: Path, seed: int) -> None:
        rng = self.rng = random.Random(f"links {seed}")
        self.dest, self.private = top / "table", top / "private"
        self.maker = LinkMaker(self.dest, self.private, rng)
        self.mode = rng.choice([Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
        self.open = partial(
            committer,
            self.dest,
            delete_target_files=True,
            on_failure=rng.choice(["keep", "rollback"]),
            validate=rng.random() < 0.7,
        )
        self.log: list[str] = []

    async def tell(self) -> None:
        """Commit, with a failure in every second story, and settle the commit until it is over."""
        await self._begin()
        failing = Fault("rename", DeniedError, f"/{self.rng.choice(list(NEW))}")
        await self._step("commit_job", Faults(*[failing][self.rng.randrange(2) :]), mode=self.mode)
        for end in self.rng.choices(["resume_job", "rollback_job"], k=2):
            await self._step(end)
        self.maker.rate = 0.0
        begun = list(self.dest.glob("_temporary/*/*/commit-record.json"))
        if begun:  # by force: a link may have kept the owner from saying that it has stopped
            await self._step("resume_job", force=True)
            if begun[0].exists():  # what was changed and changed back cannot be replaced
                await self._step("rollback_job", force=True)
        else:
            await self._step("commit_job", mode=self.mode)
        whole = NEW if self.mode is Mode.REPLACE_TABLE else OLD | NEW
        assert visible(self.dest) in (whole, OLD), "\n".join(self.log)

    async def _begin(self) -> None:
        self.private.mkdir()
        write(self.private, dict.fromkeys([*OLD, *NEW, "a", "b", "c", "in/day=1/a"], SECRET))
        write(self.dest, OLD)
        job = committer(self.dest)
        await job.setup_job()
        for number, files in enumerate(({"day=1/a": "1", "day=2/b": "2"}, {**NEW})):
            await run_task(job, number, {n: NEW[n] for n in files if number < 1 or n > "day=3"})
        for path in Path(job.layout.manifests_dir).iterdir() if self.rng.random() < 0.5 else ():
            manifest = json.loads(path.read_bytes())  # as Hadoop writes it, without etags
            for entry in manifest["files"]:
                del entry["e"]
            path.write_text(json.dumps(manifest))
        self.maker.rate = self.rng.choice([0.01, 0.03, 0.1])

    async def _step(self, end: str, *policies: Policy, **arguments: Any) -> None:
        job = self.open(*policies, self.maker)
        try:
            self.log.append(f"{end}: {await getattr(job, end)(**arguments)}")
        except AsyncCommitError as error:
            self.log.append(f"{end}: {error}")
        self._check()
        self.maker.give_back()
        self._check()

    def _check(self) -> None:
        behind = {path.read_text() for path in self.private.rglob("*") if path.is_file()}
        count = sum(path.is_file() for path in self.private.rglob("*"))
        log = "\n".join(self.log)
        assert (behind, count) == ({SECRET}, 9), f"something came or went behind a link\n{log}"
        files = [path for path in self.dest.rglob("*") if path.is_file() and not path.is_symlink()]
        assert SECRET not in {path.read_text() for path in files}, f"a file was stolen\n{log}"


async def told(top: Path, seed: int) -> int:
    """Tell one story; return the number of exchanges."""
    top.mkdir()
    story = Story(top, seed)
    await story.tell()
    return story.maker.strikes


async def violations(seed: int) -> list[str]:
    """Return what one seed finds wrong, with its seed."""
    with tempfile.TemporaryDirectory() as top:
        try:
            await told(Path(top, "story"), seed)
        except AssertionError as error:
            return [f"seed {seed}: {error}"]
    return []


async def test_nobody_follows_a_link(tmp_path: Path) -> None:
    """Nothing behind a link comes or goes, and the job ends whole or undone."""
    strikes = [await told(tmp_path / str(seed), seed) for seed in range(SEEDS)]
    assert sum(strikes) > SEEDS // 2


class Taker:
    """A policy that exchanges the owner's directory for a link once another has claimed the commit.

    Args:
        dest: the table.
        away: where the directory goes.
    """

    def __init__(self, dest: Path, away: Path) -> None:
        self._dest, self._away = dest, away

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> Any:
            answer = await call(op)
            if op.name == "put" and "commit-owner-" in op.args[0]:
                await asyncio.to_thread(self._take)
            return answer

        return around

    def _take(self) -> None:
        place = next(self._dest.glob("_temporary/*/*/commit-epoch-000001"))
        place.rename(self._away)
        place.symlink_to(self._away)

    def give_back(self) -> None:
        """Put the directory back."""
        place = next(self._dest.glob("_temporary/*/*/commit-epoch-000001"))
        place.unlink()
        self._away.rename(place)


async def test_a_link_in_the_place_of_an_owner_is_no_rollback(tmp_path: Path) -> None:
    """A rollback is not said to be finished while the directory of its owner is elsewhere."""
    dest = tmp_path / "table"
    own = partial(committer, dest, on_failure="keep", delete_target_files=True)
    taker = Taker(dest, tmp_path / "away")
    write(dest, OLD)
    job = own()
    await job.setup_job()
    await run_task(job, 0, NEW)
    with pytest.raises(CommitError):
        await own(Faults(Fault("rename", DeniedError, "/day=2/b"))).commit_job()

    with pytest.raises(CommitError, match="put the directory back"):
        await own(taker).rollback_job(force=True)

    taker.give_back()
    await own().rollback_job(force=True)
    assert visible(dest) == OLD


async def test_a_way_that_follows_links_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories that are opened as the system does by default are what this would find."""
    monkeypatch.setattr(pins, "_BELOW", pins._ROOT)
    with pytest.raises(AssertionError, match=r"behind a link|stolen"):
        for seed in range(50):
            await told(tmp_path / str(seed), seed)

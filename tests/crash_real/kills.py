"""One commit, killed at a random moment, then finished or undone by a new process."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from asynccommit import sync
from asynccommit.errors import CommitError, NotFoundError
from asynccommit.options.job import Mode
from tests.crash_real.places import (
    JOB,
    OLD_SUCCESS,
    Place,
    digest,
    prepare,
    table_after,
    table_before,
    visible,
)
from tests.crash_real.processes import committing, kill, run, started

MODES = (Mode.APPEND, Mode.REPLACE_PARTITIONS)
ATTEMPT = f"_temporary/{JOB}/00"
RESUME = ("resume",)
ROLLBACK = ("abort", "--rollback", "--force")  # this process, which set the job up, lives


@dataclass
class Harness:
    """Kills commits of one prepared job, again and again.

    Attributes:
        place: where the table is.
        rng: draws the moments.
        hits: where in the commit the kills fell, counted.
    """

    place: Place
    rng: random.Random
    hits: Counter[str] = field(default_factory=Counter)
    _written: dict[int, dict[str, bytes]] = field(default_factory=dict)
    _took: dict[Mode, float] = field(default_factory=dict)

    def prepare(self) -> None:
        """Commit the tasks, and see how long an undisturbed commit takes."""
        self._written = prepare(self.place)
        for mode in MODES:
            self.place.restore()
            with self._committing(mode) as child:
                began = time.monotonic()
                assert child.wait() == 0
                self._took[mode] = time.monotonic() - began
            self.check_committed(mode)

    def kill(self, number: int) -> None:
        """Kill one commit, and finish it or undo it by a process of its own.

        One in three of those is killed as well, and another ends the commit.
        """
        mode = MODES[number // 2 % len(MODES)]
        ending = ROLLBACK if number % 2 else RESUME
        self.place.restore()
        hit = self._kill(self._committing(mode), mode)
        self.hits[hit] += 1
        if number % 3 == 2 and hit in ("inside", "after"):
            again = self._kill(started(self.place, *ending, "-o", self._rate), mode)
            self.hits[f"{again}, second"] += 1
        if ending is ROLLBACK and hit in ("before", "inside"):
            self._run(0, *ending)
            self.check_undone()
        elif ending is ROLLBACK:
            self._run(3, *ending)
            self._finish(hit, mode)
        else:
            self._finish(hit, mode)
        self._again(mode)

    def _kill(self, starting: AbstractContextManager[subprocess.Popen[str]], mode: Mode) -> str:
        with starting as child:
            time.sleep(self.rng.uniform(0, self._took[mode]))
            kill(self.place, child)
        return where(self.place.tree())

    def _committing(self, mode: Mode) -> AbstractContextManager[subprocess.Popen[str]]:
        return committing(self.place, "--mode", mode.value, "-o", self._rate)

    @property
    def _rate(self) -> str:
        return f"asynccommit.rate={self.place.rate}"

    def _finish(self, hit: str, mode: Mode) -> None:
        """Resume; what has not begun says so, and is committed."""
        if hit == "before":
            self._run(3, "resume")
            assert visible(self.place.tree()) == table_before()
            self._run(0, "commit", "--trust-manifests", "--mode", mode.value)
        else:
            self._run(0, "resume")
        self.check_committed(mode)

    def _run(self, code: int, *words: str) -> None:
        ended, said = run(self.place, *words)
        assert ended == code, said

    def _again(self, mode: Mode) -> None:
        """Do both once more: neither changes anything."""
        before = self.place.tree()
        job = sync.job(self.place.url, JOB, storage_options=self.place.storage)
        for repeat in (job.resume, job.rollback):
            with suppress(CommitError, NotFoundError):
                repeat()
            assert self.place.tree() == before

    def check_committed(self, mode: Mode) -> None:
        """Compare the table, file by file, with what an undisturbed commit leaves."""
        tree = self.place.tree()
        marker = tree.pop("_SUCCESS")
        assert tree == table_after(mode, self._written)
        assert marker != digest(OLD_SUCCESS)

    def check_undone(self) -> None:
        """Compare the table, file by file, with what was there before the job."""
        assert self.place.tree() == table_before()


def where(tree: Mapping[str, str]) -> str:
    """Return where in a commit a kill fell, by what is left."""
    if any(path.startswith(f"{ATTEMPT}/commit-outcome") for path in tree):
        return "after"
    if f"{ATTEMPT}/commit-record.json" in tree:
        return "inside"
    if f"{ATTEMPT}/manifests" in tree:
        return "before"
    return "cleaning" if "_temporary" in tree else "gone"

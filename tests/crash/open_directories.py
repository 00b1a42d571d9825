"""Stragglers hold directories of a job and of its table on a real disk, and write through them.

Each has a directory open, or is a process that works in it, and reaches it wherever it is renamed.
They write before each request of commit, resume, rollback and clean-up, between its look-up and its
system call, and after the end.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from asynccommit.errors import AsyncCommitError, DeniedError
from asynccommit.options.job import Mode
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.between import struck
from tests.support.jobs import committer, run_task, visible, write
from tests.support.strikes import strike

OLD = {"day=1/a": "old", "day=1/z": "old", "day=4/z": "old"}
FEW = {"day=1/a": "1", "day=1/b": "2", "day=2/b": "3", "day=3/hour=1/c": "4"}
MANY = FEW | {f"day={day}/part-{n}": "5" for day in (2, 3) for n in range(60)}
"""Enough files for whole directories to be moved, where a store lets that happen."""
TASK, JOB, PARTITION = "directory of a task", "directory of the job", "partition"
WORKING, LATE = "working directory", "after _SUCCESS"
ACTORS = frozenset({TASK, JOB, PARTITION, WORKING, LATE})
HELD = 12  # directories of a story at most


@dataclass
class Stray:
    """A file of a straggler.

    Attributes:
        kind: of the directory that it was written to.
        early: it came before the record: a commit may replace it with its directory.
        late: it came after the last look before the clean-up, which may delete it.
    """

    kind: str
    early: bool
    late: bool


class Handle:
    """A directory that is open.

    Args:
        path: where it is.
        kind: whose it is.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.kind = kind
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def create(self, name: str, text: str) -> bool:
        """Create a file; return whether that was possible."""
        with suppress(FileExistsError, FileNotFoundError):
            fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=self._fd)
            with open(fd, "w", encoding="utf-8") as file:
                file.write(text)
            return True
        return False

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


class Worker:
    """A process that works in a directory.

    Args:
        path: where it is.
        kind: whose it is.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.kind = kind
        pipe = subprocess.PIPE
        self._shell = subprocess.Popen(["sh"], cwd=path, stdin=pipe, stdout=pipe, text=True)

    def create(self, name: str, text: str) -> bool:
        """Create a file; return whether that was possible."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        order = f"(set -C; printf %s '{text}' > '{name}') 2>/dev/null; echo $?"
        print(order, file=self._shell.stdin, flush=True)
        done = self._shell.stdout.readline() == "0\n"
        if done:
            strike(WORKING)
        return done

    def close(self) -> None:
        """End it."""
        self._shell.communicate()


class Stragglers:
    """A policy that now and then opens a directory, or writes into one that is open.

    Args:
        dest: the table.
        rng: draws times and places.
    """

    def __init__(self, dest: Path, rng: random.Random) -> None:
        self._dest, self._rng = dest, rng
        self._open: list[Handle | Worker] = []
        self._lock = Lock()
        self.strays: dict[str, Stray] = {}
        self.rate = 0.0
        self.left = 0  # requests until one fails
        self.seen: Counter[tuple[str, str]] = Counter()
        self.looked = False  # for the last time before the clean-up

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def around(op: Op) -> Any:
            return await struck(call, op, partial(self._come_before, op), self.act)

        return around

    def _come_before(self, op: Op) -> None:
        """Act, and note when a directory aside is looked at for the last time before deletion."""
        self.act()
        path = str(op.args[0])
        self.left -= 1
        if not self.left:
            raise DeniedError(op.name, path, "once")
        if "/aside/" in path and op.name in ("head", "list", "list_page"):
            self.seen[op.name, path] += 1
            late = self._is_shown() if op.name == "head" else self.seen[op.name, path] > 1
            self.looked |= late

    def act(self) -> None:
        """Strike, or not."""
        with self._lock:
            if self._rng.random() < self.rate:
                if len(self._open) < HELD and self._rng.random() < 0.5:
                    self.open_one()
                elif self._open:
                    self._write(self._rng.choice(self._open))

    def open_one(self) -> None:
        """Open a directory, or begin to work in it."""
        of_kind: dict[str, list[Path]] = {}
        for path, kind in self._places():
            of_kind.setdefault(kind, []).append(path)
        if of_kind:
            kind = self._rng.choice(sorted(of_kind))
            how = Worker if self._rng.random() < 0.2 else Handle
            with suppress(FileNotFoundError):
                self._open.append(how(self._rng.choice(sorted(of_kind[kind])), kind))

    def write_all(self) -> None:
        """Write into each directory that is open."""
        for one in self._open:
            self._write(one)

    def close(self) -> None:
        """End all of them."""
        for one in self._open:
            one.close()

    def _places(self) -> Iterator[tuple[Path, str]]:
        for folder, below, _ in os.walk(self._dest):
            # What nobody but the driver may enter, and what is out of its hands, is not theirs.
            below[:] = [name for name in below if name[:6] not in ("commit", "_displ")]
            path = Path(folder)
            name = str(path.relative_to(self._dest))
            if "/tasks/" in name:
                yield path, TASK
            elif name.startswith("_temporary/"):
                yield path, JOB
            elif name.startswith("day="):
                yield path, PARTITION

    def _write(self, one: Handle | Worker) -> None:
        text = f"stray {len(self.strays)}"
        begun = any(self._dest.glob("_temporary/*/*/commit-record.json"))
        name = self._rng.choice(["b", "c", "z", *[text] * 7])
        if one.create(name, text):
            self.strays[text] = Stray(one.kind, not begun, self.looked)
            strike(one.kind)
            if self._is_shown():
                strike(LATE)

    def _is_shown(self) -> bool:
        return (self._dest / "_SUCCESS").exists()


class Story:
    """One job at a table, with stragglers, to its end.

    Args:
        top: an empty directory.
        seed: draws everything.
    """

    def __init__(self, top: Path, seed: int) -> None:
        rng = self.rng = random.Random(f"stragglers {seed}")
        self.dest = top / "table"
        self.stragglers = Stragglers(self.dest, rng)
        self.mode = rng.choice([Mode.APPEND, Mode.REPLACE_PARTITIONS, Mode.REPLACE_TABLE])
        self.new = MANY if self.mode is Mode.APPEND else FEW
        self.whole = self.new if self.mode is Mode.REPLACE_TABLE else OLD | self.new
        if self.mode is Mode.REPLACE_PARTITIONS:
            del self.whole["day=1/z"]
        self.open = partial(
            committer,
            self.dest,
            self.stragglers,
            delete_target_files=True,
            on_failure=rng.choice(["keep", "rollback"]),
            validate=rng.random() < 0.7,
        )
        self.log: list[str] = []
        self.found: list[str] = []

    async def tell(self) -> None:
        """Commit, with a failure in every second story, and settle the commit until it is over."""
        await self._begin()
        requests = 4 * len(self.new) + 60
        self.stragglers.left = self.rng.choice([0, self.rng.randint(1, requests)])
        await self._step("commit_job", mode=self.mode)
        for end in self.rng.choices(["resume_job", "rollback_job"], k=2):
            await self._step(end)
        self.stragglers.left = 0
        for end in ("resume_job", "rollback_job"):  # a stray in the way hinders only the former
            if self._has_begun():
                await self._step(end, force=True)
        self.stragglers.write_all()
        self._check("in the end")
        if self._has_begun():
            self.found.append("a commit cannot be ended")

    async def _begin(self) -> None:
        write(self.dest, OLD)
        job = committer(self.dest)
        await job.setup_job()
        early = {name: text for name, text in self.new.items() if name < "day=2"}
        late = {name: text for name, text in self.new.items() if name > "day=2"}
        for number, files in enumerate((early, late)):
            await run_task(job, number, files)
        for _ in range(HELD // 2):
            self.stragglers.open_one()
        self.stragglers.rate = self.rng.choice([0.2, 5, 20]) / (len(self.new) + 30)

    async def _step(self, end: str, **arguments: Any) -> None:
        self.stragglers.seen.clear()
        self.stragglers.looked = False
        try:
            said = str(await getattr(self.open(), end)(**arguments))
        except AsyncCommitError as error:
            said = f"{type(error).__name__}: {error}"
        self.log.append(f"{end}: {said}")
        self._check(f"after {end}")

    def _has_begun(self) -> bool:
        return any(self.dest.glob("_temporary/*/*/commit-record.json"))

    def _check(self, when: str) -> None:
        strays = self.stragglers.strays
        shown = visible(self.dest)
        for name, text in shown.items():
            if text in strays and strays[text].kind != PARTITION:
                self.found.append(f"{when}: a file in a {strays[text].kind} is published: {name}")
        if self._has_begun():
            return
        table = {name: text for name, text in shown.items() if text not in strays}
        if table not in (self.whole, OLD):
            self.found.append(f"{when}: the table has {sorted(table)[:9]}")
        kept = {path.read_text() for path in self.dest.glob("_displaced*/**/*") if path.is_file()}
        there = kept | {*shown.values()}
        for text, stray in strays.items():
            free = stray.late or (stray.early and table != OLD)
            if stray.kind == PARTITION and not free and text not in there:
                self.found.append(f"{when}: {text} in a partition is lost")


async def violations(seed: int) -> list[str]:
    """Return what one seed finds wrong, each with its seed."""
    with tempfile.TemporaryDirectory() as top:
        story = Story(Path(top), seed)
        try:
            await story.tell()
        finally:
            story.stragglers.close()
    return [f"seed {seed}, {story.mode}: {text}" for text in story.found]

"""A JVM and the engine that it has started, of which one dies: at a byte, or at a rename.

The engine is the real one, in a process of its own. The frames of the JVM come from here: two jobs
are set up and committed at once, and either end dies at any byte of what it sends or is sent.
"""

from __future__ import annotations

import asyncio
import io
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from asynccommit import sync
from asynccommit.errors import AsyncCommitError
from asynccommit.results import NOT_BEGUN
from asynccommit.spark.channel import GONE
from asynccommit.spark.frames import Frame, FrameKind, read_frame
from asynccommit.spark.jars import build_id
from tests.spark.test_child import files, request, set_up
from tests.support.child import FIRST
from tests.support.spark import after_renames, leftovers
from tests.support.strikes import strike

SENDING, READING, RENAMING = "JVM that sends", "JVM that reads", "engine that renames"
ACTORS = frozenset({SENDING, READING, RENAMING})
TABLES, FILES = 2, 3
PATIENCE = 60.0  # seconds until an engine that goes on is found
_COMMITS = {number + TABLES + 1: number for number in range(TABLES)}  # number of request -> table
_ANSWERS = 80  # bytes of which there are more in the answers to the commits
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["asynccommit.spark.child", "tests.support.spark"])


def engine(reading: Connection, writing: Connection, log: str, renames: int, deaf: bool) -> None:
    """Be the engine of a JVM.

    Args:
        reading: what the JVM sends.
        writing: what the JVM reads.
        log: the file of its standard error.
        renames: how many there are before it is killed; with a negative number it is not.
        deaf: it does not end with its input, a planted fault.
    """
    from asynccommit.spark import channel, child

    os.dup2(reading.fileno(), 0)
    os.dup2(writing.fileno(), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    reading.close()
    writing.close()
    if renames >= 0:
        after_renames(renames, lambda: os.kill(os.getpid(), signal.SIGKILL))
    if deaf:
        vars(channel)["_end"] = lambda why: None
    sys.exit(child.main())


def _frames(text: bytes | bytearray) -> Iterator[Frame]:
    """Yield the frames that are whole, of what one side has said."""
    read = io.BytesIO(bytes(text)[len(FIRST) + 1 :]).read
    while (frame := read_frame(read)) is not None:
        yield frame


class Jvm:
    """The JVM's end of the frames.

    Args:
        scratch: where the engine logs.
        renames: see ``engine``.
        deaf: see ``engine``.
    """

    def __init__(self, scratch: Path, renames: int = -1, *, deaf: bool = False) -> None:
        child_reads, self._writing = multiprocessing.Pipe(duplex=False)
        self._reading, child_writes = multiprocessing.Pipe(duplex=False)
        given = child_reads, child_writes, str(scratch / "log"), renames, deaf
        self.process = _FORKS.Process(target=engine, args=given, daemon=True)
        self.process.start()
        child_reads.close()
        child_writes.close()
        self.heard = bytearray()

    def send(self, data: bytes) -> None:
        """Send bytes; an engine that is dead does not hear them."""
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._writing.fileno(), data) :]

    def hear(self, length: int) -> None:
        """Hear so many bytes, or as many as come."""
        while len(self.heard) < length:
            more = os.read(self._reading.fileno(), length - len(self.heard))
            if not more:
                return
            self.heard += more

    def hear_answers(self, number: int) -> int:
        """Hear frames until there are so many answers, or no more; return how many came."""
        while len(answers := self.answers()) < number:
            before = len(self.heard)
            self.hear(before + 1)
            if len(self.heard) == before:
                break
        return len(answers)

    def answers(self) -> dict[int, dict[str, Any]]:
        """Return the answers that have come whole, by the numbers of their requests."""
        return {
            frame.number: json.loads(frame.text)
            for frame in _frames(self.heard)
            if frame.kind is FrameKind.ANSWER
        }

    def die(self, patience: float) -> int | None:
        """Close both ends, and return how the engine has ended; ``None`` if it has not."""
        self._writing.close()
        self._reading.close()
        return self.wait(patience)

    def wait(self, patience: float) -> int | None:
        """Return how the engine has ended; ``None`` if it has not."""
        self.process.join(patience)
        return self.process.exitcode

    def close(self) -> None:
        """End all that is left."""
        for end in (self._writing, self._reading):
            end.close()
        self.process.kill()
        self.process.join()
        self.process.close()


class Story:
    """Two jobs of a JVM, of which one end dies.

    Args:
        top: an empty directory.
        seed: draws everything.
        deaf: the engine has the planted fault.
        patience: seconds until an engine that goes on is found.
    """

    def __init__(self, top: Path, seed: int, *, deaf: bool, patience: float) -> None:
        self.top, self.patience = top, patience
        self.rng = random.Random(f"children {seed}")
        self.actor = sorted(ACTORS)[seed % len(ACTORS)]
        renames = self.rng.randrange(TABLES * FILES) if self.actor is RENAMING else -1
        self.tables = [top / f"t{number}" for number in range(TABLES)]
        self.jvm = Jvm(top, renames, deaf=deaf)
        self.sent = b""

    def tell(self) -> Iterator[str]:
        """Let the jobs run until one end dies, then end them; yield what is wrong."""
        first = FIRST + b"\n"
        checks = [self._frame(n + 1, "check", table) for n, table in enumerate(self.tables)]
        commits = [self._commit(n, self.tables[n]) for n in _COMMITS.values()]
        whole = first + b"".join(checks)
        cut = self.rng.randrange(len(whole + b"".join(commits))) if self.actor is SENDING else None
        self._send(whole[:cut])
        if cut is None or cut >= len(whole):
            self.jvm.hear_answers(TABLES)
            self._send(b"".join(commits)[: None if cut is None else cut - len(whole)])
        code = self._strike()
        wanted = -signal.SIGKILL if self.actor is RENAMING else GONE
        if code != wanted:
            yield f"the engine has not ended with its JVM: {code}"
            return
        strike(self.actor)
        for number, table in enumerate(self.tables):
            yield from self._settled(number, table)

    def _strike(self) -> int | None:
        if self.actor is RENAMING:
            code = self.jvm.wait(self.patience)
            self.jvm.hear_answers(len(_COMMITS) + TABLES)
            return code
        if self.actor is READING:
            self.jvm.hear(len(self.jvm.heard) + self.rng.randrange(_ANSWERS))
        elif asked := self._asked():
            self.jvm.hear_answers(TABLES + self.rng.randint(0, len(asked)))
        return self.jvm.die(self.patience)

    def _send(self, data: bytes) -> None:
        self.sent += data
        self.jvm.send(data)

    def _frame(self, number: int, what: str, table: Path, **more: Any) -> bytes:
        asked = request(what, table, build=build_id(), **more)
        return Frame(FrameKind.REQUEST, number, json.dumps(asked).encode()).encode()

    def _commit(self, number: int, table: Path) -> bytes:
        tasks = set_up(table, files=FILES)
        return self._frame(number + TABLES + 1, "commit", table, tasks=tasks, overwrite=[])

    def _asked(self) -> list[int]:
        """Return the tables whose commit was asked for to the last byte."""
        numbers = [frame.number for frame in _frames(self.sent)]
        return [_COMMITS[number] for number in numbers if number in _COMMITS]

    def _settled(self, number: int, table: Path) -> Iterator[str]:
        """End a job as the next one would; yield what is wrong before and after."""
        name, before = f"table {number}", len(files(table))
        told = self.jvm.answers().get(number + TABLES + 1, {})
        if told.get("ok") and before != FILES:
            yield f"{name} was said to be committed, and has {before} files"
        if told and not told.get("ok"):
            yield f"{name}: {told}"
        if number not in self._asked() and before:
            yield f"{name} has {before} files of a commit that was not asked for"
        begun = any(job.state not in NOT_BEGUN for job in sync.job_statuses(str(table)))
        known = number + 1 in self.jvm.answers()  # its set-up was answered, so it has an owner
        try:
            self._end(table, begun=begun, force=not known)
        except AsyncCommitError as error:
            yield f"{name} cannot be ended: {error}"
        after = len(files(table))
        if after != (FILES if begun or told.get("ok") or before else 0) or leftovers(table):
            yield f"{name} has {after} files, {leftovers(table)} are left"

    def _end(self, table: Path, *, begun: bool, force: bool) -> None:
        if begun:
            sync.job(str(table)).resume()
            sync.wait_for_cleanup()
        if leftovers(table):  # of a job that has not begun, or of one whose clean-up was cut short
            sync.job(str(table), "job-1").abort(force=force)


def problems(seed: int, *, deaf: bool = False, patience: float = PATIENCE) -> list[str]:
    """Return what one seed finds wrong, each with its seed."""
    with tempfile.TemporaryDirectory() as top:
        story = Story(Path(top), seed, deaf=deaf, patience=patience)
        with closing(story.jvm):
            return [f"seed {seed}, {story.actor}: {text}" for text in story.tell()]


async def violations(seed: int) -> list[str]:
    """Return what one seed finds wrong; it happens in a thread, since the engine is waited for."""
    return await asyncio.to_thread(problems, seed)

"""What tests of the command share: jobs in every state, and the command in this process."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.cli import main
from asynccommit.errors import CommitError, DeniedError
from asynccommit.options.job import Mode
from asynccommit.stores.local import moves
from tests.support.faults import Fault, Faults
from tests.support.jobs import JOB, committer, run_task

TASKS: tuple[Mapping[str, str], ...] = (
    {"day=1/part-0": "one", "day=2/part-0": "two"},
    {"day=1/part-1": "three"},
)


def prepare(
    dest: Path,
    tasks: Sequence[Mapping[str, str]] = TASKS,
    *,
    job_id: str = JOB,
    prefix: str = "",
    attempt: int = 0,
) -> Path:
    """Leave a job whose tasks have committed; return its attempt directory."""

    async def run() -> str:
        job = committer(dest, job_id=job_id, attempt=attempt)
        job.layout = replace(job.layout, prefix=prefix)
        await job.setup_job()
        for number, files in enumerate(tasks):
            await run_task(job, number, files)
        await job.store.aclose()
        return job.layout.attempt_dir

    return Path(asyncio.run(run()))


@contextmanager
def failing_disk(name: str) -> Iterator[None]:
    """Let the disk refuse to rename a file to a path that ends in ``name``.

    A commit renames between open directories.
    """
    move = moves.move_new

    def fail(source: str, dest: str, *descriptors: int, **how: bool) -> None:
        place = os.readlink(f"/proc/self/fd/{descriptors[-1]}") if descriptors else ""
        if os.path.join(place, dest).endswith(name):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), source)
        move(source, dest, *descriptors, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "move_new", fail)
        yield


def cut_short(dest: Path, at: str = "day=2/part-0", **how: Any) -> Path:
    """Leave a job whose commit was refused one request; see ``cut``."""
    attempt = prepare(dest, job_id=how.get("job_id", JOB))
    cut(dest, at, **how)
    return attempt


def cut(
    dest: Path, at: str, *, op: str = "rename", job_id: str = JOB, mode: Mode = Mode.APPEND
) -> None:
    """Commit a job that was prepared, and refuse it one request.

    Args:
        dest: the destination.
        at: part of the path of that request.
        op: its method.
        job_id: the job.
        mode: of the commit.
    """
    refusal = Fault(op, lambda op, path: DeniedError(op, path, "not today"), at)

    async def commit() -> None:
        job = committer(dest, Faults(refusal), job_id=job_id, workers=1)
        with pytest.raises(CommitError, match="not today"):
            await job.commit_job(mode=mode)
        await job.store.aclose()

    asyncio.run(commit())


def let_live(attempt: Path, silent: float = 0.0) -> None:
    """Let the owner of a job's commit, on another machine, be silent for so many seconds."""
    (attempt / "commit-stopped-000001.json").unlink()
    for path in (attempt / "commit-record.json", attempt / "commit-alive-000001.json"):
        if path.exists():
            when = path.stat().st_mtime - silent
            os.utime(path, (when, when))


class Command:
    """Runs the command in this process and keeps what it says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, *args: str | Path) -> int:
        """Run the command; return its exit code."""
        self._capsys.readouterr()
        code = main([str(arg) for arg in args])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *args: str | Path) -> Any:
        """Run the command with ``--json``; return the value, with the exit code beside it."""
        code = self(*args, "--json")
        value = json.loads(self.out)
        return {**value, "code": code}

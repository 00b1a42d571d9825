"""The disk, or its inodes, run out before each change of a commit: what it says then is true.

Each commit is on a small filesystem of its own, in a mount namespace. Just before one of the
requests that change something, the rest of the filesystem is filled; the commit then ends somehow.
Once there is room again it is finished, or undone, by another process.
"""

from __future__ import annotations

import errno
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.errors import CommitError, PreflightError
from asynccommit.options.job import Mode, OnFailure, Options
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped
from asynccommit.stores.urls import Address
from tests.support.faults import apart
from tests.support.jobs import HOST, JOB, left, run_task, visible, write
from tests.support.namespaces import in_namespace, tmpfs

pytestmark = pytest.mark.timeout(180)

OLD = {"day=1/old": "1", "day=2/old": "2", "kept": "k"}
TASKS = [{"day=1/a": "a", "day=3/b": "b"}, {"day=1/c": "c", "day=4/e=1/d": "d"}]
NEW = {name: text for task in TASKS for name, text in task.items()}
AFTER = {Mode.APPEND: OLD | NEW, Mode.REPLACE_TABLE: NEW}
ENDINGS = ("resume", "rollback")
COUNTED = re.compile(r"(at least )?([0-9]+) files are at their destinations")


class Fills:
    """A policy that fills the disk before one of the requests that change something.

    Args:
        disk: a small filesystem.
        number: of the request, from 0; the first to come beyond the last one fills nothing.
        what: ``space`` or ``inodes``.
    """

    def __init__(self, disk: Path, number: int, what: str) -> None:
        self.left = number
        self.full = False
        self._disk = disk / "full"
        self._what = what

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def filling(op: Op) -> Any:
            if op.writes and not self.full:
                if self.left == 0:
                    self._fill()
                self.left -= 1
            return await call(op)

        return filling

    def empty(self) -> None:
        """Make room again."""
        for path in self._disk.iterdir():
            path.unlink()
        self._disk.rmdir()

    def _fill(self) -> None:
        self.full = True
        self._disk.mkdir()
        try:
            for number in count():
                with open(self._disk / str(number), "wb", buffering=0) as file:
                    while self._what == "space":
                        file.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017  that is how it ends


def job_at(disk: Path, process: str, *policies: Any, **options: Any) -> ManifestCommitter:
    """Return the committer of one process; the others have died, as far as it can tell."""
    ids = count()
    host = replace(
        HOST,
        new_id=lambda: f"{process}-{next(ids)}",
        rng=random.Random(0),
        process=process,
        is_running=lambda other: other == process,
    )
    layout = Layout(Address("file", "", str(disk / "table")), JOB)
    store = Wrapped(LocalStore(), *apart(policies))
    return ManifestCommitter(store, layout, Options(workers=1, **options), host)


async def _commit(disk: Path, fills: Fills, mode: Mode, on_failure: str) -> str:
    """Commit a job while the disk fills up; return what it says, nothing if it was committed."""
    job = job_at(disk, "1.one", fills, on_failure=OnFailure(on_failure))
    try:
        await job.commit_job(await _tasks(disk), mode=mode)
    except CommitError as error:
        _check(disk, mode, error)
        return "\n".join([str(error), *getattr(error, "__notes__", [])])
    assert visible(disk / "table") == AFTER[mode]
    return ""


async def _tasks(disk: Path) -> Sequence[TaskCommit]:
    write(disk / "table", OLD | {"_SUCCESS": "{}"})
    job = job_at(disk, "0.tasks")
    await job.setup_job()
    return [await run_task(job, number, files) for number, files in enumerate(TASKS)]


def _check(disk: Path, mode: Mode, error: CommitError) -> None:
    """See that what an error says of the table is so."""
    said, there = str(error), visible(disk / "table")
    if isinstance(error, PreflightError) or "it was rolled back" in said:
        assert there == OLD, said
        assert (disk / "table/_SUCCESS").read_text() == "{}"
    elif "the job is committed" in said:
        assert there == AFTER[mode], said
    elif counted := COUNTED.search(said):
        moved = sum(there.get(name) == text for name, text in NEW.items())
        assert moved >= int(counted[2]) if counted[1] else moved == int(counted[2]), said
        assert not (disk / "table/_SUCCESS").exists() or moved == 0, said
    else:
        raise AssertionError(said)


async def _end(disk: Path, mode: Mode, ending: str, said: str) -> None:
    """Finish or undo in another process, now that there is room, as the message says one can."""
    job, dest = job_at(disk, "2.two"), disk / "table"
    wanted = AFTER[mode]
    if "it was rolled back" in said:
        wanted = OLD
    elif "asynccommit resume" not in said:
        if ending == "rollback" and said:  # it had not begun
            await job.rollback_job()
            wanted = OLD
        else:
            await job.commit_job(mode=mode)
    elif ending == "rollback" and "--rollback" in said:
        await job.rollback_job()
        wanted = OLD
    elif (await job.resume_job()).rolled_back:
        assert "it could not be rolled back" in said
        wanted = OLD
    assert visible(dest) == wanted
    assert ((dest / "_SUCCESS").read_text() == "{}") is (wanted == OLD)
    assert left(dest) == []


async def _everywhere(root: str, what: str, mode: str, on_failure: str) -> list[str]:
    disk, said = Path(root, "disk"), list[str]()
    tmpfs(disk, size="1m", nr_inodes=120)
    for number in count():
        fills = Fills(disk, number, what)
        said.append(await _commit(disk, fills, Mode(mode), on_failure))
        if not fills.full:
            return said
        fills.empty()
        try:
            await _end(disk, Mode(mode), ENDINGS[number % 2], said[-1])
        except BaseException as error:
            error.add_note(f"filled before change {number}: {said[-1]}")
            raise
        shutil.rmtree(disk / "table")
    raise AssertionError


@pytest.mark.sample(1)
@pytest.mark.parametrize("on_failure", list(OnFailure))
@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.REPLACE_TABLE])
@pytest.mark.parametrize("what", ["space", "inodes"])
def test_a_full_disk_at_each_change(
    tmp_path: Path, what: str, mode: Mode, on_failure: OnFailure
) -> None:
    """A commit that fails for want of room says truly how far it came, and ends well later."""
    said = in_namespace(_everywhere, str(tmp_path), what, mode.value, on_failure.value)
    assert said[-1] == ""  # nothing was left to fill
    assert sum("no space left" in text for text in said) >= 3
    assert sum("; 4 files are at their destinations" in text for text in said) >= 3

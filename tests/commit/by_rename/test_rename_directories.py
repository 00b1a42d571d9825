"""Whole directories of a task are moved where nothing is, and never with a file too many."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.layout import TaskCommit
from asynccommit.errors import CommitError, DeniedError, RejectedError
from asynccommit.options.job import Options
from asynccommit.stores.local import moves
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Call, Op, Policy, Wrapped
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.faults import Before, Fault, Faults
from tests.support.jobs import HOST, committer, ids, left, run_task, visible, write
from tests.support.round_trips import MeasuredJob

MANY = {f"day={n % 2}/part-{n}": str(n) for n in range(120)}
"""Two directories, each with enough files to be moved as it is."""


async def tasks_of(dest: Path, *outputs: Mapping[str, str]) -> list[TaskCommit]:
    """Set a job up, and commit a task with each of ``outputs``."""
    job = committer(dest)
    await job.setup_job()
    return [await run_task(job, number, files) for number, files in enumerate(outputs)]


def moved(faults: Faults, dest: Path) -> list[str]:
    """Return what was renamed into the table, by its path there."""
    to = [str(op.args[1]) for op in faults.seen if op.name == "rename"]
    return sorted(path[len(str(dest)) + 1 :] for path in to if "_temporary" not in path)


async def test_a_directory_is_moved_as_it_is(tmp_path: Path) -> None:
    """One rename moves a task's directory; what other tasks have for it follows."""
    seen = Faults()
    other = {"day=0/other": "o", "day=0/hour=1/z": "z"}
    commits = await tasks_of(tmp_path, MANY, other)
    report = await committer(tmp_path, seen).commit_job(commits)

    assert moved(seen, tmp_path) == [
        "_SUCCESS",
        "day=0",
        "day=0/hour=1/z",
        "day=0/other",
        "day=1",
    ]
    assert visible(tmp_path) == MANY | other
    assert (report.files, left(tmp_path)) == (122, [])


async def test_few_files_are_moved_one_by_one(tmp_path: Path) -> None:
    """So many renames at once end before the requests of a directory, one after the other."""
    seen = Faults()
    few = {f"day=1/part-{n}": str(n) for n in range(50)}
    commits = await tasks_of(tmp_path, few)
    await committer(tmp_path, seen).commit_job(commits)

    assert len(moved(seen, tmp_path)) == 51
    assert visible(tmp_path) == few


async def test_directories_of_one_file_are_moved_on_a_local_disk(tmp_path: Path) -> None:
    """Making and deleting a directory takes longer there than moving it; it counts as new."""
    seen = Faults()
    one = {f"day={n}/part": str(n) for n in range(60)}
    commits = await tasks_of(tmp_path, one)
    report = await committer(tmp_path, seen).commit_job(commits)

    assert moved(seen, tmp_path) == sorted(["_SUCCESS", *(f"day={n}" for n in range(60))])
    assert not [op.path for op in seen.seen if op.name == "mkdir" and "/day=" in op.path]
    assert (visible(tmp_path), report.directories, left(tmp_path)) == (one, 60, [])


class Together:
    """A policy that keeps the size of calls for many, and acts before those that name a task.

    Args:
        act: what is done.
    """

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.sizes: list[tuple[str, int]] = []
        self._act = act

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def seen(op: Op) -> Any:
            if op.name in ("rename_many", "list_many") and "/tasks/" in op.path:
                await asyncio.to_thread(self._act)
            if op.name in ("rename_many", "list_many"):
                self.sizes.append((op.name, op.size))
            return await call(op)

        return seen


def together(dest: Path, *policies: Policy) -> ManifestCommitter:
    """Return a committer whose store takes many directories in one call."""
    store = Wrapped(LocalStore(), *policies)
    return ManifestCommitter(store, committer(dest).layout, Options(), HOST)


ONE = {f"day={n:02}/part": str(n) for n in range(60)}
"""Sixty directories of one file, of which a local disk moves sixteen in a call."""


async def test_directories_are_moved_together(tmp_path: Path) -> None:
    """Of those moved in one call, the ones that are not as planned are merged file by file."""
    commits = await tasks_of(tmp_path, ONE)
    place = tmp_path / "_temporary" / committer(tmp_path).layout.job_id / "00/tasks" / ids(0)[1]
    theirs = {"day=09/of-another-job": ".", "day=59/of-another-job": "."}

    def meanwhile() -> None:
        write(place, {"day=07/stray": "!"})
        write(tmp_path, theirs)

    seen = Together(meanwhile)
    report = await together(tmp_path, seen).commit_job(commits)

    assert seen.sizes.count(("rename_many", 16)) == 5, "a stray file is found before the last move"
    assert seen.sizes.count(("list_many", 16)) == 6, "those taken, and those of the table"
    assert visible(tmp_path) == ONE | theirs
    assert (report.files, left(tmp_path)) == (60, [])


async def test_a_call_for_many_directories_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were moved before are counted in the error, and the next commit finishes."""
    commits = await tasks_of(tmp_path, ONE)
    rename = moves.rename

    def refuses(source: str, dest: str, *rest: Any) -> None:
        if dest == f"{tmp_path}/day=20":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), source)
        rename(source, dest, *rest)

    monkeypatch.setattr(moves, "rename", refuses)
    with pytest.raises(CommitError, match="Permission denied") as caught:
        await together(tmp_path).commit_job(commits)
    there = [name for name in visible(tmp_path) if name.startswith("day=")]
    assert f"{len(there)} files are at their destinations" in str(caught.value)
    assert 0 < len(there) < 60

    monkeypatch.undo()
    await committer(tmp_path).commit_job(commits)
    assert (visible(tmp_path), left(tmp_path)) == (ONE, [])


@pytest.mark.parametrize("add", ["day=0/stray", "day=0/deep/stray", "day=0/empty/"])
async def test_what_a_task_adds_late_is_not_published(tmp_path: Path, add: str) -> None:
    """What comes to a task's directory until the owner takes it stays out of the table."""
    commits = await tasks_of(tmp_path, MANY)
    place = tmp_path / "_temporary" / committer(tmp_path).layout.job_id / "00/tasks" / ids(0)[1]

    async def stray() -> None:
        await asyncio.to_thread(write, place, {add: "!"})

    seen = Faults()
    await committer(tmp_path, seen, Before("rename", "held-", stray)).commit_job(commits)

    assert visible(tmp_path) == MANY
    assert not (tmp_path / "day=0/empty").exists()
    assert "day=1" in moved(seen, tmp_path)


async def test_a_task_that_still_writes(tmp_path: Path) -> None:
    """A directory that was taken is returned even if its task has made another meanwhile."""
    commits = await tasks_of(tmp_path, MANY)
    place = tmp_path / "_temporary" / committer(tmp_path).layout.job_id / "00/tasks" / ids(0)[1]

    async def meanwhile() -> None:
        await asyncio.to_thread(write, place, {"day=0/part-0": "!"})
        await asyncio.to_thread(write, tmp_path, {"day=0/of-another-job": "."})

    to = f"{tmp_path}/day=0"
    await committer(tmp_path, Before("rename", to, meanwhile)).commit_job(commits)

    assert visible(tmp_path) == MANY | {"day=0/of-another-job": "."}


async def test_a_filesystem_that_renames_files_alone(tmp_path: Path) -> None:
    """Where a directory cannot be moved, as on an overlay, its files are."""
    faults = Faults(Fault("rename", RejectedError, "held-"))
    commits = await tasks_of(tmp_path, MANY)
    await committer(tmp_path, faults).commit_job(commits)

    assert faults.rules[0].struck == 2
    assert visible(tmp_path) == MANY


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_directory_that_was_taken_and_not_published(tmp_path: Path, end: str) -> None:
    """A commit that failed in between is finished, or undone."""
    commits = await tasks_of(tmp_path, MANY)
    fails = Faults(Fault("rename", DeniedError, f" {tmp_path}/day=1"))
    with pytest.raises(CommitError):
        await committer(tmp_path, fails).commit_job(commits)
    assert [path for path in left(tmp_path) if "held-" in path]

    if end == "commit":
        await committer(tmp_path).commit_job(commits)
    else:
        await committer(tmp_path).rollback_job()
    assert visible(tmp_path) == (MANY if end == "commit" else {})
    assert left(tmp_path) == []


async def test_a_file_of_another_name(tmp_path: Path) -> None:
    """A manifest that renames one of the files keeps its directory from being moved as it is."""
    job = committer(tmp_path)
    await job.setup_job()
    await run_task(job, 0, MANY)
    manifest = tmp_path / "_temporary" / job.layout.job_id / "00/manifests"
    path = next(manifest.iterdir())
    said = json.loads(path.read_bytes())
    entry = next(entry for entry in said["files"] if entry["d"].endswith("/part-0"))
    entry["d"] = entry["d"].replace("/part-0", "/first")
    path.write_text(json.dumps(said))
    seen = Faults()
    await committer(tmp_path, seen).commit_job()

    others = {name: text for name, text in MANY.items() if name != "day=0/part-0"}
    assert visible(tmp_path) == others | {"day=0/first": "0"}
    assert "day=1" in moved(seen, tmp_path)


def test_fewer_requests() -> None:
    """A task that fills many directories is committed in a few requests for each."""

    async def requests(directories: int, files: int) -> int:
        cost = await MeasuredJob().run(directories * files, 1, directories)
        return cost.job.requests

    whole = run_virtual(requests(40, 60))
    assert whole < 40 * 60 / 10
    assert whole == run_virtual(requests(40, 100))

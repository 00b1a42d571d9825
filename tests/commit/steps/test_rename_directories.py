"""Whole directories of a task are moved where nothing is, and never with a file too many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from asynccommit.commit.layouts.layout import TaskCommit
from asynccommit.errors import CommitError, DeniedError, RejectedError
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.faults import Before, Fault, Faults
from tests.support.jobs import committer, ids, left, run_task, visible, write
from tests.support.round_trips import MeasuredJob

MANY = {f"day={n % 2}/part-{n}": str(n) for n in range(120)}
"""Two directories, each with enough files to be moved as it is."""
pytestmark = pytest.mark.usefixtures("reached_by_path")


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

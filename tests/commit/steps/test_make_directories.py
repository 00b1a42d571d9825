"""Making directories: section 6.5 of the reference's catalogue."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.commit.paths import ancestors, leaves
from asynccommit.errors import (
    CommitError,
    DeniedError,
    ExistsError,
    OutcomeUnknownError,
    PreconditionError,
    PreflightError,
    StoreError,
)
from asynccommit.options.job import Mode
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.faults import Fault, Faults
from tests.support.jobs import JOB, committer, left, run_task, visible, write

NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


async def test_each_new_directory_is_made_once(tmp_path: Path) -> None:
    """Eight directories that two tasks want are eight requests."""
    faults = Faults()
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    for task in range(2):
        await run_task(job, task, {f"p={p}/f{task}": "x" for p in range(8)})
    faults.seen.clear()
    report = await job.commit_job()

    assert report.directories == 8
    assert sum(op.name == "mkdir" and "_temporary" not in op.path for op in faults.seen) == 8


class Late:
    """A policy by which a marker's move gets no response, and is executed after the next marker.

    Another job moves that marker meanwhile.

    Args:
        success: the path of the marker.
    """

    def __init__(self, success: Path) -> None:
        self.answer: StoreError | None = None
        self._success = success
        self._sent: Op | None = None

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def late(op: Op) -> Any:
            if op.name == "rename" and op.path == str(self._success) and self._sent is None:
                self._sent = Op("rename", op.args, True, False)  # without its etag
                await asyncio.to_thread(self._success.rename, f"{self._success}-moved")
                raise OutcomeUnknownError("rename", op.path, "no response came")
            answer = await call(op)
            if op.name == "rename" and op.args[1] == str(self._success):
                assert self._sent is not None
                try:
                    await call(self._sent)
                except StoreError as error:
                    self.answer = error
            return answer

        return late


async def test_a_late_request_does_not_move_the_new_marker(tmp_path: Path) -> None:
    """Where a rename takes no etag, the place that it names is occupied before."""
    write(tmp_path, {"_SUCCESS": ""})
    late = Late(tmp_path / "_SUCCESS")
    job = committer(tmp_path, late)
    await job.setup_job()
    await run_task(job, 0, {"part-0": "x"})
    await job.commit_job()

    assert isinstance(late.answer, ExistsError)
    marker = json.loads((tmp_path / "_SUCCESS").read_bytes())
    assert (marker["jobId"], left(tmp_path)) == (JOB, [])


class Early:
    """A policy by which a marker's move gets no response, and takes another job's marker.

    Args:
        success: the path of the marker.
    """

    def __init__(self, success: Path) -> None:
        self._success = success
        self._sent: Op | None = None
        self.executed = 0

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def early(op: Op) -> Any:
            if op.name == "rename" and op.path == str(self._success) and self._sent is None:
                self._sent = Op("rename", op.args, True, False)  # without its etag
                await asyncio.to_thread(self._success.write_text, "of another job")
                raise OutcomeUnknownError("rename", op.path, "no response came")
            sent = self._sent
            if sent and not self.executed and op.name == "rename" and op.args[1] == sent.args[1]:
                self.executed += 1
                await call(sent)
            return await call(op)

        return early


@pytest.mark.parametrize("fails", [False, True])
async def test_a_marker_of_another_job_that_was_taken_is_put_back(
    tmp_path: Path, fails: bool
) -> None:
    """It stays until the marker of this job replaces it, and so after a commit that failed."""
    write(tmp_path, {"_SUCCESS": ""})
    early = Early(tmp_path / "_SUCCESS")
    faults = Faults(Fault("rename", DeniedError, "/part-0")) if fails else Faults()
    job = committer(tmp_path, early, faults)
    await job.setup_job()
    await run_task(job, 0, {"part-0": "x"})
    with pytest.raises(CommitError) if fails else nullcontext():
        await job.commit_job()

    assert early.executed == 1
    text = (tmp_path / "_SUCCESS").read_text()
    assert text == "of another job" if fails else json.loads(text)["jobId"] == JOB


async def test_what_keeps_a_marker_does_not_come_back(tmp_path: Path) -> None:
    """A rollback restores what was moved aside, and not what stands in its place."""
    write(tmp_path, {"_SUCCESS": ""})
    refused = Fault("rename", DeniedError, "/part-0")
    job = committer(tmp_path, Late(tmp_path / "_SUCCESS"), Faults(refused))
    await job.setup_job()
    await run_task(job, 0, {"part-0": "x"})
    with pytest.raises(CommitError):
        await job.commit_job()
    assert list(tmp_path.rglob("aside/in/_SUCCESS")), "a directory stands there"
    await committer(tmp_path).rollback_job()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["_SUCCESS-moved"]


async def test_existing_directories_are_not_made_again(tmp_path: Path) -> None:
    """A second job into the same partitions makes no directory and asks for none by name."""
    for name in ("one", "two"):
        faults = Faults()
        job = committer(tmp_path / "out", faults, job_id=name)
        await job.setup_job()
        await run_task(job, 0, {f"p={p}/{name}": "x" for p in range(8)})
        faults.seen.clear()
        report = await job.commit_job()

    assert report.directories == 0
    assert sum(op.name == "mkdir" and "_temporary" not in op.path for op in faults.seen) == 0


async def test_a_dirty_tree_is_refused_or_cleared(tmp_path: Path) -> None:
    """Files in the place of directories are refused by default, and moved aside if allowed."""
    dest = tmp_path / "out"
    wanted = {f"{a}/{b}/{c}/f": "new" for a, b, c in product("wxyz", repeat=3)}
    write(dest, {"w": "a file", "x/y": "a file", "x/x/x": "a file", "y/y/": ""})
    strict = committer(dest, job_id="strict")
    await strict.setup_job()
    await run_task(strict, 0, wanted)
    with pytest.raises(PreflightError, match="in the place of a directory") as failed:
        await strict.commit_job()

    assert isinstance(failed.value.failures[0], PreconditionError)
    assert visible(dest) == {"w": "a file", "x/y": "a file", "x/x/x": "a file"}

    job = committer(dest, job_id="clearing", delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, wanted)
    report = await job.commit_job()

    assert visible(dest) == wanted
    assert (report.directories, report.replaced) == (64, 3)


async def test_a_file_that_came_after_the_task_committed(tmp_path: Path) -> None:
    """The job looks for itself what is in a directory's place (the reference fails here)."""
    dest = tmp_path / "out"
    job = committer(dest, delete_target_files=True)
    await job.setup_job()
    await run_task(job, 0, {"parent/leaf/f": "new"})
    write(dest, {"parent": "in the way"})
    await job.commit_job()

    assert visible(dest) == {"parent/leaf/f": "new"}


async def test_empty_directories_and_hidden_files_are_committed(tmp_path: Path) -> None:
    """What a task made is there afterwards, hidden names and empty directories too."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"empty/deeper/": "", ".hidden": "h", "_under/f": "u"})
    await job.commit_job()

    assert (tmp_path / "out/empty/deeper").is_dir()
    assert (tmp_path / "out/.hidden").read_text() == "h"
    assert (tmp_path / "out/_under/f").read_text() == "u"


async def test_overwriting_the_whole_table(tmp_path: Path) -> None:
    """What the destination held is gone after the commit, and not a moment before its renames."""
    dest = tmp_path / "out"
    write(dest, {"p=1/old": "o", "p=2/old": "o", "_metadata": "m", "_SUCCESS": ""})
    job = committer(dest)
    await job.setup_job(mode=Mode.REPLACE_TABLE)
    await run_task(job, 0, {"p=1/new": "n"})
    report = await job.commit_job(overwrite=[str(dest)])

    assert visible(dest) == {"p=1/new": "n"}
    assert not (dest / "_metadata").exists()
    assert report.replaced == 3


async def test_overwriting_one_partition(tmp_path: Path) -> None:
    """Only the partition that is named is replaced."""
    dest = tmp_path / "out"
    write(dest, {"p=1/old": "o", "p=2/old": "o"})
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"p=1/new": "n"})
    await job.commit_job(overwrite=[str(dest / "p=1"), str(dest / "p=9")])

    assert visible(dest) == {"p=1/new": "n", "p=2/old": "o"}


async def test_overwriting_keeps_other_jobs(tmp_path: Path) -> None:
    """Replacing the whole table leaves a job alone that is still writing to it."""
    dest = tmp_path / "out"
    other = committer(dest, job_id="other")
    await other.setup_job()
    await run_task(other, 0, {"theirs": "t"})
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"ours": "o"})
    await job.commit_job(overwrite=[str(dest)])
    await other.commit_job()

    assert visible(dest) == {"ours": "o", "theirs": "t"}


@given(st.lists(NAMES, max_size=12))
def test_leaves_make_every_directory(names: list[str]) -> None:
    """Making the leaves makes every directory, and no leaf is made for nothing."""
    wanted = ancestors("/r", [f"/r/{name}" for name in names])
    made = leaves(wanted)

    assert ancestors("/r", made) == wanted
    assert not any(other.startswith(path + "/") for path in made for other in made)


async def test_overwriting_a_place_outside(tmp_path: Path) -> None:
    """A custom partition location that is replaced is made again for the new files."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    commit = await run_task(job, 0, {})
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, {"old": "o"})
    staged = f"{job.layout.absolute_dir}/{commit.attempt_id}/new"
    await job.store.mkdir(staged.rpartition("/")[0])
    await job.store.put(staged, b"n")
    absolute = {job.layout.url(staged): job.layout.url(f"{elsewhere}/new")}
    await job.commit_job([replace(commit, absolute=absolute)], overwrite=[str(elsewhere)])

    assert visible(elsewhere) == {"new": "n"}

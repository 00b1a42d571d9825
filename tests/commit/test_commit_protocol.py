"""The protocol end to end: section 6.1 of the reference's catalogue, by its numbers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from asynccommit.errors import CommitError, NotFoundError, UnsupportedError
from asynccommit.formats.manifest import decode_manifest
from asynccommit.formats.success import SuccessData, decode_success
from tests.support import uploads
from tests.support.jobs import JOB, committer, ids, left, run_task, visible, write


def marker(dest: Path) -> SuccessData:
    """Return what ``_SUCCESS`` says."""
    return decode_success((dest / "_SUCCESS").read_bytes(), "_SUCCESS")


async def test_1_another_job_attempt_starts_afresh(tmp_path: Path) -> None:
    """A second job attempt reads nothing of the first one's tasks, and can be aborted."""
    first = committer(tmp_path / "out")
    await first.setup_job()
    await run_task(first, 0, {"part-0": "one"})
    second = committer(tmp_path / "out", attempt=1)
    await second.setup_job()
    await second.abort_task(*ids(0))

    report = await second.commit_job()

    assert report.files == 0
    assert visible(tmp_path / "out") == {}


async def test_2_the_life_of_a_commit(tmp_path: Path) -> None:
    """Nothing is visible before the job commits; then the file is, and the marker says so."""
    dest = tmp_path / "out"
    job = committer(dest, report_directory=str(tmp_path / "reports"))
    await job.setup_job()
    commit = await run_task(job, 0, {"part-0": "hello"})
    task_id, _ = ids(0)
    manifest = decode_manifest(Path(job.layout.manifest(task_id)).read_bytes(), "manifest")

    assert (len(manifest.files), len(manifest.directories)) == (1, 0)
    assert visible(dest) == {}

    report = await job.commit_job([commit])

    assert visible(dest) == {"part-0": "hello"}
    assert left(dest) == []
    said = marker(dest)
    counters = said.statistics.counters
    assert said.diagnostics["stage"] == "committer_commit_job"
    assert counters["op_load_manifest"] == 1
    assert counters["committer_files_committed"] == 1
    assert counters["committer_bytes_committed"] == 5
    assert report.report is not None
    summary = json.loads((tmp_path / "reports" / f"summary-{JOB}.json").read_bytes())
    assert summary["iostatistics"]["counters"]["committer_commit_job"] == 1
    assert summary["success"] is True


async def test_3_a_task_may_commit_twice_but_not_after_the_job(tmp_path: Path) -> None:
    """Repeating a task commit is fine until the job has cleaned up; then it fails."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    first = await run_task(job, 0, {"part-0": "x"})
    again = await job.commit_task(*ids(0))

    assert (again.files, again.bytes) == (first.files, first.bytes)

    await job.commit_job([again])
    await job.cleanup()
    with pytest.raises(CommitError) as failed:
        await job.commit_task(*ids(0))

    assert isinstance(failed.value.failures[0], NotFoundError)


async def test_4_the_last_attempt_to_commit_wins(tmp_path: Path) -> None:
    """Of two attempts that both committed only the later one's file becomes visible."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"part-0-a": "first"}, attempt=0)
    await run_task(job, 0, {"part-0-b": "second"}, attempt=1)

    report = await job.commit_job()

    assert visible(tmp_path / "out") == {"part-0-b": "second"}
    assert len(marker(tmp_path / "out").filenames) == 1
    assert report.files == 1


async def test_5_a_task_without_output_commits(tmp_path: Path) -> None:
    """An empty task commits, and its directory is still there."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    commit = await run_task(job, 0, {})

    assert (commit.files, commit.bytes) == (0, 0)
    assert Path(job.layout.task_attempt_dir(ids(0)[1])).is_dir()


async def test_6_a_directory_as_output(tmp_path: Path) -> None:
    """A task whose output is a directory of two files has it moved as it is."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"part-0/data": "d", "part-0/index": "i"})
    await job.commit_job()

    assert visible(tmp_path / "out") == {"part-0/data": "d", "part-0/index": "i"}


async def test_7_8_aborting_what_did_nothing(tmp_path: Path) -> None:
    """Aborting a task or a job that wrote nothing is no error."""
    job = committer(tmp_path / "out")
    await job.abort_task(*ids(0))
    await job.setup_job()
    await job.abort_task(*ids(0))

    assert (await job.abort_job()).kept == ""


async def test_9_output_of_an_uncommitted_task_stays_hidden(tmp_path: Path) -> None:
    """What a task wrote and did not commit is never visible."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    write(await job.setup_task(ids(0)[1]), {"part-0": "x"})
    await job.commit_job()

    assert visible(tmp_path / "out") == {}
    assert left(tmp_path / "out") == []


async def test_10_aborting_task_then_job_leaves_nothing(tmp_path: Path) -> None:
    """After both aborts the destination is gone, because this job made it."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    await run_task(job, 0, {"part-0": "x"})
    await job.abort_task(*ids(0))
    await job.abort_job()

    assert not (tmp_path / "out").exists()


async def test_11_a_failed_job_is_reported(tmp_path: Path) -> None:
    """Abort leaves no file and no marker, but a report; aborting again is fine."""
    job = committer(tmp_path / "out", report_directory=str(tmp_path / "reports"))
    await job.setup_job()
    await run_task(job, 0, {"part-0": "x"})
    await job.abort_job("killed by its user")
    await job.abort_job()

    (path,) = (tmp_path / "reports").iterdir()
    said = decode_success(path.read_bytes(), "summary")
    assert said.success is False
    assert said.diagnostics["stage"] == "job_stage_abort"
    assert "killed by its user" in said.diagnostics["exception"]
    assert said.statistics.counters["job_stage_abort"] == 1
    assert not (tmp_path / "out" / "_SUCCESS").exists()


async def test_12_aborting_the_job_alone_removes_its_tasks(tmp_path: Path) -> None:
    """A job abort deletes the directories of tasks that nobody aborted."""
    (tmp_path / "out").mkdir()
    job = committer(tmp_path / "out")
    await job.setup_job()
    write(await job.setup_task(ids(0)[1]), {"part-0": "x"})
    await job.abort_job()

    assert list((tmp_path / "out").iterdir()) == []


async def test_13_tasks_commit_into_one_subdirectory_at_once(tmp_path: Path) -> None:
    """Parallel task commits give the output of serial ones: the property *Concurrent*."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    files = {task: {f"sub/part-{task}": str(task)} for task in range(8)}
    await asyncio.gather(*(run_task(job, task, mine) for task, mine in files.items()))
    await job.commit_job()

    assert visible(tmp_path / "out") == {f"sub/part-{task}": str(task) for task in range(8)}


async def test_14_a_scheme_without_rename_is_refused() -> None:
    """S3 has no rename: there this committer is refused, with what to use instead."""
    with pytest.raises(UnsupportedError, match=r"no atomic rename.*magic"):
        uploads.open_committer(uploads.new_bucket(), "manifest")


async def test_15_task_statistics_reach_the_marker(tmp_path: Path) -> None:
    """What tasks counted is added up in the job's marker."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    for task in range(3):
        await run_task(job, task, {f"part-{task}": "xy"})
    await job.commit_job()

    counters = marker(tmp_path / "out").statistics.counters
    assert counters["committer_task_file_count"] == 3
    assert counters["task_stage_scan_directory"] == 3


async def test_16_another_instance_aborts_a_task(tmp_path: Path) -> None:
    """A task can be aborted by a committer that did not set it up."""
    job = committer(tmp_path / "out")
    await job.setup_job()
    path = await job.setup_task(ids(0)[1])
    await committer(tmp_path / "out").abort_task(*ids(0))

    assert not Path(path).exists()


async def test_17_jobs_with_adjacent_destinations(tmp_path: Path) -> None:
    """Two jobs side by side commit their own files, whatever the order of their tasks."""
    one, two = committer(tmp_path / "a"), committer(tmp_path / "b", job_id="other")
    for job in (one, two):
        await job.setup_job()
    await run_task(two, 0, {"part": "b"})
    await run_task(one, 0, {"part": "a"})
    await one.commit_job()
    await two.commit_job()

    assert (visible(tmp_path / "a"), visible(tmp_path / "b")) == ({"part": "a"}, {"part": "b"})


async def test_two_jobs_into_one_destination(tmp_path: Path) -> None:
    """Jobs launched at once into one table do not disturb each other: not even in cleanup."""
    dest = tmp_path / "out"
    one, two = committer(dest, job_id="one"), committer(dest, job_id="two")
    for job in (one, two):
        await job.setup_job()
    await run_task(one, 0, {"p=1/a": "a"})
    await run_task(two, 0, {"p=1/b": "b"})
    await one.commit_job()

    assert visible(dest) == {"p=1/a": "a"}
    assert any("two" in path for path in left(dest))

    await two.commit_job()

    assert visible(dest) == {"p=1/a": "a", "p=1/b": "b"}
    assert not (dest / "_temporary").exists()

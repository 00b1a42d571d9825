"""Cleaning up: section 6.4 of the reference's catalogue, with ten task attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asynccommit.committers.manifest import ManifestCommitter
from asynccommit.errors import CommitError, DeniedError, UnavailableError
from asynccommit.stages.cleanup import Outcome, clean_up
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, ids, run_task


async def ten(dest: Path, *policies: Faults, **options: Any) -> ManifestCommitter:
    """Return a job with ten task attempt directories."""
    job = committer(dest, *policies, **options)
    await job.setup_job()
    for task in range(10):
        await job.setup_task(ids(task)[1])
    return job


@pytest.mark.parametrize(
    "options, outcome, deletes",
    [
        ({}, Outcome.PARALLEL_DELETE, 11),
        ({"parallel_delete": False}, Outcome.DELETED, 1),
        ({"delete_base_first": True}, Outcome.DELETED, 1),
        ({"delete_base_first": True, "parallel_delete": False}, Outcome.DELETED, 1),
        ({"cleanup_skipped": True}, Outcome.DISABLED, 0),
    ],
)
async def test_ways_to_clean_up(
    tmp_path: Path, options: dict[str, bool], outcome: Outcome, deletes: int
) -> None:
    """Each way deletes what it says with as many requests as the reference; again is nothing."""
    faults = Faults()
    job = await ten(tmp_path / "out", faults, **options)

    assert await clean_up(job._run()) is outcome
    assert faults.count("delete_tree") == deletes
    assert (tmp_path / "out/_temporary").exists() is (outcome is Outcome.DISABLED)
    if outcome is not Outcome.DISABLED:
        assert await clean_up(job._run()) is Outcome.NOTHING


async def test_one_attempt_directory_resists(tmp_path: Path) -> None:
    """A failed delete of one task attempt is made up for by the delete of the whole."""
    faults = Faults(Fault("delete_tree", UnavailableError, "000003_0", times=1))
    job = await ten(tmp_path / "out", faults)

    assert await clean_up(job._run()) is Outcome.DELETED
    assert faults.count("delete_tree") == 11
    assert not (tmp_path / "out/_temporary").exists()


async def test_base_first_falls_back_to_parallel(tmp_path: Path) -> None:
    """When the one big delete fails the task attempts are deleted in parallel."""
    faults = Faults(Fault("delete_tree", UnavailableError, "", times=1))
    job = await ten(tmp_path / "out", faults, delete_base_first=True)

    assert await clean_up(job._run()) is Outcome.PARALLEL_DELETE
    assert faults.count("delete_tree") == 12


async def test_no_tasks_directory(tmp_path: Path) -> None:
    """A job whose tasks never started is deleted with one request."""
    faults = Faults()
    job = committer(tmp_path / "out", faults)
    await job.setup_job()

    assert await clean_up(job._run()) is Outcome.DELETED
    assert faults.count("delete_tree") == 1


async def test_other_jobs_are_left_alone(tmp_path: Path) -> None:
    """Only this job's directory is deleted, where the reference deletes all of ``_temporary``."""
    other = committer(tmp_path / "out", job_id="other")
    await other.setup_job()
    job = await ten(tmp_path / "out")
    await job.cleanup()

    assert [path.name for path in (tmp_path / "out/_temporary").iterdir()] == ["other"]


@pytest.mark.parametrize("ignored", [None, True, False])
async def test_cleanup_fails_after_success(tmp_path: Path, ignored: bool | None) -> None:
    """A failed cleanup warns, is ignored or is an error, as the option says; output is there."""
    faults = Faults(Fault("delete_tree", DeniedError))
    job = committer(tmp_path / "out", faults, cleanup_failures_ignored=ignored)
    await job.setup_job()
    await run_task(job, 0, {"f": "x"})
    if ignored is False:
        with pytest.raises(CommitError, match="committed, but its marker or clean-up failed"):
            await job.commit_job()
    else:
        report = await job.commit_job()
        assert len(report.warnings) == (0 if ignored else 1)

    assert (tmp_path / "out/_SUCCESS").exists()
    assert (tmp_path / "out/f").read_text() == "x"


async def test_abort_tells_of_its_failure(tmp_path: Path) -> None:
    """Where the reference swallows the error of an abort, ours raises it."""
    job = await ten(tmp_path / "out", Faults(Fault("delete_tree", DeniedError)))
    with pytest.raises(CommitError) as failed:
        await job.abort_job()

    assert isinstance(failed.value.failures[0], DeniedError)

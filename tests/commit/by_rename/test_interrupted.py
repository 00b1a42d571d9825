"""A commit that something has stopped, and nobody can look whether that was an abort."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.errors import CommitError, DeniedError, NotFoundError, StoreError
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task


async def test_what_stopped_the_commit_is_told(tmp_path: Path) -> None:
    """A look that is denied afterwards hides neither the error nor the record."""
    faults = Faults()

    def stop(op: str, path: str) -> StoreError:
        faults.rules.append(Fault("get", DeniedError))
        return NotFoundError(op, path, "nothing is there")

    faults.rules.append(Fault("rename", stop, "tasks/"))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    await run_task(job, 0, {"d/f": "x"})
    with pytest.raises(CommitError) as failed:
        await job.commit_job()

    assert [type(error) for error in failed.value.failures] == [NotFoundError]
    assert any(rule.struck for rule in faults.rules if rule.name == "get")
    assert Path(job.layout.record).exists()
    faults.rules.clear()
    assert (await job.resume_job()).files == 1
    assert (tmp_path / "out/d/f").read_text() == "x"


async def test_an_outcome_that_found_no_directory(tmp_path: Path) -> None:
    """The owner goes on once an abort that had the directory has given it back."""
    faults = Faults(Fault("put", NotFoundError, "commit-outcome.json", times=1))
    job = committer(tmp_path / "out", faults)
    await job.setup_job()
    await run_task(job, 0, {"d/f": "x"})
    report = await job.commit_job()

    assert faults.rules[0].struck == 1
    assert (report.files, report.epoch) == (1, 2)
    assert (tmp_path / "out/d/f").read_text() == "x"

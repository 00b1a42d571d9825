"""A job logs its begin and its end, its requests that failed, and no secret."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest

from asynccommit.errors import (
    CommitError,
    DeniedError,
    OutcomeUnknownError,
    StoreError,
    ThrottledError,
)
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.retry import Retry
from tests.support.faults import Fault, Faults
from tests.support.jobs import JOB, committer, run_task, visible

SIGNED = "https://account.example/flights?sv=2026&sig=c2VjcmV0c2lnbmF0dXJl"


def _told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and record.name.startswith("asynccommit.")
    ]


async def test_begin_and_end_of_a_job_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """INFO has a line for the setup, one for the commit and one for its end."""
    caplog.set_level(logging.INFO, "asynccommit")
    dest = tmp_path / "out"
    job = committer(dest)
    await job.setup_job()
    await run_task(job, 0, {"part-0": "12345"})
    await job.commit_job()

    told = _told(caplog, logging.INFO)
    assert told[:2] == [
        f"job {JOB}: set up under file:{dest}",
        f"job {JOB}: commit under file:{dest}",
    ]
    assert told[2].startswith(f"job {JOB}: committed: 1 file, 5 bytes, ")
    assert len(told) == 3


async def test_abort_is_logged_with_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """INFO says why a job was aborted."""
    caplog.set_level(logging.INFO, "asynccommit")
    job = committer(tmp_path / "out")
    await job.setup_job()
    await job.abort_job("the input is empty")

    why = "job directory deleted: the input is empty"
    assert _told(caplog, logging.INFO)[-1] == f"job {JOB}: aborted, {why}"


async def test_failure_is_logged_with_its_stage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """INFO names the stage in which a commit failed and the cause, without the signature."""
    caplog.set_level(logging.DEBUG, "asynccommit")

    def denied(op: str, path: str) -> StoreError:
        return DeniedError(op, path, f"not allowed at {SIGNED}")

    job = committer(tmp_path / "out", Faults(Fault("rename", denied, match="part-0")))
    await job.setup_job()
    await run_task(job, 0, {"part-0": "12345"})
    with pytest.raises(CommitError):
        await job.commit_job()

    told = _told(caplog, logging.INFO)[-1]
    assert told.startswith(f"the commit failed: job {JOB}, job_stage_rename_files: ")
    assert "not allowed at https://account.example" in told
    assert "c2VjcmV0" not in caplog.text


async def test_requests_that_failed_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """DEBUG has each refusal, each retry and each lost response with its outcome."""
    caplog.set_level(logging.DEBUG, "asynccommit")

    def busy(op: str, path: str) -> StoreError:
        return ThrottledError(op, path, f"busy: {SIGNED}")

    def lost(op: str, path: str) -> StoreError:
        return OutcomeUnknownError(op, path, "connection reset")

    faults = Faults(
        Fault("rename", busy, match="part-0", times=1),
        Fault("rename", lost, match="part-1", times=1, after=True),
    )
    rng = random.Random(0)
    policies = Recover(LocalStore().traits, rng), Retry(rng, base=0.01), faults
    dest = tmp_path / "out"
    job = committer(dest, *policies)
    await job.setup_job()
    await run_task(job, 0, {"part-0": "0", "part-1": "1"})
    await job.commit_job()

    told = "\n".join(_told(caplog, logging.DEBUG))
    assert "attempt 1 failed: rename " in told
    assert "busy: https://account.example" in told
    assert "is sent again, attempt 2" in told
    assert "settled as DONE after attempt 1: rename " in told
    assert "c2VjcmV0" not in caplog.text
    assert visible(dest) == {"part-0": "0", "part-1": "1"}

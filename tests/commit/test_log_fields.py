"""Log records of a job bear its id and its destination."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from asynccommit import open_job, sync
from asynccommit.commit.log_fields import log_fields
from asynccommit.testing import AdlsEmulator
from asynccommit.testing.models.fault_profiles import STORM


def _fields(records: list[logging.LogRecord]) -> set[tuple[object, ...]]:
    """Return what the records of an account or a job say of their job."""
    quota = "asynccommit.stores.policies.shared_quota"  # all jobs on the account share it
    return {
        tuple(getattr(record, name, None) for name in log_fields("", ""))
        for record in records
        if record.name.startswith("asynccommit.") and record.name != quota
    }


def test_fields_bear_no_credential() -> None:
    """A destination with a signature or a password is shown without them."""
    signed = log_fields("j", "abfss://c@a.dfs.core.windows.net/t?sv=1&sig=c2VjcmV0c2ln")
    assert signed == {
        "asynccommit_job_id": "j",
        "asynccommit_destination": "abfss://c@a.dfs.core.windows.net/t?sv=1&sig=***",
    }
    assert "hunter22" not in log_fields("j", "s3://me:hunter22@b/t")["asynccommit_destination"]


async def test_each_record_of_jobs_in_a_storm_bears_its_job(
    adls_emulator: AdlsEmulator, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two jobs at once each record has a job's fields, retries and refusals too."""
    caplog.set_level(logging.DEBUG, "asynccommit")
    adls_emulator.model.create_filesystem("data")
    storage = {"connection_string": adls_emulator.connection_string}

    async def write(name: str) -> None:
        where = f"abfs://data/{name}"
        opened = open_job(where, job_id=name, storage_options=storage)
        async with opened as job, job.task(0) as task:
            for number in range(10):
                await task.put(f"part-{number}", b"x")

    adls_emulator.weather.climate = STORM
    await asyncio.gather(write("one"), write("two"))

    ours = [record for record in caplog.records if "emulator" not in record.name]
    assert _fields(ours) == {("one", "abfs://data/one"), ("two", "abfs://data/two")}
    modules = {record.name.rpartition(".")[2] for record in ours}
    assert {"committer", "reporting", "retry", "lost_replies", "adaptive_rate"} <= modules
    for record in ours:
        if record.getMessage().startswith("job "):
            assert record.getMessage().startswith(f"job {record.__dict__['asynccommit_job_id']}:")


def test_a_blocking_job_that_fails_bears_its_fields(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The event loop's thread logs an abort with the fields of the caller's job."""
    caplog.set_level(logging.DEBUG, "asynccommit")

    with (
        pytest.raises(ValueError, match="no input"),
        sync.open_job(tmp_path, job_id="j") as job,
        job.task(0),
    ):
        raise ValueError("no input")

    assert _fields(caplog.records) == {("j", f"file:{tmp_path}")}

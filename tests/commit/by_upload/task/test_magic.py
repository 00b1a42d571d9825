"""What tasks of Hadoop's own magic committer left is read like ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from asynccommit.commit.by_upload.context import UploadContext
from asynccommit.commit.by_upload.task.magic import load_pending, refuse_name
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.errors import DeniedError, OptionError, OutcomeUnknownError, StoreError
from asynccommit.formats.pending import PendingCommit
from asynccommit.stores.urls import Address
from asynccommit.testing.models.s3.model import S3Bucket
from tests.support.faults import Fault, Faults
from tests.support.uploads import (
    ATTEMPT,
    JOB,
    TASK,
    keys,
    magic_run,
    new_bucket,
    open_committer,
    open_uploads,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"


def hadoop_run(bucket: S3Bucket, dest: str = "/results/latest") -> UploadContext:
    """Return a task of a job where Hadoop's samples are for."""
    return replace(magic_run(bucket), layout=MagicLayout(Address("s3a", "example", dest), JOB))


@pytest.mark.parametrize("form", ["string", "object"])
async def test_pending_files_of_hadoop(form: str) -> None:
    """Either form of etags is read, and what is not a pending file is passed over."""
    run = hadoop_run(new_bucket())
    base = run.layout.task_base(ATTEMPT)  # type: ignore[attr-defined]
    sample = FIXTURES / f"s3a_v2_{form}_etags" / "part-00000.parquet.pending"
    await run.store.mkdir(base)
    await run.store.put(f"{base}/year=2024/part-00000.parquet.pending", sample.read_bytes())
    await run.store.put_marker(f"{base}/year=2024/part-00000.parquet", {"a": "b"})

    commits, failures, there = await load_pending(run, base)

    (commit,) = commits
    assert isinstance(commit, PendingCommit)
    assert (commit.key, commit.upload_id) == (
        "results/latest/year=2024/part-00000.parquet",
        "UPLOADID1",
    )
    assert (failures, there) == ([], True)


async def test_pending_file_of_another_destination() -> None:
    """A pending file that is for another table is told, and not taken."""
    run = hadoop_run(new_bucket(), "/results/other")
    base = run.layout.task_base(ATTEMPT)  # type: ignore[attr-defined]
    sample = FIXTURES / "s3a_v2_string_etags" / "part-00000.parquet.pending"
    await run.store.put(f"{base}/x.pending", sample.read_bytes())

    commits, failures, _ = await load_pending(run, base)

    assert commits == []
    assert [path for path, _ in failures] == [f"{base}/x.pending"]
    assert "outside the destination of the job" in str(failures[0][1])


async def test_directory_that_is_not_there() -> None:
    """A task that has no directory is told apart from one that wrote nothing."""
    run = magic_run(new_bucket())

    assert await load_pending(run, "/out/t/none") == ([], [], False)
    await run.store.mkdir("/out/t/some")
    assert await load_pending(run, "/out/t/some") == ([], [], True)


def test_names_of_the_committer() -> None:
    """Hadoop takes no file of these endings for one that is written to a magic place."""
    refuse_name("pending")
    for name in ("a.pending", "d/a.pendingset"):
        with pytest.raises(OptionError):
            refuse_name(name)


@pytest.mark.parametrize("error, fails", [(DeniedError, False), (OutcomeUnknownError, True)])
async def test_a_task_that_goes_on_after_a_failure(error: type[StoreError], fails: bool) -> None:
    """A file whose pending file may be there, or is to be replaced, does not stop the job.

    Its upload is aborted where the task was told that it failed; the rest is committed.
    """
    bucket = new_bucket()
    await open_committer(bucket, "magic").setup_job()
    lost = Fault("put", error, "bad.pending", after=True, skip=1)
    kept = Fault("abort_upload", error, "/out/t/bad", times=1)
    job = open_committer(bucket, "magic", Faults(lost if fails else kept))
    await job.setup_task(ATTEMPT)
    work = job.work(ATTEMPT)
    await work.put("good", b"good")
    await work.put("bad", b"first")
    if fails:
        with pytest.raises(error):
            await work.put("bad", b"second")
    else:
        await work.put("bad", b"second")
    task = await job.commit_task(TASK, ATTEMPT)
    await open_committer(bucket, "magic").commit_job([task])

    found = {key: bucket.objects[key].data for key in keys(bucket) if key != "out/t/_SUCCESS"}
    assert found == {"out/t/good": b"good"} | ({} if fails else {"out/t/bad": b"second"})
    assert not open_uploads(bucket)
